// dense<...> literals: splat, nested lists, hexadecimal bits and raw bytes, for all element types.
//
// The type stands behind the data, so the data is skipped first and read when the type is known.
#include <charconv>
#include <cstring>

#include "llvm/ADT/StringExtras.h"
#include "parser.h"
#include "rules.h"
#include "tpu/hlo/literal.h"
#include "tpu/support/host_memory.h"

namespace tpu::frontend {

using hlo::Literal;
using hlo::Type;

bool Parser::literal(Literal& literal) {
  c.blanks();
  const char* start = c.p;
  llvm::StringRef word = c.word();
  if (word == "dense_resource") return resourceLiteral(literal, start);
  if (word != "dense") return c.error(Code::kSyntaxError, start, "expected 'dense<...>'");
  if (!c.expect('<')) return false;
  const char* data = c.p;
  if (c.peek() == '"') {
    llvm::StringRef raw;
    if (!c.rawString(raw)) return false;
    if (!c.expect('>')) return false;
  } else {
    const void* close = std::memchr(c.p, '>', static_cast<size_t>(c.end - c.p));
    if (!close) return c.error(Code::kSyntaxError, start, "literal does not end");
    c.p = static_cast<const char*>(close) + 1;
  }
  if (!c.expect(':')) return false;
  literal.type = type();
  if (c.failed()) return false;
  const Type& t = m.type(literal.type);
  if (!isLiteralType(t, start)) return false;
  const char* back = c.p;
  c.p = data;
  if (!literalData(literal, Type(t), start)) return false;
  c.p = back;
  return true;
}

bool Parser::isLiteralType(const Type& type, const char* at) {
  return (type.kind == hlo::TypeKind::kTensor && !llvm::is_contained(type.dims, hlo::kDynamicDim)) ||
         c.error(Code::kBadLiteral, at, "a literal needs a tensor type of static shape");
}

// {-# dialect_resources: { builtin: { name: "0x..." } } #-}, at the end of the text. Where two dialects have a resource of
// one name, the first is it: tensors are of the dialect that every program has.
bool Parser::findResources() {
  if (resources_read_) return true;
  resources_read_ = true;
  const size_t at = llvm::StringRef(c.begin, static_cast<size_t>(c.end - c.begin)).rfind("{-#");
  if (at == llvm::StringRef::npos) return true;
  const char* back = c.p;
  c.p = c.begin + at + 3;
  const auto group = [&](auto inner) {  // "name: {...}, name: {...}", its end not taken
    do {
      std::string name;
      if (!attrName(name) || !c.expect(':') || !inner(name)) return false;
    } while (c.accept(','));
    return true;
  };
  const auto braces = [&](auto inner) { return c.expect('{') && (c.accept('}') || (group(inner) && c.expect('}'))); };
  const auto blob = [&](const std::string& name) {
    llvm::StringRef hex;
    if (c.peek() == '"') return c.rawString(hex) && (resources_.try_emplace(name, hex), true);
    c.balanced();  // a resource of another kind
    return !c.failed();
  };
  const auto dialect = [&](const std::string&) { return braces(blob); };
  const auto section = [&](const std::string&) { return braces(dialect); };
  if (!group(section) || !c.expect("#-}")) return false;
  c.p = back;
  return true;
}

// dense_resource<name> : tensor<...>. A resource's first four bytes are an alignment; then the elements follow as a buffer
// holds them: a byte for a pred or a four-bit integer.
bool Parser::resourceLiteral(Literal& literal, const char* at) {
  std::string name;
  if (!c.expect('<') || !attrName(name) || !c.expect('>') || !c.expect(':') || !findResources()) return false;
  literal.type = type();
  if (c.failed()) return false;
  const Type t = m.type(literal.type);
  if (!isLiteralType(t, at)) return false;
  const auto found = resources_.find(name);
  if (found == resources_.end())
    return c.error(Code::kElidedConstant, at,
                   "the data of this constant is not in the text; print the program with all constants");
  std::vector<uint8_t> bytes;
  if (!hexBytes(found->second, bytes, at)) return false;
  const int64_t wanted = addBytes(mulBytes(t.numElements(), hostBytes(t.element)), 4);
  if (static_cast<int64_t>(bytes.size()) != wanted)
    return c.error(Code::kBadLiteral, at, "resource '" + name + "' has " + llvm::Twine(bytes.size()) + " bytes, " +
                                              llvm::Twine(wanted) + " with its alignment were expected");
  bytes.erase(bytes.begin(), bytes.begin() + 4);
  return literalFromBytes(literal, t, std::move(bytes)) ||
         c.error(Code::kBadLiteral, at, "literal has another number of elements than its type");
}

bool Parser::literalData(Literal& literal, const Type& type, const char* at) {
  size_t size = static_cast<size_t>(hostBytes(type.element));
  char next = c.peek();
  if (next == '>') {
    if (type.numElements() != 0)
      return c.error(Code::kBadLiteral, at, "literal without elements for a type that has some");
    return true;
  }
  if (next == '"') {
    llvm::StringRef hex;
    return c.rawString(hex) && hexData(literal, type, hex, at);
  }
  if (next == '[') {
    // Room is made for what the text can hold, not for what the type claims.
    size_t possible =
        std::min<size_t>(static_cast<size_t>(type.numElements()), static_cast<size_t>(c.end - c.p));
    literal.bytes.reserve(possible * size);
    if (!elementList(type, 0, literal)) return false;
    if (literal.bytes.size() != static_cast<size_t>(type.numElements()) * size)
      return c.error(Code::kBadLiteral, at,
                     "literal has " + llvm::Twine(literal.bytes.size() / size) + " elements, its type " +
                         llvm::Twine(type.numElements()));
    return c.expect('>');
  }
  literal.splat = true;
  literal.bytes.resize(size);
  if (next == '_' && c.accept("__elided__"))
    return c.error(Code::kElidedConstant, at,
                   "the data of this constant was elided; print the program with all constants");
  return element(type.element, literal.bytes.data()) && c.expect('>');
}

bool Parser::elementList(const Type& type, size_t dim, Literal& literal) {
  if (dim >= type.dims.size()) return c.error(Code::kBadLiteral, c.p, "literal nests deeper than its type");
  if (!c.expect('[')) return false;
  int64_t count = 0;
  if (!c.accept(']')) {
    size_t size = static_cast<size_t>(hostBytes(type.element));
    bool innermost = dim + 1 == type.dims.size();
    do {
      ++count;
      if (!innermost) {
        if (!elementList(type, dim + 1, literal)) return false;
        continue;
      }
      uint8_t bytes[16];
      if (!element(type.element, bytes)) return false;
      literal.bytes.insert(literal.bytes.end(), bytes, bytes + size);
    } while (c.accept(','));
    if (!c.expect(']')) return false;
  }
  if (count != type.dims[dim])
    return c.error(
        Code::kBadLiteral, c.p,
        "list of " + llvm::Twine(count) + " entries where the type has " + llvm::Twine(type.dims[dim]));
  return true;
}

bool Parser::element(ElementType element, uint8_t* out) {
  if (!isComplex(element)) return number(element, out);
  ElementType part = element == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
  return c.expect('(') && number(part, out) && c.expect(',') && number(part, out + hostBytes(part)) &&
         c.expect(')');
}

bool Parser::number(ElementType element, uint8_t* out) {
  c.blanks();
  const char* at = c.p;
  if (*at == 't' || *at == 'f') {
    bool value = *at == 't';
    if (!c.acceptWord(value ? "true" : "false")) return c.error("expected a number");
    hlo::storeInt(element, value, out);
    return true;
  }
  bool negative = *at == '-';
  const char* digits = at + negative;
  if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
    uint64_t bits;
    auto [rest, status] = std::from_chars(digits + 2, c.end, bits, 16);
    if (status != std::errc()) return c.error(Code::kBadLiteral, at, "bad hexadecimal number");
    c.p = rest;
    if (isFloat(element))
      hlo::storeBits(element, bits, out);
    else
      hlo::storeInt(element, static_cast<int64_t>(negative ? -bits : bits), out);
    return true;
  }
  if (!isDigit(*digits)) return c.error("expected a number");
  if (isFloat(element)) {
    double value;
    auto [rest, status] = std::from_chars(at, c.end, value);
    if (status == std::errc::result_out_of_range) {
      // from_chars does not say whether it was too large or too small: the exponent's sign does.
      llvm::StringRef text(at, static_cast<size_t>(rest - at));
      size_t e = text.find_first_of("eE");
      bool tiny = (e != llvm::StringRef::npos && e + 1 < text.size() && text[e + 1] == '-') ||
                  text.starts_with("0.") || text.starts_with("-0.");
      value = tiny ? 0.0 : __builtin_inf();
      if (negative) value = -value;
    } else if (status != std::errc()) {
      return c.error("expected a number");
    }
    c.p = rest;
    hlo::storeDouble(element, value, out);
    return true;
  }
  uint64_t magnitude;
  auto [rest, status] = std::from_chars(digits, c.end, magnitude);
  if (status != std::errc()) return c.error(Code::kBadLiteral, at, "integer out of range");
  if (*rest == '.' || *rest == 'e' || *rest == 'E')
    return c.error(Code::kBadLiteral, at, "fraction in an integer literal");
  int bits = elementBits(element);
  uint64_t limit = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  uint64_t negative_limit = uint64_t{1} << (bits - 1);
  if (magnitude > (negative ? negative_limit : limit) || (negative && !isSigned(element) && magnitude != 0))
    return c.error(Code::kBadLiteral, at, "integer does not fit " + elementTypeName(element));
  c.p = rest;
  hlo::storeInt(element, static_cast<int64_t>(negative ? -magnitude : magnitude), out);
  return true;
}

