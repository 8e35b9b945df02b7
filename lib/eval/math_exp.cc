// Exponentials and logarithms by argument reduction and series whose coefficients are plain fractions.
#include <bit>
#include <cmath>
#include <limits>

#include "tpu/eval/math.h"

namespace tpu::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2Hi = 0x1.62e42fef00000p-1;  // 33 bits: an exponent times it is exact
constexpr double kLn2Lo = 0x1.473de6af278edp-34;
constexpr double kLog2E = 1.44269504088896340736;
constexpr double kShift = 0x1.8p52;  // adding it rounds to an integer

// (e^r - 1 - r - r^2/2) / r^3 for |r| <= 0.36: the Taylor series to r^14.
double expTail(double r) {
  double p = 1.0 / 87178291200.0;
  p = p * r + 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  return p * r + 1.0 / 6.0;
}

// e^(x + low) with |low| far below |x|.
double expSum(double x, double low) {
  if (x > 709.79) return kInf;
  if (x < -745.2) return 0;
  const double n = (x * kLog2E + kShift) - kShift;
  const double hi = x - n * kLn2Hi, lo = n * kLn2Lo - low;
  const double r = hi - lo;
  const double err = (hi - r) - lo;
  const double tail = r * r * 0.5 + r * r * r * expTail(r) + err;
  return ldexp(1.0 + (r + tail), static_cast<int>(n));
}

// The series of atanh: log(1 + f) = 2s + s^3 (2/3 + z logRest(z)), s = f / (2 + f), z = s^2, |s| <= 0.1716.
double logRest(double z) {
  double p = 2.0 / 25;
  p = p * z + 2.0 / 23;
  p = p * z + 2.0 / 21;
  p = p * z + 2.0 / 19;
  p = p * z + 2.0 / 17;
  p = p * z + 2.0 / 15;
  p = p * z + 2.0 / 13;
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9;
  p = p * z + 2.0 / 7;
  return p * z + 2.0 / 5;
}

double logNearOne(double f, double e, double low) {
  const double s = f / (2.0 + f);
  const double z = s * s, r = z * (2.0 / 3 + z * logRest(z));
  return e * kLn2Hi - ((s * (f - r) - (e * kLn2Lo + low)) - f);
}

struct Split {
  double mantissa;  // in [sqrt(1/2), sqrt(2))
  int exponent;
};

// x positive and finite.
Split split(double x) {
  int e = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    e = -54;
  }
  uint64_t u = std::bit_cast<uint64_t>(x);
  e += static_cast<int>(u >> 52) - 1023;
  u = (u & 0xfffffffffffffull) | 0x3ff0000000000000ull;
  double m = std::bit_cast<double>(u);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++e;
  }
  return {m, e};
}

struct Double2 {
  double hi, lo;
};

Double2 fastSum(double a, double b) {
  const double s = a + b;
  return {s, b - (s - a)};
}

Double2 product(Double2 a, Double2 b) {
  const double hi = a.hi * b.hi;
  const double lo = std::fma(a.hi, b.hi, -hi) + (a.hi * b.lo + a.lo * b.hi);
  return fastSum(hi, lo);
}

// log(x) to about 2^-65, x positive and finite.
Double2 logDouble2(double x) {
  const Split parts = split(x);
  const double f = parts.mantissa - 1.0, e = parts.exponent;
  const double d = 2.0 + f, d_lo = f - (d - 2.0);
  Double2 s{f / d, 0};
  s.lo = (std::fma(-s.hi, d, f) - s.hi * d_lo) / d;
  const Double2 z = product(s, s);
  const Double2 cube = product(product(s, z), {2.0 / 3, 0x1.5555555555555p-55});
  const double rest = s.hi * z.hi * z.hi * logRest(z.hi);
  Double2 sum = fastSum(e * kLn2Hi, 0);
  const Double2 terms[] = {{2 * s.hi, 2 * s.lo}, cube, {e * kLn2Lo, rest}};
  for (const Double2& term : terms) {
    const double a = sum.hi, b = term.hi, t = a + b, bb = t - a;
    sum = fastSum(t, ((a - (t - bb)) + (b - bb)) + sum.lo + term.lo);
  }
  return sum;
}

