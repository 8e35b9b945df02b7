// Reading a document: types, shardings, and what refers to other rows.
#include "read.h"

namespace tpu::hlo {

namespace {
constexpr int kMaxTypeDepth = 64;
}

llvm::Error DocumentReader::bad(JsonValue at, const llvm::Twine& text) {
  return fail(Code::kBadField, at.loc(), text);
}

llvm::Error DocumentReader::dims(JsonValue value, Dims& out) {
  if (!value.isArray()) return bad(value, "expected a list of dimensions");
  int64_t count = 1;
  for (JsonValue dim : value.elements()) {
    if (dim.isNull()) {
      out.push_back(kDynamicDim);
      continue;
    }
    auto size = dim.asInt();
    if (!size || *size < 0) return bad(dim, "expected a size");
    if (*size > 0 && __builtin_mul_overflow(count, *size, &count))
      return bad(value, "array has more elements than can be counted");
    out.push_back(*size);
  }
  return llvm::Error::success();
}

llvm::Error DocumentReader::type(FieldReader& r, JsonValue at, TypeId& id, int depth, bool optional) {
  if (depth > kMaxTypeDepth) return bad(at, "types nest too deeply");
  if (r.optionalBool("token", false)) {
    id = m.tokenType();
    return llvm::Error::success();
  }
  Type t;
  if (auto tuple = r.optional("tuple")) {
    if (!tuple->isArray()) return bad(*tuple, "expected a list of types");
    t.kind = TypeKind::kTuple;
    for (JsonValue element : tuple->elements()) {
      FieldReader fields(element, "tuple element");
      TypeId inner;
      if (auto e = type(fields, element, inner, depth + 1)) return e;
      if (auto e = fields.finish()) return e;
      t.elements.push_back(inner);
    }
    id = m.internType(t);
    return llvm::Error::success();
  }
  auto dtype = optional ? r.optional("dtype") : r.required("dtype");
  if (!dtype) return llvm::Error::success();
  auto element = parseElementType(dtype->asString().value_or(""));
  if (!element) return bad(*dtype, "unknown element type");
  auto list = r.required("dims");
  if (!list) return llvm::Error::success();
  t.element = *element;
  if (auto e = dims(*list, t.dims)) return e;
  t.encoding = r.optionalString("encoding").str();
  id = m.internType(t);
  return llvm::Error::success();
}

llvm::Error DocumentReader::shardingId(JsonValue value, ShardingId& id) {
  id = shardings_.find(value.asInt());
  if (!id) return bad(value, "expected the id of a sharding");
  return llvm::Error::success();
}

llvm::Error DocumentReader::shardingId(FieldReader& r, llvm::StringRef key, ShardingId& id) {
  auto value = r.optional(key);
  return value ? shardingId(*value, id) : llvm::Error::success();
}

llvm::Error DocumentReader::meshId(JsonValue value, MeshId& id) {
  id = meshes_.find(value.asInt());
  if (!id) return bad(value, "expected the id of a mesh");
  return llvm::Error::success();
}

// "x" or "x:(1)2"
llvm::Error DocumentReader::axes(JsonValue value, const Mesh& mesh, llvm::SmallVectorImpl<AxisRef>& out) {
  if (!value.isArray()) return bad(value, "expected a list of axes");
  for (JsonValue item : value.elements()) {
    if (!item.isString()) return bad(item, "expected an axis");
    llvm::StringRef text = *item.asString();
    AxisRef ref;
    int index = mesh.findAxis(text);
    if (index >= 0) {
      ref.size = mesh.axes[static_cast<size_t>(index)].size;
    } else {
      auto [name, rest] = text.rsplit(":(");
      auto [pre, size] = rest.split(')');
      index = mesh.findAxis(name);
      bool read = index >= 0 && !pre.getAsInteger(10, ref.pre) && !size.getAsInteger(10, ref.size);
      int64_t full = index >= 0 ? mesh.axes[static_cast<size_t>(index)].size : 0;
      if (!read || ref.pre < 1 || ref.size < 1 || full % ref.pre || (full / ref.pre) % ref.size)
        return bad(item, "mesh '" + mesh.name + "' has no axis '" + text + "'");
    }
    ref.axis = static_cast<uint32_t>(index);
    out.push_back(ref);
  }
  return llvm::Error::success();
}

llvm::Error DocumentReader::opRef(JsonValue value, OpId& out) {
  out = ops_.find(value.asInt());
  if (!out) return bad(value, "expected the id of an op that stands before");
  return llvm::Error::success();
}

llvm::Error DocumentReader::funcRef(FieldReader& r, JsonValue row, FuncId& out) {
  llvm::StringRef name = r.requiredString("fn");
  if (!r.ok()) return r.finish();
  out = m.findFunc(name);
  return out ? llvm::Error::success() : bad(row, "unknown function '" + name + "'");
}

// "a0", "17", "17.1", "r17.0.2"
llvm::Error DocumentReader::valueRef(JsonValue value, FuncId func, ValueId& out) {
  llvm::StringRef text = value.asString().value_or("");
  auto refuse = [&] { return bad(value, "'" + text + "' names no value that is known here"); };
  auto opOf = [&](llvm::StringRef digits) {
    int64_t id;
    return digits.getAsInteger(10, id) ? OpId() : ops_.find(id);
  };
  llvm::StringRef rest = text;
  uint32_t index = 0;
  if (rest.consume_front("a")) {
    const std::vector<ValueId>& args = m.region(m.func(func).body).args;
    if (rest.getAsInteger(10, index) || index >= args.size()) return refuse();
    out = args[index];
    return llvm::Error::success();
  }
  if (rest.consume_front("r")) {
    auto [op, tail] = rest.split('.');
    auto [region, arg] = tail.split('.');
    OpId owner = opOf(op);
    uint32_t nested;
    if (!owner || region.getAsInteger(10, nested) || nested >= m.op(owner).regions.size()) return refuse();
    const std::vector<ValueId>& args = m.region(m.op(owner).regions[nested]).args;
    if (arg.getAsInteger(10, index) || index >= args.size()) return refuse();
    out = args[index];
    return llvm::Error::success();
  }
  auto [op, result] = rest.split('.');
  OpId owner = opOf(op);
  if (!owner || (!result.empty() && result.getAsInteger(10, index)) || index >= m.op(owner).results.size())
    return refuse();
  out = m.op(owner).results[index];
  return llvm::Error::success();
}

}  // namespace tpu::hlo
