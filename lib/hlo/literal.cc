// Element codecs: one parametrised float format covers everything from f64 down to f4e2m1fn.
#include "tpu/hlo/literal.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "llvm/ADT/StringExtras.h"

namespace tpu::hlo {
namespace {

// How a format spends its top codes.
enum class Specials : uint8_t {
  kIeee,      // infinities and NaNs
  kNanOnly,   // FN: all ones is NaN, no infinity
  kNegZero,   // FNUZ: the code of minus zero is the only NaN
  kNone,      // finite values only
};
struct FloatFormat {
  int exp_bits, man_bits, bias;
  Specials specials;
};

FloatFormat format(ElementType element) {
  switch (element) {
    case ElementType::kF4E2M1FN: return {2, 1, 1, Specials::kNone};
    case ElementType::kF6E2M3FN: return {2, 3, 1, Specials::kNone};
    case ElementType::kF6E3M2FN: return {3, 2, 3, Specials::kNone};
    case ElementType::kF8E3M4: return {3, 4, 3, Specials::kIeee};
    case ElementType::kF8E4M3: return {4, 3, 7, Specials::kIeee};
    case ElementType::kF8E4M3FN: return {4, 3, 7, Specials::kNanOnly};
    case ElementType::kF8E4M3FNUZ: return {4, 3, 8, Specials::kNegZero};
    case ElementType::kF8E4M3B11FNUZ: return {4, 3, 11, Specials::kNegZero};
    case ElementType::kF8E5M2: return {5, 2, 15, Specials::kIeee};
    case ElementType::kF8E5M2FNUZ: return {5, 2, 16, Specials::kNegZero};
    case ElementType::kBF16: return {8, 7, 127, Specials::kIeee};
    case ElementType::kF16: return {5, 10, 15, Specials::kIeee};
    case ElementType::kF32: return {8, 23, 127, Specials::kIeee};
    default: return {11, 52, 1023, Specials::kIeee};
  }
}

int width(const FloatFormat& f) { return 1 + f.exp_bits + f.man_bits; }

// Codes without the sign bit.
uint64_t maxFinite(const FloatFormat& f) {
  uint64_t top = (uint64_t{1} << (f.exp_bits + f.man_bits)) - 1;
  if (f.specials == Specials::kIeee) return (((uint64_t{1} << f.exp_bits) - 1) << f.man_bits) - 1;
  return f.specials == Specials::kNanOnly ? top - 1 : top;
}

uint64_t nanCode(const FloatFormat& f, uint64_t sign) {
  if (f.specials == Specials::kIeee) {
    uint64_t exp = ((uint64_t{1} << f.exp_bits) - 1) << f.man_bits;
    return sign | exp | (uint64_t{1} << (f.man_bits - 1));
  }
  if (f.specials == Specials::kNegZero) return uint64_t{1} << (width(f) - 1);
  return sign | ((uint64_t{1} << (width(f) - 1)) - 1);
}

uint64_t overflowCode(const FloatFormat& f, uint64_t sign) {
  if (f.specials == Specials::kIeee) return sign | (((uint64_t{1} << f.exp_bits) - 1) << f.man_bits);
  if (f.specials == Specials::kNone) return sign | maxFinite(f);
  return nanCode(f, sign);
}

// f8e8m0fnu: 2^(code - 127), code 255 is NaN; no sign, no zero.
uint64_t encodeScale(double value) {
  if (!(value > 0) || std::isinf(value)) return 255;
  int exp;
  double mantissa = std::frexp(value, &exp);  // value = mantissa * 2^exp, mantissa in [0.5, 1)
  int code = exp - 1 + 127;
  if (mantissa > 0.75 || (mantissa == 0.75 && (code & 1))) ++code;
  if (code < 0) return 0;
  return code > 254 ? 255 : static_cast<uint64_t>(code);
}

template <class T>
void put(T value, uint8_t* out) { std::memcpy(out, &value, sizeof(T)); }
template <class T>
T get(const uint8_t* in) {
  T value;
  std::memcpy(&value, in, sizeof(T));
  return value;
}

ElementType partType(ElementType complex) {
  return complex == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
}

}  // namespace

uint64_t encodeFloat(ElementType element, double value) {
  if (element == ElementType::kF64) return std::bit_cast<uint64_t>(value);
  if (element == ElementType::kF32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (element == ElementType::kF8E8M0FNU) return encodeScale(value);
  FloatFormat f = format(element);
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint64_t sign = (bits >> 63) << (width(f) - 1);
  uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  if (magnitude > 0x7ff0000000000000u) return nanCode(f, sign);
  if (magnitude == 0x7ff0000000000000u) return overflowCode(f, sign);
  int exp = static_cast<int>(magnitude >> 52);
  uint64_t man = magnitude & 0xfffffffffffffu;
  if (exp) man |= uint64_t{1} << 52;
  else exp = 1;
  int target = exp - 1023 + f.bias;         // biased exponent in the format
  int shift = 52 - f.man_bits;
  if (target < 1) {                          // a denormal of the format
    shift += 1 - target;
    target = 0;
  }
  uint64_t code = 0;
  if (shift < 64) {
    uint64_t half = uint64_t{1} << (shift - 1);
    uint64_t rest = man & ((half << 1) - 1);
    code = man >> shift;
    if (rest > half || (rest == half && (code & 1))) ++code;
  }
  if (target > 0) code += static_cast<uint64_t>(target - 1) << f.man_bits;  // the leading one adds the last step
  if (code > maxFinite(f)) return overflowCode(f, sign);
  if (code == 0 && f.specials == Specials::kNegZero) return 0;
  return sign | code;
}

double decodeFloat(ElementType element, uint64_t bits) {
  if (element == ElementType::kF64) return std::bit_cast<double>(bits);
  if (element == ElementType::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (element == ElementType::kF8E8M0FNU) {
    if (bits == 255) return std::numeric_limits<double>::quiet_NaN();
    return std::ldexp(1.0, static_cast<int>(bits) - 127);
  }
  FloatFormat f = format(element);
  bool negative = (bits >> (width(f) - 1)) & 1;
  uint64_t code = bits & ((uint64_t{1} << (width(f) - 1)) - 1);
  if (f.specials == Specials::kNegZero && negative && code == 0) return std::numeric_limits<double>::quiet_NaN();
  double value;
  if (code > maxFinite(f)) {
    bool infinite = f.specials == Specials::kIeee && code == maxFinite(f) + 1;
    value = infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    int exp = static_cast<int>(code >> f.man_bits);
    uint64_t man = code & ((uint64_t{1} << f.man_bits) - 1);
    if (exp) man |= uint64_t{1} << f.man_bits;
    else exp = 1;
    value = std::ldexp(static_cast<double>(man), exp - f.bias - f.man_bits);
  }
  return negative ? -value : value;
}

uint64_t loadBits(ElementType element, const uint8_t* in) {
  switch (hostBytes(element)) {
    case 1: return in[0];
    case 2: return get<uint16_t>(in);
    case 4: return get<uint32_t>(in);
    default: return get<uint64_t>(in);
  }
}

void storeBits(ElementType element, uint64_t bits, uint8_t* out) {
  switch (hostBytes(element)) {
    case 1: out[0] = static_cast<uint8_t>(bits); return;
    case 2: put(static_cast<uint16_t>(bits), out); return;
    case 4: put(static_cast<uint32_t>(bits), out); return;
    default: put(bits, out); return;
  }
}

void storeInt(ElementType element, int64_t value, uint8_t* out) {
  if (isFloat(element)) return storeBits(element, encodeFloat(element, static_cast<double>(value)), out);
  if (isComplex(element)) return storeComplex(element, static_cast<double>(value), 0, out);
  if (element == ElementType::kPred) {
    out[0] = value != 0;
    return;
  }
  uint64_t bits = static_cast<uint64_t>(value);
  int width = elementBits(element);
  if (width < 8) {
    bits &= (1u << width) - 1;
    if (isSigned(element) && (bits >> (width - 1))) bits |= ~uint64_t{0} << width;  // one byte, sign-extended
  }
  storeBits(element, bits, out);
}

void storeDouble(ElementType element, double value, uint8_t* out) {
  if (isFloat(element)) return storeBits(element, encodeFloat(element, value), out);
  if (isComplex(element)) return storeComplex(element, value, 0, out);
  if (element == ElementType::kPred) {
    out[0] = value != 0;
    return;
  }
  int bits = elementBits(element);
  double high = std::ldexp(1.0, isSigned(element) ? bits - 1 : bits);
  double low = isSigned(element) ? -high : 0;
  if (std::isnan(value)) value = 0;
  if (value >= high) return storeHighest(element, out);
  if (value <= low) return storeLowest(element, out);
  if (value < 0) return storeInt(element, static_cast<int64_t>(value), out);
  storeInt(element, static_cast<int64_t>(static_cast<uint64_t>(value)), out);
}

void storeComplex(ElementType element, double real, double imag, uint8_t* out) {
  ElementType part = partType(element);
  storeDouble(part, real, out);
  storeDouble(part, imag, out + hostBytes(part));
}

int64_t loadInt(ElementType element, const uint8_t* in) {
  if (isFloat(element) || isComplex(element)) return static_cast<int64_t>(loadDouble(element, in));
  uint64_t bits = loadBits(element, in);
  if (element == ElementType::kPred) return bits != 0;
  int width = elementBits(element);
  int shift = 64 - width;
  if (isSigned(element)) return static_cast<int64_t>(bits << shift) >> shift;
  return static_cast<int64_t>((bits << shift) >> shift);
}

double loadDouble(ElementType element, const uint8_t* in) {
  if (isComplex(element)) return loadDouble(partType(element), in);
  if (isFloat(element)) return decodeFloat(element, loadBits(element, in));
  if (element == ElementType::kU64) return static_cast<double>(get<uint64_t>(in));
  return static_cast<double>(loadInt(element, in));
}

double loadImag(ElementType element, const uint8_t* in) {
  if (!isComplex(element)) return 0;
  ElementType part = partType(element);
  return loadDouble(part, in + hostBytes(part));
}

void storeLowest(ElementType element, uint8_t* out) {
  if (isFloat(element)) {
    if (element == ElementType::kF8E8M0FNU) return storeBits(element, 0, out);
    FloatFormat f = format(element);
    uint64_t sign = uint64_t{1} << (width(f) - 1);
    return storeBits(element, sign | (f.specials == Specials::kIeee ? overflowCode(f, 0) : maxFinite(f)), out);
  }
  if (element == ElementType::kPred) {
    out[0] = 0;
    return;
  }
  int bits = elementBits(element);
  storeInt(element, isSigned(element) ? static_cast<int64_t>(~uint64_t{0} << (bits - 1)) : 0, out);
}

void storeHighest(ElementType element, uint8_t* out) {
  if (isFloat(element)) {
    if (element == ElementType::kF8E8M0FNU) return storeBits(element, 254, out);
    FloatFormat f = format(element);
    return storeBits(element, f.specials == Specials::kIeee ? overflowCode(f, 0) : maxFinite(f), out);
  }
  if (element == ElementType::kPred) {
    out[0] = 1;
    return;
  }
  int bits = elementBits(element);
  storeInt(element, static_cast<int64_t>(~uint64_t{0} >> (64 - bits + (isSigned(element) ? 1 : 0))), out);
}

Literal splatDouble(TypeId type, ElementType element, double value) {
  Literal literal;
  literal.type = type;
  literal.splat = true;
  literal.bytes.resize(static_cast<size_t>(hostBytes(element)));
  storeDouble(element, value, literal.bytes.data());
  return literal;
}

Literal splatInt(TypeId type, ElementType element, int64_t value) {
  Literal literal;
  literal.type = type;
  literal.splat = true;
  literal.bytes.resize(static_cast<size_t>(hostBytes(element)));
  storeInt(element, value, literal.bytes.data());
  return literal;
}

Literal denseInts(TypeId type, ElementType element, llvm::ArrayRef<int64_t> values) {
  Literal literal;
  literal.type = type;
  size_t size = static_cast<size_t>(hostBytes(element));
  literal.bytes.resize(size * values.size());
  for (size_t i = 0; i < values.size(); ++i) storeInt(element, values[i], literal.bytes.data() + i * size);
  return literal;
}

const uint8_t* literalElement(const Module& module, const Literal& literal, int64_t i) {
  if (literal.splat) return literal.bytes.data();
  return literal.bytes.data() + i * hostBytes(module.type(literal.type).element);
}

namespace {
std::string floatText(ElementType element, uint64_t bits) {
  double value = decodeFloat(element, bits);
  if (std::isnan(value) || std::isinf(value)) {
    std::string hex = llvm::utohexstr(bits, true);
    size_t digits = static_cast<size_t>(elementBits(element) + 3) / 4;
    return "0x" + std::string(digits - std::min(digits, hex.size()), '0') + hex;
  }
  char buffer[40];
  auto end = element == ElementType::kF64 ? std::to_chars(buffer, buffer + sizeof buffer, value)
                                          : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value));
  return std::string(buffer, end.ptr);
}
}  // namespace

std::string elementText(ElementType element, const uint8_t* in) {
  if (isComplex(element)) {
    ElementType part = partType(element);
    return "(" + floatText(part, loadBits(part, in)) + "," + floatText(part, loadBits(part, in + hostBytes(part))) + ")";
  }
  if (isFloat(element)) return floatText(element, loadBits(element, in));
  if (element == ElementType::kPred) return in[0] ? "true" : "false";
  if (element == ElementType::kU64) return llvm::utostr(loadBits(element, in));
  return llvm::itostr(loadInt(element, in));
}

}  // namespace tpu::hlo
