// Hyperbolic functions and their inverses, from expm1 and log1p so that small arguments keep their digits.
#include <cmath>
#include <limits>
#include <utility>

#include "tpu/eval/math.h"

namespace tpu::math {
namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
}  // namespace

double sinh(double x) {
  const double a = std::fabs(x);
  if (!(a < 710)) {
    const double half = exp(0.5 * a);
    return std::copysign(0.5 * half * half, x);
  }
  const double t = expm1(a);
  if (a < 1) return std::copysign(0.5 * (2 * t - t * t / (t + 1)), x);
  return std::copysign(0.5 * (t + t / (t + 1)), x);
}

double cosh(double x) {
  const double a = std::fabs(x);
  if (!(a < 710)) {
    const double half = exp(0.5 * a);
    return 0.5 * half * half;
  }
  const double e = exp(a);
  return 0.5 * (e + 1 / e);
}

double tanh(double x) {
  const double a = std::fabs(x);
  if (a > 22) return std::copysign(1.0, x);
  if (a != a || a < 0x1p-28) return x;
  const double t = expm1(-2 * a);
  return std::copysign(-t / (t + 2), x);
}

double asinh(double x) {
  const double a = std::fabs(x);
  if (a != a || a < 0x1p-28) return x;
  if (a > 0x1p28) return std::copysign(log(a) + kLn2, x);
  const double square = a * a;
  return std::copysign(log1p(a + square / (1 + std::sqrt(1 + square))), x);
}

double acosh(double x) {
  if (!(x >= 1)) return kNan;
  if (x > 0x1p28) return log(x) + kLn2;
  const double t = x - 1;
  return log1p(t + std::sqrt(2 * t + t * t));
}

double atanh(double x) {
  const double a = std::fabs(x);
  if (!(a <= 1)) return kNan;
  if (a < 0x1p-28) return x;
  return std::copysign(0.5 * log1p(2 * a / (1 - a)), x);
}

double hypot(double x, double y) {
  double a = std::fabs(x), b = std::fabs(y);
  if (a == std::numeric_limits<double>::infinity() || b == std::numeric_limits<double>::infinity())
    return std::numeric_limits<double>::infinity();
  if (a < b) std::swap(a, b);
  if (a != a || b != b || b <= a * 0x1p-60) return a + b;
  const double scale = a > 0x1p500 ? 0x1p-600 : a < 0x1p-400 ? 0x1p600 : 1;
  a *= scale;
  b *= scale;
  const double aa = a * a, bb = b * b, sum = aa + bb;
  const double err = std::fma(a, a, -aa) + std::fma(b, b, -bb) + (bb - (sum - aa));
  const double root = std::sqrt(sum);
  return (root + (std::fma(-root, root, sum) + err) / (2 * root)) / scale;
}

}  // namespace tpu::math
