// Bit-exact conversions between f32/f64 and the narrower floating-point types, rounding to nearest, ties to even.
//
// Out of range: types with infinities give infinity, types with a NaN but no infinity give NaN, types with neither
// saturate. NaN becomes the type's canonical quiet NaN with the sign kept where the encoding has one; types without a NaN give
// negative zero, as ml_dtypes does. Denormals are kept everywhere.
#pragma once
#include <bit>
#include <cstdint>

#include "tpu/support/element_type.h"

namespace tpu {

/// How a narrow format spends its codes.
enum class FloatSpecials : uint8_t {
  kIeee,        // infinities and NaNs in the top exponent
  kFiniteNan,   // "FN": no infinity, NaN is all ones below the sign
  kUnsignedZero,// "FNUZ": no infinity, no negative zero; NaN is the sign bit alone
  kFiniteOnly,  // f4, f6: no infinity, no NaN
  kScale,       // e8m0fnu: unsigned powers of two, NaN 0xff, no zero
};

struct FloatFormat {
  int bits, exponent_bits, mantissa_bits, bias;
  FloatSpecials specials;
};

/// The format of every float type of at most 16 bits (bf16 and f16 included); null for others.
const FloatFormat* narrowFloatFormat(ElementType type);

/// Any narrow code to f32; exact. Bits above the format's width are ignored.
float narrowToF32(const FloatFormat& format, uint32_t code);
/// One rounding from f64 (to which f32 widens exactly).
uint32_t f64ToNarrow(const FloatFormat& format, double value);
inline uint32_t f32ToNarrow(const FloatFormat& format, float value) { return f64ToNarrow(format, value); }

inline float bf16ToF32(uint16_t code) { return std::bit_cast<float>(static_cast<uint32_t>(code) << 16); }
inline uint16_t f32ToBf16(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 31 << 15) | 0x7fc0);
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}
/// f32 rounded to bf16 and widened again.
inline float roundToBf16(float value) { return bf16ToF32(f32ToBf16(value)); }

float f16ToF32(uint16_t code);
uint16_t f32ToF16(float value);

}  // namespace tpu
