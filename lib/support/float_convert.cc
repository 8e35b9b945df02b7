// Narrow floating-point formats through one description of exponent, mantissa and special codes.
#include "tpu/support/float_convert.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tpu {
namespace {

constexpr FloatFormat kF4E2M1FN{4, 2, 1, 1, FloatSpecials::kFiniteOnly};
constexpr FloatFormat kF6E2M3FN{6, 2, 3, 1, FloatSpecials::kFiniteOnly};
constexpr FloatFormat kF6E3M2FN{6, 3, 2, 3, FloatSpecials::kFiniteOnly};
constexpr FloatFormat kF8E3M4{8, 3, 4, 3, FloatSpecials::kIeee};
constexpr FloatFormat kF8E4M3{8, 4, 3, 7, FloatSpecials::kIeee};
constexpr FloatFormat kF8E4M3FN{8, 4, 3, 7, FloatSpecials::kFiniteNan};
constexpr FloatFormat kF8E4M3FNUZ{8, 4, 3, 8, FloatSpecials::kUnsignedZero};
constexpr FloatFormat kF8E4M3B11FNUZ{8, 4, 3, 11, FloatSpecials::kUnsignedZero};
constexpr FloatFormat kF8E5M2{8, 5, 2, 15, FloatSpecials::kIeee};
constexpr FloatFormat kF8E5M2FNUZ{8, 5, 2, 16, FloatSpecials::kUnsignedZero};
constexpr FloatFormat kF8E8M0FNU{8, 8, 0, 127, FloatSpecials::kScale};
constexpr FloatFormat kBF16{16, 8, 7, 127, FloatSpecials::kIeee};
constexpr FloatFormat kF16{16, 5, 10, 15, FloatSpecials::kIeee};

bool hasSign(const FloatFormat& f) { return f.specials != FloatSpecials::kScale; }
uint32_t signBit(const FloatFormat& f) { return hasSign(f) ? 1u << (f.bits - 1) : 0; }
uint32_t magnitudeMask(const FloatFormat& f) { return (hasSign(f) ? signBit(f) : 1u << f.bits) - 1; }

uint32_t nanCode(const FloatFormat& f, uint32_t sign) {
  switch (f.specials) {
    case FloatSpecials::kIeee:
      return sign | (((1u << f.exponent_bits) - 1) << f.mantissa_bits) | (1u << (f.mantissa_bits - 1));
    case FloatSpecials::kFiniteNan: return sign | magnitudeMask(f);
    case FloatSpecials::kUnsignedZero: return signBit(f);
    case FloatSpecials::kFiniteOnly: return signBit(f);
    case FloatSpecials::kScale: return magnitudeMask(f);
  }
  return 0;
}

/// The largest magnitude code that is a finite number.
uint32_t maxFinite(const FloatFormat& f) {
  switch (f.specials) {
    case FloatSpecials::kIeee: return ((((1u << f.exponent_bits) - 1) << f.mantissa_bits)) - 1;
    case FloatSpecials::kFiniteNan:
    case FloatSpecials::kScale: return magnitudeMask(f) - 1;
    case FloatSpecials::kUnsignedZero:
    case FloatSpecials::kFiniteOnly: return magnitudeMask(f);
  }
  return 0;
}

uint32_t overflowCode(const FloatFormat& f, uint32_t sign) {
  switch (f.specials) {
    case FloatSpecials::kIeee: return sign | (maxFinite(f) + 1);
    case FloatSpecials::kFiniteOnly: return sign | maxFinite(f);
    default: return nanCode(f, sign);
  }
}

bool isNanCode(const FloatFormat& f, uint32_t code) {
  switch (f.specials) {
    case FloatSpecials::kIeee: return (code & magnitudeMask(f)) > maxFinite(f) + 1;
    case FloatSpecials::kFiniteNan:
    case FloatSpecials::kScale: return (code & magnitudeMask(f)) == magnitudeMask(f);
    case FloatSpecials::kUnsignedZero: return code == signBit(f);
    case FloatSpecials::kFiniteOnly: return false;
  }
  return false;
}

double powerOfTwo(int e) {
  if (e >= -1022) return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52);
  return std::bit_cast<double>(uint64_t{1} << (e + 1074));
}

