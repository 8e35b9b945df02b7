// Types, constants and shardings as MLIR text.
#include <charconv>
#include <cstring>

#include "llvm/ADT/StringExtras.h"
#include "tpu/hlo/literal.h"
#include "writer.h"

namespace tpu::hlo {

void StableHloWriter::type(TypeId id) {
  const Type& t = m.type(id);
  if (t.kind == TypeKind::kToken) {
    os << "!stablehlo.token";
    return;
  }
  if (t.kind == TypeKind::kTuple) {
    os << "tuple<";
    llvm::interleaveComma(t.elements, os, [&](TypeId part) { type(part); });
    os << '>';
    return;
  }
  os << "tensor<";
  for (int64_t dim : t.dims) {
    if (dim == kDynamicDim)
      os << "?x";
    else
      os << dim << 'x';
  }
  bool quantized = llvm::StringRef(t.encoding).starts_with("!");
  if (quantized)
    os << t.encoding;
  else
    os << elementTypeMlirName(t.element);
  if (!quantized && !t.encoding.empty()) os << ", " << t.encoding;
  os << '>';
}

void StableHloWriter::types(llvm::ArrayRef<TypeId> types) {
  os << '(';
  llvm::interleaveComma(types, os, [&](TypeId t) { type(t); });
  os << ')';
}

void StableHloWriter::element(ElementType of, const uint8_t* bytes) {
  if (isComplex(of)) {
    ElementType part = of == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
    os << '(';
    element(part, bytes);
    os << ", ";
    element(part, bytes + hostBytes(part));
    os << ')';
  } else if (of == ElementType::kPred) {
    os << (bytes[0] ? "true" : "false");
  } else if (isUnsigned(of)) {
    os << static_cast<uint64_t>(loadInt(of, bytes));
  } else if (!isFloat(of)) {
    os << loadInt(of, bytes);
  } else {
    // Digits with a point where they say the same, else the bits.
    std::string text = elementText(of, bytes);
    size_t e = text.find('e');
    if (text.find('.') == std::string::npos) text.insert(e == std::string::npos ? text.size() : e, ".0");
    double value;
    auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    uint8_t again[16] = {};
    if (status == std::errc() && end == text.data() + text.size()) storeDouble(of, value, again);
    bool digits =
        llvm::all_of(text, [](char c) { return llvm::isDigit(c) || llvm::StringRef("+-.e").contains(c); });
    if (digits && std::memcmp(again, bytes, static_cast<size_t>(hostBytes(of))) == 0)
      os << text;
    else
      os << "0x"
         << llvm::utohexstr(loadBits(of, bytes), false, static_cast<unsigned>(elementBits(of) + 3) / 4);
  }
}

// dense<...>: one element where all are equal, lists where they are few or narrow, else the bytes.
void StableHloWriter::literal(const Literal& literal) {
  const Type& t = m.type(literal.type);
  int64_t count = t.numElements();
  os << "dense<";
  constexpr int64_t kListed = 64;
  if (literal.splat) {
    element(t.element, literal.bytes.data());
  } else if (count && (count <= kListed || elementBits(t.element) < 8)) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t inner = 1;
      size_t open = 0, close = 0;
      for (size_t d = t.dims.size(); d-- > 0;) {
        inner *= t.dims[d];
        open += i % inner == 0;
        close += (i + 1) % inner == 0;
      }
      if (i) os << ", ";
      os << std::string(open, '[');
      element(t.element, literalElement(m, literal, i));
      os << std::string(close, ']');
    }
  } else if (count) {
    os << "\"0x" << llvm::toHex(literal.bytes) << '"';
  }
  os << "> : ";
  type(literal.type);
}

void StableHloWriter::meshBody(const Mesh& mesh) {
  os << "<[";
  llvm::interleaveComma(mesh.axes, os, [&](const MeshAxis& axis) {
    quoted(axis.name);
    os << '=' << axis.size;
  });
  os << ']';
  llvm::SmallVector<int64_t, 8> ids(mesh.device_ids.begin(), mesh.device_ids.end());
  if (mesh.maximal_device >= 0) ids.assign(1, mesh.maximal_device);
  if (!ids.empty()) {
    os << ", device_ids=[";
    llvm::interleaveComma(ids, os);
    os << ']';
  }
  os << '>';
}

void StableHloWriter::axisNames(const Mesh& mesh, llvm::ArrayRef<AxisRef> axes) {
  os << '{';
  llvm::interleaveComma(axes, os, [&](const AxisRef& axis) {
    const MeshAxis& full = mesh.axes[axis.axis];
    quoted(full.name);
    if (axis.pre != 1 || axis.size != full.size) os << ":(" << axis.pre << ')' << axis.size;
  });
  os << '}';
}

// None is one of an empty mesh: nothing is asked for.
void StableHloWriter::sharding(ShardingId id, int64_t rank) {
  if (!id) {
    os << "<mesh<[]>, [";
    for (int64_t i = 0; i < rank; ++i) os << (i ? ", {}" : "{}");
    os << "]>";
    return;
  }
  const Sharding& s = m.sharding(id);
  const Mesh& mesh = m.meshes[s.mesh.v];
  os << '<';
  if (mesh.name.empty()) {
    os << "mesh";
    meshBody(mesh);
  } else {
    symbol(mesh.name);
  }
  os << ", [";
  for (size_t i = 0; i < s.dims.size(); ++i) {
    const DimSharding& dim = s.dims[i];
    os << (i ? ", " : "");
    std::string text;
    {
      llvm::raw_string_ostream inner(text);
      StableHloWriter(m, inner).axisNames(mesh, dim.axes);
    }
    if (dim.open) text.insert(text.size() - 1, dim.axes.empty() ? "?" : ", ?");
    os << text;
    if (dim.priority >= 0) os << 'p' << dim.priority;
  }
  os << ']';
  if (!s.replicated.empty()) {
    os << ", replicated=";
    axisNames(mesh, s.replicated);
  }
  if (!s.unreduced.empty()) {
    os << ", unreduced=";
    axisNames(mesh, s.unreduced);
  }
  os << '>';
}

void StableHloWriter::shardings(llvm::ArrayRef<int64_t> ids, llvm::ArrayRef<ValueId> values) {
  os << '[';
  for (size_t i = 0; i < ids.size(); ++i) {
    os << (i ? ", " : "");
    sharding(ShardingId(static_cast<uint32_t>(ids[i])), i < values.size() ? m.typeOf(values[i]).rank() : 0);
  }
  os << ']';
}

}  // namespace tpu::hlo
