// Elementwise loops over contiguous elements, one per op and type: the innermost layer of the evaluator.
//
// A finder gives the loop for an op on a native type (pred as bytes 0/1, integers of 8 to 64 bits, f32, f64,
// c64, c128), or null where the op is not defined on it. Narrower types are brought to a native one by
// elementwise.cc. `out` may be an operand.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "tpu/hlo/module.h"

namespace tpu::eval {

using UnaryLoop = void (*)(const uint8_t* a, uint8_t* out, int64_t n);
using BinaryLoop = void (*)(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n);

template <class T>
struct Complex {
  T re, im;
};

// Results of the operands' type; for ops that give pred (is_finite, chlo.is_inf) bytes; for abs, real and
// imag of a complex type its component type.
UnaryLoop findFloatUnary(hlo::Opcode op, ElementType type);    // f32, f64
UnaryLoop findIntegerUnary(hlo::Opcode op, ElementType type);  // pred, s8 ... u64
UnaryLoop findComplexUnary(hlo::Opcode op, ElementType type);  // c64, c128
UnaryLoop findUnary(hlo::Opcode op, ElementType type);

BinaryLoop findFloatBinary(hlo::Opcode op, ElementType type);
BinaryLoop findIntegerBinary(hlo::Opcode op, ElementType type);
BinaryLoop findComplexBinary(hlo::Opcode op, ElementType type);
BinaryLoop findBinary(hlo::Opcode op, ElementType type);

/// lhs <direction> rhs as pred; total order where the types are floats and `total_order` is set.
BinaryLoop findCompare(hlo::Comparison direction, ElementType type, bool total_order);

/// pred ? on_true : on_false on elements of 1, 2, 4, 8 or 16 bytes.
using SelectLoop = void (*)(const uint8_t* pred, const uint8_t* on_true, const uint8_t* on_false, uint8_t* out,
                            int64_t n);
SelectLoop findSelect(int width);

/// Conversions between any two native types, by the rules of stablehlo.convert.
UnaryLoop findConvert(ElementType from, ElementType to);

/// IEEE 754-2019 maximum: NaN wins, -0 < +0. Without branches, so that loops of it become vector code.
template <class T>
T ieeeMaximum(T x, T y) {
  using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const T equal = std::bit_cast<T>(std::bit_cast<U>(x) & std::bit_cast<U>(y));
  const T larger = x > y ? x : y;
  const T ordered = x == y ? equal : larger;
  const T or_y = y != y ? y : ordered;
  return x != x ? x : or_y;
}

/// IEEE 754-2019 minimum.
template <class T>
T ieeeMinimum(T x, T y) {
  using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const T equal = std::bit_cast<T>(std::bit_cast<U>(x) | std::bit_cast<U>(y));
  const T smaller = x < y ? x : y;
  const T ordered = x == y ? equal : smaller;
  const T or_y = y != y ? y : ordered;
  return x != x ? x : or_y;
}

template <class T, class R, class F>
void mapUnary(const uint8_t* a, uint8_t* out, int64_t n, F f) {
  const T* x = reinterpret_cast<const T*>(a);
  R* y = reinterpret_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

template <class T, class R, class F>
void mapBinary(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n, F f) {
  const T* x = reinterpret_cast<const T*>(a);
  const T* y = reinterpret_cast<const T*>(b);
  R* z = reinterpret_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) z[i] = f(x[i], y[i]);
}

}  // namespace tpu::eval
