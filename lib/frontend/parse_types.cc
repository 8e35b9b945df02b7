// Types: tensor<4x?xf32>, tensor<2x!quant.uniform<...>>, tuples, tokens, aliases.
#include "parser.h"
#include "tpu/hlo/quantized.h"

namespace tpu::frontend {

bool Parser::elementType(hlo::Type& type) {
  c.blanks();
  const char* start = c.p;
  if (*c.p == '!') {
    llvm::StringRef text = c.balanced();
    if (c.failed()) return false;
    if (auto alias = aliases_.find(text); alias != aliases_.end()) {
      const char* back = c.p;
      c.p = alias->second.text;
      text = c.balanced();
      if (c.failed()) return false;
      c.p = back;
    }
    std::string why;
    const auto quantization = hlo::parseQuantization(text, &why);
    if (!quantization)
      return c.error(Code::kUnknownType, start,
                     "unknown element type '" + text + "'" + (why.empty() ? "" : ": " + why));
    type.element = quantization->storage;
    type.encoding = hlo::quantizationText(*quantization);
    return true;
  }
  llvm::StringRef name = c.word();
  if (name == "complex") {
    if (!c.expect('<')) return false;
    llvm::StringRef part = c.word();
    if (!c.expect('>')) return false;
    if (part == "f32")
      type.element = ElementType::kC64;
    else if (part == "f64")
      type.element = ElementType::kC128;
    else
      return c.error(Code::kUnknownType, start, "unknown element type 'complex<" + part + ">'");
    return true;
  }
  auto element = parseElementType(name);
  if (!element) return c.error(Code::kUnknownType, start, "unknown element type '" + name + "'");
  type.element = *element;
  return true;
}

hlo::TypeId Parser::type() {
  c.blanks();
  const char* start = c.p;
  if (*c.p == '!') {
    ++c.p;
    llvm::StringRef name = c.word();
    if (name == "stablehlo.token" || name == "mhlo.token") return m.tokenType();
    auto alias = aliases_.find("!" + name.str());
    if (alias == aliases_.end() || alias->second.state == Alias::kOpen) {
      c.error(Code::kUnknownType, start, "unknown type '!" + name + "'");
      return {};
    }
    if (alias->second.state == Alias::kDone) return alias->second.type;
    const char* back = c.p;
    c.p = alias->second.text;
    alias->second.state = Alias::kOpen;
    const TypeId id = type();
    if (c.failed()) return {};
    alias->second.state = Alias::kDone;
    alias->second.type = id;
    c.p = back;
    return id;
  }
  llvm::StringRef name = c.word();
  hlo::Type t;
  if (name == "tuple") {
    if (++nesting_ > kMaxDepth) {
      c.error(Code::kTooDeep, start, "types nest too deeply");
      return {};
    }
    t.kind = hlo::TypeKind::kTuple;
    if (!c.expect('<')) return {};
    if (!c.accept('>')) {
      do t.elements.push_back(type());
      while (c.accept(','));
      if (!c.expect('>')) return {};
    }
    --nesting_;
    if (c.failed()) return {};
    const TypeId id = m.internType(t);
    if (tuple_parts_.tooMany(m, id)) c.error(Code::kTooDeep, start, "tuple of too many parts");
    return id;
  }
  if (name == "token") return m.tokenType();
  if (name != "tensor") {
    c.error(Code::kUnknownType, start,
            name.empty() ? llvm::Twine("expected a type") : "unknown type '" + name + "'");
    return {};
  }
  if (!c.expect('<')) return {};
  for (;;) {
    int64_t dim;
    if (isDigit(*c.p)) {
      if (!c.digits(dim)) return {};
    } else if (*c.p == '?') {
      ++c.p;
      dim = hlo::kDynamicDim;
    } else {
      break;
    }
    if (t.dims.size() == kMaxRank) {
      c.error(Code::kUnknownType, start, "tensor has too many dimensions");
      return {};
    }
    t.dims.push_back(dim);
    if (*c.p != 'x') {
      c.error("expected 'x'");
      return {};
    }
    ++c.p;
  }
  if (!elementType(t)) return {};
  if (c.accept(',')) {
    llvm::StringRef encoding = c.balanced();
    if (t.encoding.empty()) t.encoding = encoding.str();
  }
  if (!c.expect('>')) return {};
  int64_t count = 1;
  for (int64_t dim : t.dims)
    if (dim != hlo::kDynamicDim && __builtin_mul_overflow(count, dim, &count)) {
      c.error(Code::kUnknownType, start, "tensor has more elements than can be counted");
      return {};
    }
  return t.encoding.empty() ? m.tensorType(t.element, t.dims) : m.internType(t);
}

bool Parser::bareTypes(llvm::SmallVectorImpl<TypeId>& types) {
  do {
    types.push_back(type());
    if (c.failed()) return false;
  } while (c.accept(','));
  return true;
}

bool Parser::typeList(llvm::SmallVectorImpl<TypeId>& types) {
  if (!c.accept('(')) {
    types.push_back(type());
    return !c.failed();
  }
  if (c.accept(')')) return true;
  return bareTypes(types) && c.expect(')');
}

bool Parser::maybeTypeSuffix() {
  if (in_keyword_ || !c.accept(':')) return true;
  c.balanced();
  return !c.failed();
}

}  // namespace tpu::frontend
