// Functions of a complex number in f64, in the branches of C99 and StableHLO.
#pragma once
#include "loops.h"

namespace tpu::eval {

using C = Complex<double>;

inline C add(C a, C b) { return {a.re + b.re, a.im + b.im}; }
inline C subtract(C a, C b) { return {a.re - b.re, a.im - b.im}; }
inline C multiply(C a, C b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline C scale(C a, double s) { return {a.re * s, a.im * s}; }
inline C timesI(C a) { return {-a.im, a.re}; }
C divide(C a, C b);
double modulus(C z);
C sqrt(C z);
C rsqrt(C z);
C exp(C z);
C expm1(C z);
C log(C z);
C log1p(C z);
C pow(C x, C y);
C cbrt(C z);
C logistic(C z);
C sign(C z);
C sin(C z);
C cos(C z);
C tan(C z);
C sinh(C z);
C cosh(C z);
C tanh(C z);
C asin(C z);
C acos(C z);
C atan(C z);
C asinh(C z);
C acosh(C z);
C atanh(C z);
/// -i log((x + i y) / sqrt(x^2 + y^2)).
C atan2(C y, C x);

}  // namespace tpu::eval
