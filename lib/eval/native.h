// The types that arithmetic is done in, and the way of the others to them and back.
//
// Floats of 16 bits or less are computed in f32 and rounded once; integers of 2 and 4 bits are computed in 8
// and wrapped.
#pragma once
#include <cstdint>

#include "tpu/support/element_type.h"

namespace tpu::eval {

/// The type that `type` is computed in: itself, f32, s8 or u8.
ElementType nativeType(ElementType type);
inline bool isNative(ElementType type) { return nativeType(type) == type; }

/// n elements to the native type.
void widen(ElementType type, const uint8_t* in, uint8_t* out, int64_t n);
/// n elements of the native type back, rounded or wrapped.
void narrow(ElementType type, const uint8_t* in, uint8_t* out, int64_t n);
/// f64 to a float type of at most 16 bits, with one rounding.
void narrowFromF64(ElementType type, const double* in, uint8_t* out, int64_t n);

}  // namespace tpu::eval
