// Reading a document: attributes and constants.
#include "ids.h"
#include "llvm/ADT/StringExtras.h"
#include "read.h"
#include "tpu/hlo/literal.h"
#include "tpu/serial/base64.h"

namespace tpu::hlo {

llvm::Error DocumentReader::attrs(JsonValue object, OpId op) {
  if (!object.isObject()) return bad(object, "expected the attributes of an op");
  for (JsonMember member : object.members()) {
    auto key = findAttrKey(member.key);
    if (!key) return fail(Code::kUnknownField, member.value.loc(), "unknown attribute '" + member.key + "'");
    if (m.has(op, *key)) return bad(member.value, "attribute '" + member.key + "' stands twice");
    Attr out;
    out.key = *key;
    out.kind = attrKind(*key);
    if (auto e = attr(member.value, op, out)) return e;
    m.setAttr(op, std::move(out));
  }
  return llvm::Error::success();
}

llvm::Error DocumentReader::attr(JsonValue value, OpId op, Attr& out) {
  auto refuse = [&](llvm::StringRef expected) {
    return bad(value, "expected " + expected + " for '" + attrName(out.key) + "'");
  };
  switch (out.kind) {
    case AttrKind::kBool:
      if (!value.asBool()) return refuse("true or false");
      out.i = *value.asBool();
      return llvm::Error::success();
    case AttrKind::kInt:
      if (!value.asInt()) return refuse("an integer");
      out.i = *value.asInt();
      return llvm::Error::success();
    case AttrKind::kFloat:
      if (!value.asDouble()) return refuse("a number");
      out.f = *value.asDouble();
      return llvm::Error::success();
    case AttrKind::kInts:
      return value.readInts(&out.ints) ? llvm::Error::success() : refuse("a list of integers");
    case AttrKind::kBools:
      if (!value.isArray()) return refuse("a list of truth values");
      for (JsonValue item : value.elements()) {
        if (!item.asBool()) return refuse("a list of truth values");
        out.ints.push_back(*item.asBool());
      }
      return llvm::Error::success();
    case AttrKind::kString:
    case AttrKind::kText:
      if (!value.isString()) return refuse("a string");
      out.str = value.asString()->str();
      return llvm::Error::success();
    case AttrKind::kEnum: {
      llvm::ArrayRef<llvm::StringRef> spellings = enumSpellings(out.key);
      auto it = llvm::find(spellings, value.asString().value_or(""));
      if (it == spellings.end()) return refuse("one of " + llvm::join(spellings, ", "));
      out.i = it - spellings.begin();
      out.str = it->str();
      return llvm::Error::success();
    }
    case AttrKind::kStrings:
      if (!value.isArray()) return refuse("a list of strings");
      for (JsonValue item : value.elements()) {
        if (!item.isString()) return refuse("a list of strings");
        out.strs.push_back(item.asString()->str());
      }
      return llvm::Error::success();
    case AttrKind::kLiteral:
      return literalValue(value, op, out.literal);
    case AttrKind::kSharding:
      return value.isNull() ? llvm::Error::success() : shardingId(value, out.sharding);
    case AttrKind::kShardings:
      if (!value.isArray()) return refuse("a list of shardings");
      for (JsonValue item : value.elements()) {
        ShardingId id;
        if (!item.isNull())
          if (auto e = shardingId(item, id)) return e;
        out.ints.push_back(id.v);
      }
      return llvm::Error::success();
    case AttrKind::kAxes: {
      FieldReader r(value, "axes");
      if (auto mesh = r.optional("mesh")) {
        if (auto e = meshId(*mesh, out.mesh)) return e;
        if (auto list = r.required("axes"))
          if (auto e = axes(*list, m.meshes[out.mesh.v], out.axes)) return e;
      }
      return r.finish();
    }
    case AttrKind::kGroups:
      return groups(value, out.groups);
    case AttrKind::kType:
    case AttrKind::kTypes:
      return value.isNull() ? llvm::Error::success() : refuse("null");
  }
  return llvm::Error::success();
}

llvm::Error DocumentReader::groups(JsonValue value, Groups& out) {
  if (!value.isArray()) return bad(value, "expected rows of devices");
  std::vector<llvm::SmallVector<int64_t, 8>> rows;
  for (JsonValue item : value.elements()) {
    rows.emplace_back();
    if (!item.readInts(&rows.back())) return bad(item, "expected a row of devices");
    out.cols = std::max(out.cols, static_cast<int64_t>(rows.back().size()));
  }
  out.rows = static_cast<int64_t>(rows.size());
  for (auto& row : rows) {
    row.resize(static_cast<size_t>(out.cols), -1);
    out.ids.insert(out.ids.end(), row.begin(), row.end());
  }
  return llvm::Error::success();
}

llvm::Error DocumentReader::literalValue(JsonValue value, OpId op, LiteralId& out) {
  FieldReader r(value, "constant");
  if (auto id = r.optional("literal")) {
    out = literals_.find(id->asInt());
    if (!out) return bad(*id, "expected the id of a literal");
    return r.finish();
  }
  Literal l;
  if (auto e = type(r, value, l.type, 0, /*optional=*/true)) return e;
  if (!r.ok()) return r.finish();
  if (!l.type) {
    if (m.op(op).results.size() != 1) return bad(value, "constant without a type");
    l.type = m.value(m.op(op).results[0]).type;
  }
  if (auto e = literalData(r, value, m.type(l.type), l)) return e;
  if (auto e = r.finish()) return e;
  out = m.addLiteral(std::move(l));
  return llvm::Error::success();
}

llvm::Error DocumentReader::denseData(JsonValue list, const Type& type, Literal& out) {
  int64_t count = type.numElements();
  size_t size = static_cast<size_t>(hostBytes(type.element));
  if (list.size() != count)
    return bad(list, "constant of " + llvm::Twine(list.size()) + " elements where its type has " +
                         llvm::Twine(count));
  out.bytes.resize(static_cast<size_t>(count) * size);
  uint8_t* at = out.bytes.data();
  for (JsonValue item : list.elements()) {
    if (auto number = item.asInt())
      storeInt(type.element, *number, at);
    else if (auto large = item.asUint())
      storeInt(type.element, static_cast<int64_t>(*large), at);
    else
      return bad(item, "expected an integer");
    at += size;
  }
  return llvm::Error::success();
}

llvm::Error DocumentReader::literalData(FieldReader& r, JsonValue at, const Type& type, Literal& out) {
  if (type.kind != TypeKind::kTensor || llvm::is_contained(type.dims, kDynamicDim))
    return bad(at, "a constant needs a static tensor type");
  size_t size = static_cast<size_t>(hostBytes(type.element));
  if (auto splat = r.optional("splat")) {
    out.splat = true;
    out.bytes.resize(size);
    bool whole = isInteger(type.element) || type.element == ElementType::kPred;
    if (whole && splat->asInt())
      storeInt(type.element, *splat->asInt(), out.bytes.data());
    else if (whole && splat->asUint())
      storeInt(type.element, static_cast<int64_t>(*splat->asUint()), out.bytes.data());
    else if (!whole && splat->asDouble())
      storeDouble(type.element, *splat->asDouble(), out.bytes.data());
    else
      return bad(*splat, "expected a number");
    return llvm::Error::success();
  }
  if (auto bits = r.optional("bits")) {
    llvm::StringRef hex = bits->asString().value_or("");
    if (hex.size() != 2 * size || !llvm::all_of(hex, llvm::isHexDigit))
      return bad(*bits, "expected " + llvm::Twine(2 * size) + " hexadecimal digits");
    out.splat = true;
    for (size_t i = size; i-- > 0;)
      out.bytes.push_back(
          static_cast<uint8_t>(llvm::hexDigitValue(hex[2 * i]) * 16 + llvm::hexDigitValue(hex[2 * i + 1])));
    return llvm::Error::success();
  }
  if (auto dense = r.optional("dense"))
    return dense->isArray() ? denseData(*dense, type, out) : bad(*dense, "expected a list");
  auto base64 = r.required("base64");
  if (!base64) return llvm::Error::success();
  auto bytes = decodeBase64(base64->asString().value_or(""));
  if (!bytes) return bad(*base64, "malformed base64");
  unsigned __int128 needed = static_cast<unsigned __int128>(type.numElements()) * size;
  if (bytes->size() != needed)
    return bad(*base64, "constant of " + llvm::Twine(bytes->size()) + " bytes does not fit its type");
  out.bytes = std::move(*bytes);
  return llvm::Error::success();
}

}  // namespace tpu::hlo
