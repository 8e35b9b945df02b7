// Widening and narrowing of the types that arithmetic is not done in.
#include "native.h"

#include <cstring>

#include "tpu/support/float_convert.h"

namespace tpu::eval {

ElementType nativeType(ElementType type) {
  switch (type) {
    case ElementType::kS2:
    case ElementType::kS4:
      return ElementType::kS8;
    case ElementType::kU2:
    case ElementType::kU4:
      return ElementType::kU8;
    default:
      return isFloat(type) && elementBits(type) <= 16 ? ElementType::kF32 : type;
  }
}

void widen(ElementType type, const uint8_t* in, uint8_t* out, int64_t n) {
  float* f = reinterpret_cast<float*>(out);
  const uint16_t* half = reinterpret_cast<const uint16_t*>(in);
  if (type == ElementType::kBF16) {
    for (int64_t i = 0; i < n; ++i) f[i] = bf16ToF32(half[i]);
  } else if (type == ElementType::kF16) {
    for (int64_t i = 0; i < n; ++i) f[i] = f16ToF32(half[i]);
  } else if (const FloatFormat* format = isNative(type) ? nullptr : narrowFloatFormat(type)) {
    for (int64_t i = 0; i < n; ++i) f[i] = narrowToF32(*format, in[i]);
  } else {
    std::memcpy(out, in, n * hostBytes(type));
  }
}

void narrow(ElementType type, const uint8_t* in, uint8_t* out, int64_t n) {
  const float* f = reinterpret_cast<const float*>(in);
  uint16_t* half = reinterpret_cast<uint16_t*>(out);
  if (type == ElementType::kBF16) {
    for (int64_t i = 0; i < n; ++i) half[i] = f32ToBf16(f[i]);
  } else if (type == ElementType::kF16) {
    for (int64_t i = 0; i < n; ++i) half[i] = f32ToF16(f[i]);
  } else if (const FloatFormat* format = isNative(type) ? nullptr : narrowFloatFormat(type)) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(f32ToNarrow(*format, f[i]));
  } else if (isInteger(type) && elementBits(type) < 8) {
    const int unused = 8 - elementBits(type);
    for (int64_t i = 0; i < n; ++i) {
      const uint8_t up = static_cast<uint8_t>(in[i] << unused);
      out[i] = isSigned(type) ? static_cast<uint8_t>(static_cast<int8_t>(up) >> unused) : up >> unused;
    }
  } else {
    std::memcpy(out, in, n * hostBytes(type));
  }
}

void narrowFromF64(ElementType type, const double* in, uint8_t* out, int64_t n) {
  const FloatFormat& format = *narrowFloatFormat(type);
  uint16_t* half = reinterpret_cast<uint16_t*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t code = f64ToNarrow(format, in[i]);
    if (hostBytes(type) == 2) {
      half[i] = static_cast<uint16_t>(code);
    } else {
      out[i] = static_cast<uint8_t>(code);
    }
  }
}

}  // namespace tpu::eval
