// Reading and writing single elements of literals.
#include "tpu/hlo/literal.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "llvm/ADT/StringExtras.h"
#include "tpu/support/float_convert.h"

namespace tpu::hlo {
namespace {

template <class T>
void put(T value, uint8_t* out) {
  std::memcpy(out, &value, sizeof(T));
}
template <class T>
T get(const uint8_t* in) {
  T value;
  std::memcpy(&value, in, sizeof(T));
  return value;
}

// The code of the smallest or largest value: an infinity where there is one, else the largest magnitude.
uint64_t extremeFloat(ElementType element, bool negative) {
  double infinity = std::numeric_limits<double>::infinity();
  const FloatFormat* format = narrowFloatFormat(element);
  if (!format || format->specials == FloatSpecials::kIeee || format->specials == FloatSpecials::kFiniteOnly)
    return encodeFloat(element, negative ? -infinity : infinity);
  if (format->specials == FloatSpecials::kScale) return negative ? 0 : 254;
  uint64_t sign = uint64_t{1} << (format->bits - 1);
  uint64_t largest = sign - (format->specials == FloatSpecials::kFiniteNan ? 2 : 1);
  return negative ? sign | largest : largest;
}

ElementType partType(ElementType complex) {
  return complex == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
}

}  // namespace

uint64_t encodeFloat(ElementType element, double value) {
  if (element == ElementType::kF64) return std::bit_cast<uint64_t>(value);
  if (element == ElementType::kF32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return f64ToNarrow(*narrowFloatFormat(element), value);
}

double decodeFloat(ElementType element, uint64_t bits) {
  if (element == ElementType::kF64) return std::bit_cast<double>(bits);
  if (element == ElementType::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return narrowToF32(*narrowFloatFormat(element), static_cast<uint32_t>(bits));
}

uint64_t loadBits(ElementType element, const uint8_t* in) {
  switch (hostBytes(element)) {
    case 1:
      return in[0];
    case 2:
      return get<uint16_t>(in);
    case 4:
      return get<uint32_t>(in);
    default:
      return get<uint64_t>(in);
  }
}

void storeBits(ElementType element, uint64_t bits, uint8_t* out) {
  switch (hostBytes(element)) {
    case 1:
      out[0] = static_cast<uint8_t>(bits);
      return;
    case 2:
      put(static_cast<uint16_t>(bits), out);
      return;
    case 4:
      put(static_cast<uint32_t>(bits), out);
      return;
    default:
      put(bits, out);
      return;
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
  if (isFloat(element)) return storeBits(element, extremeFloat(element, true), out);
  int bits = elementBits(element);
  int64_t lowest = isSigned(element) ? static_cast<int64_t>(~uint64_t{0} << (bits - 1)) : 0;
  storeInt(element, lowest, out);
}

void storeHighest(ElementType element, uint8_t* out) {
  if (isFloat(element)) return storeBits(element, extremeFloat(element, false), out);
  if (element == ElementType::kPred) return storeInt(element, 1, out);
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
  auto end = element == ElementType::kF64
                 ? std::to_chars(buffer, buffer + sizeof buffer, value)
                 : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value));
  return std::string(buffer, end.ptr);
}
}  // namespace

std::string elementText(ElementType element, const uint8_t* in) {
  if (isComplex(element)) {
    ElementType part = partType(element);
    return "(" + floatText(part, loadBits(part, in)) + "," +
           floatText(part, loadBits(part, in + hostBytes(part))) + ")";
  }
  if (isFloat(element)) return floatText(element, loadBits(element, in));
  if (element == ElementType::kPred) return in[0] ? "true" : "false";
  if (element == ElementType::kU64) return llvm::utostr(loadBits(element, in));
  return llvm::itostr(loadInt(element, in));
}

}  // namespace tpu::hlo