// Raw bytes in hexadecimal digits.
bool Parser::hexBytes(llvm::StringRef hex, std::vector<uint8_t>& bytes, const char* at) {
  if (!hex.consume_front("0x") && !hex.consume_front("0X"))
    return c.error(Code::kBadLiteral, at, "text in a number literal");
  if (hex.size() % 2) return c.error(Code::kBadLiteral, at, "odd number of hexadecimal digits");
  bytes.resize(hex.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    unsigned high = llvm::hexDigitValue(hex[2 * i]), low = llvm::hexDigitValue(hex[2 * i + 1]);
    if (high > 15 || low > 15) return c.error(Code::kBadLiteral, at, "bad hexadecimal digit");
    bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return true;
}

bool Parser::hexData(Literal& literal, const Type& type, llvm::StringRef hex, const char* at) {
  std::vector<uint8_t> bytes;
  if (!hexBytes(hex, bytes, at)) return false;
  if (!literalFromBytes(literal, type, std::move(bytes)))
    return c.error(Code::kBadLiteral, at, "literal has another number of elements than its type");
  return true;
}

bool Parser::denseInts(Ints& values, hlo::Dims& dims) {
  Literal data;
  c.blanks();
  const char* at = c.p;
  if (!literal(data)) return false;
  const Type& t = m.type(data.type);
  if (t.element != (bools_ ? ElementType::kPred : ElementType::kS64))
    return c.error(Code::kBadLiteral, at, bools_ ? "expected values of type i1" : "expected integers of type i64");
  if (t.numElements() > (1 << 22))
    return c.error(Code::kBadLiteral, at, "too many elements for an attribute");
  dims = t.dims;
  for (int64_t i = 0; i < t.numElements(); ++i)
    values.push_back(hlo::loadInt(t.element, hlo::literalElement(m, data, i)));
  return true;
}

}  // namespace tpu::frontend