/// Round to nearest even of magnitude `m` (finite, > 0) in units of the format's codes; may exceed maxFinite.
uint64_t roundMagnitude(const FloatFormat& f, double m) {
  uint64_t u = std::bit_cast<uint64_t>(m);
  int exponent = static_cast<int>(u >> 52) - 1023;
  uint64_t significand = (u & ((uint64_t{1} << 52) - 1)) | (uint64_t{1} << 52);
  if (exponent == -1023) return 0;  // a denormal f64 lies far below half of any narrow format's smallest number
  if (exponent > 200) return ~uint64_t{0} >> 1;
  int min_exponent = 1 - f.bias;  // of normal numbers; denormals share its spacing
  if (f.specials == FloatSpecials::kScale) {
    min_exponent = -f.bias;
    if (exponent < min_exponent) return 0;  // the smallest scale; there is no zero below it
  }
  int unit = std::max(exponent, min_exponent) - f.mantissa_bits;  // exponent of the last kept bit
  int shift = unit - (exponent - 52);
  if (shift > 54) return 0;
  uint64_t kept = significand >> shift, rest = significand & ((uint64_t{1} << shift) - 1);
  uint64_t half = uint64_t{1} << (shift - 1);
  uint64_t base = 0;
  if (exponent >= min_exponent) {
    uint64_t biased = static_cast<uint64_t>(exponent + f.bias);
    kept -= uint64_t{1} << f.mantissa_bits;
    base = biased << f.mantissa_bits;
  }
  uint64_t code = base + kept;
  // For a scale the parity is that of the exponent code, which is what `code` holds as well.
  if (rest > half || (rest == half && (code & 1))) ++code;
  return code;
}

}  // namespace

const FloatFormat* narrowFloatFormat(ElementType type) {
  switch (type) {
    case ElementType::kF4E2M1FN: return &kF4E2M1FN;
    case ElementType::kF6E2M3FN: return &kF6E2M3FN;
    case ElementType::kF6E3M2FN: return &kF6E3M2FN;
    case ElementType::kF8E3M4: return &kF8E3M4;
    case ElementType::kF8E4M3: return &kF8E4M3;
    case ElementType::kF8E4M3FN: return &kF8E4M3FN;
    case ElementType::kF8E4M3FNUZ: return &kF8E4M3FNUZ;
    case ElementType::kF8E4M3B11FNUZ: return &kF8E4M3B11FNUZ;
    case ElementType::kF8E5M2: return &kF8E5M2;
    case ElementType::kF8E5M2FNUZ: return &kF8E5M2FNUZ;
    case ElementType::kF8E8M0FNU: return &kF8E8M0FNU;
    case ElementType::kBF16: return &kBF16;
    case ElementType::kF16: return &kF16;
    default: return nullptr;
  }
}

float narrowToF32(const FloatFormat& f, uint32_t code) {
  code &= signBit(f) | magnitudeMask(f);
  bool negative = (code & signBit(f)) != 0;
  if (isNanCode(f, code)) {
    uint32_t sign = negative && f.specials != FloatSpecials::kUnsignedZero ? 0x80000000u : 0;
    return std::bit_cast<float>(sign | 0x7fc00000u);
  }
  uint32_t magnitude = code & magnitudeMask(f);
  double value;
  if (f.specials == FloatSpecials::kIeee && magnitude > maxFinite(f)) {
    value = std::numeric_limits<double>::infinity();
  } else {
    int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
    double fraction = magnitude & ((1u << f.mantissa_bits) - 1);
    if (exponent == 0 && f.specials != FloatSpecials::kScale)
      value = fraction * powerOfTwo(1 - f.bias - f.mantissa_bits);
    else
      value = (fraction + powerOfTwo(f.mantissa_bits)) * powerOfTwo(exponent - f.bias - f.mantissa_bits);
  }
  return static_cast<float>(negative ? -value : value);
}

uint32_t f64ToNarrow(const FloatFormat& f, double value) {
  uint32_t sign = std::signbit(value) ? signBit(f) : 0;
  if (std::isnan(value)) return nanCode(f, sign);
  // A scale has no sign and no zero: negative numbers are NaN, zero is the smallest scale (as APFloat has it).
  if (f.specials == FloatSpecials::kScale && value < 0) return nanCode(f, 0);
  if (std::isinf(value)) return overflowCode(f, sign);
  uint64_t magnitude = value == 0 ? 0 : roundMagnitude(f, std::fabs(value));
  if (magnitude > maxFinite(f)) return overflowCode(f, sign);
  if (magnitude == 0 && f.specials == FloatSpecials::kUnsignedZero) return 0;
  return sign | static_cast<uint32_t>(magnitude);
}

float f16ToF32(uint16_t code) {
  uint32_t sign = static_cast<uint32_t>(code & 0x8000) << 16, magnitude = code & 0x7fff;
  if (magnitude > 0x7c00) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (magnitude == 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u);
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  float denormal = static_cast<float>(magnitude) * 0x1p-24f;
  return sign ? -denormal : denormal;
}

uint16_t f32ToF16(float value) { return static_cast<uint16_t>(f64ToNarrow(kF16, value)); }

}  // namespace tpu
