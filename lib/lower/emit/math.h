// Functions of f32 and 32-bit integers written out in vector instructions. Results are within 2 ulp over all finite
// arguments (math_test.cc measures each); NaN, infinities, signed zeros and denormals follow IEEE 754.
//
// The machine has no fused multiply-add: where a product's error counts, factors are split into 12-bit halves, whose
// products are exact.
#pragma once
#include "vec.h"

namespace tpu::lower::emit {

/// x = hi + lo with 12 significant bits in hi and at most 12 in lo.
struct Halves {
  F hi, lo;
};
inline Halves split(F x) {
  const F hi = asF(asI(x) & 0xfffff000u);
  return {hi, x - hi};
}
/// A value held as an unevaluated sum, |lo| at most half an ulp of hi.
struct Pair {
  F hi, lo;
};
/// a + b exactly, for |a| >= |b| or a = 0.
inline Pair fastTwoSum(F a, F b) {
  const F s = a + b;
  return {s, b - (s - a)};
}
/// a + b exactly.
inline Pair twoSum(F a, F b) {
  const F s = a + b;
  const F t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
/// a * b exactly where nothing under- or overflows.
inline Pair twoProduct(F a, F b) {
  const F p = a * b;
  const Halves x = split(a), y = split(b);
  return {p, x.lo * y.lo - (((p - x.hi * y.hi) - x.lo * y.hi) - x.hi * y.lo)};
}
/// c[0] + x (c[1] + x (...)).
F horner(F x, std::initializer_list<float> coefficients);

// math_exp.cc
F exponential(F x);
F exponentialMinusOne(F x);
F logistic(F x);
F hyperbolicTangent(F x);
/// 2^n for an integer-valued n in [-252, 252] applied to x in two exact steps.
F scaleByPow2(F x, F n);
// math_log.cc
F logarithm(F x);
F logOnePlus(F x);
F power(F x, F y);
// math_trig.cc
F sine(F x);
F cosine(F x);
F tangent(F x);
F arcTangent2(F y, F x);
// math_root.cc
F divide(F a, F b);
F squareRoot(F x);
F reciprocalSquareRoot(F x);
F cubeRoot(F x);
F remainder(F x, F y);
// math_erf.cc
F errorFunction(F x);
F inverseErrorFunction(F x);
// math_int.cc; divisors of 0 and minimum / -1 as HLO has them
I divideU(I a, I b);
I remainderU(I a, I b);
I divideS(I a, I b);
I remainderS(I a, I b);
/// a to the power b, b >= 0, wrapping; negative b gives 0, 1 or -1 as HLO has it. `is_signed` says whether b can be negative.
I integerPower(I a, I b, bool is_signed);

}  // namespace tpu::lower::emit