bool isOddInteger(double y) {
  const double a = std::fabs(y);
  if (a < 1 || a >= 0x1p53) return false;
  const int64_t n = static_cast<int64_t>(a);
  return static_cast<double>(n) == a && (n & 1);
}

double powPositive(double x, double y) {
  const Double2 l = logDouble2(x);
  const double hi = l.hi * y;
  if (!(std::fabs(hi) < 1000)) return hi > 0 ? kInf : 0;
  const double lo = std::fma(l.hi, y, -hi) + l.lo * y;
  return expSum(hi, lo);
}

}  // namespace

double ldexp(double x, int n) {
  for (int i = 0; i < 2 && n > 1023; ++i, n -= 1023) x *= 0x1p1023;
  // Steps of 2^-969 leave the rounding of a denormal result to the last multiplication.
  for (int i = 0; i < 2 && n < -1022; ++i, n += 969) x *= 0x1p-969;
  n = n > 1023 ? 1023 : n < -1022 ? -1022 : n;
  return x * std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
}

double exp(double x) { return x != x ? x : expSum(x, 0); }

double expm1(double x) {
  if (x != x || x == kInf) return x;
  if (std::fabs(x) < 0.35) return x + (x * x * 0.5 + x * x * x * expTail(x));
  if (x < -40) return -1;
  return expSum(x, 0) - 1.0;
}

double log(double x) {
  if (x != x || x == kInf) return x;
  if (x <= 0) return x == 0 ? -kInf : kNan;
  const Split parts = split(x);
  return logNearOne(parts.mantissa - 1.0, parts.exponent, 0);
}

double log1p(double x) {
  if (x != x || x == kInf || x == 0) return x;
  if (x <= -1) return x == -1 ? -kInf : kNan;
  if (x > -0.29 && x < 0.41) return logNearOne(x, 0, 0);
  const double u = 1.0 + x;
  const double lost = x > 1 ? 1.0 - (u - x) : x - (u - 1.0);
  const Split parts = split(u);
  return logNearOne(parts.mantissa - 1.0, parts.exponent, lost / u);
}

double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return kNan;
  const double a = std::fabs(x);
  const bool odd = isOddInteger(y);
  const double sign = x < 0 || (x == 0 && std::signbit(x)) ? (odd ? -1.0 : 1.0) : 1.0;
  if (std::fabs(y) == kInf) {
    if (a == 1) return 1;
    return (a > 1) == (y > 0) ? kInf : 0;
  }
  if (a == 0) return y > 0 ? sign * 0.0 : sign * kInf;
  if (a == kInf) return y > 0 ? sign * kInf : sign * 0.0;
  if (x < 0 && floor(y) != y) return kNan;
  return sign * powPositive(a, y);
}

double cbrt(double x) {
  if (x != x || x == 0 || std::fabs(x) == kInf) return x;
  const double a = std::fabs(x);
  const Split parts = split(a);
  int third = parts.exponent / 3;
  if (parts.exponent - 3 * third < 0) --third;
  const double m = ldexp(parts.mantissa, parts.exponent - 3 * third);  // in [0.7, 5.7)
  double y = 0.6 + 0.25 * m;
  for (int i = 0; i < 5; ++i) y = y - (y * y * y - m) / (3 * y * y);
  const double square = y * y;  // one more step with the residue exact to first order
  const double residue = std::fma(square, y, -m) + std::fma(y, y, -square) * y;
  y -= residue / (3 * square);
  return std::copysign(ldexp(y, third), x);
}

double logistic(double x) {
  if (x != x) return x;
  if (x >= 0) return 1.0 / (1.0 + expSum(-x, 0));
  const double e = expSum(x, 0);
  return e / (1.0 + e);
}

}  // namespace tpu::math
