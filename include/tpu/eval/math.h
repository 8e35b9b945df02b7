// Elementary and special functions on f64, written out here so that results do not depend on the host's C
// library.
//
// Only + - * /, square root and explicit fused multiply-adds are used. Errors measured against 200-bit
// arithmetic (math_test): the elementary functions stay within 3 ulp of f64 (sine and cosine for arguments of
// any size), the special functions within about 1e-13 relative to the larger of the result and 1. An f32
// result made by rounding is therefore almost always the correctly rounded one. Special values follow IEEE
// 754 and C.
#pragma once
#include <cstdint>

namespace tpu::math {

double exp(double x);
double expm1(double x);
double log(double x);
double log1p(double x);
double pow(double x, double y);
double cbrt(double x);
double logistic(double x);

double sin(double x);
double cos(double x);
double tan(double x);
double atan(double x);
double atan2(double y, double x);
double asin(double x);
double acos(double x);

double sinh(double x);
double cosh(double x);
double tanh(double x);
double asinh(double x);
double acosh(double x);
double atanh(double x);
/// sqrt(x*x + y*y) without overflow.
double hypot(double x, double y);

double erf(double x);
double erfc(double x);
double erfInv(double x);
double lgamma(double x);  // log |gamma(x)|
double digamma(double x);
double polygamma(double n, double x);
double zeta(double s, double q);  // Hurwitz
double besselI1e(double x);       // exp(-|x|) I1(x)

double floor(double x);
double ceil(double x);
double roundHalfAway(double x);
double roundHalfEven(double x);
/// C's fmod: exact, sign of x.
double fmod(double x, double y);
double ldexp(double x, int n);

}  // namespace tpu::math
