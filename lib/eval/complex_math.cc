// Complex functions from real ones, arranged so that small parts keep their digits.
#include "complex_math.h"

#include <cmath>
#include <limits>

#include "tpu/eval/math.h"

namespace tpu::eval {
namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
bool isZero(C z) { return z.re == 0 && z.im == 0; }
}  // namespace

// Smith's method, so that neither overflow nor underflow of |b|^2 spoils the quotient.
C divide(C a, C b) {
  if (std::fabs(b.re) >= std::fabs(b.im)) {
    if (isZero(b)) return {a.re / b.re, a.im / b.re};
    const double r = b.im / b.re, d = b.re + b.im * r;
    return {(a.re + a.im * r) / d, (a.im - a.re * r) / d};
  }
  if (std::fabs(b.im) == kInf && std::fabs(b.re) < kInf && std::fabs(a.re) < kInf && std::fabs(a.im) < kInf)
    return {0, 0};
  const double r = b.re / b.im, d = b.re * r + b.im;
  return {(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}

double modulus(C z) { return math::hypot(z.re, z.im); }

C sqrt(C z) {
  if (isZero(z)) return {0, z.im};
  if (std::fabs(z.im) == kInf) return {kInf, z.im};
  if (std::fabs(z.re) == kInf) {
    if (z.im != z.im) return z.re > 0 ? C{kInf, z.im} : C{z.im, kInf};
    return z.re > 0 ? C{kInf, std::copysign(0.0, z.im)} : C{0, std::copysign(kInf, z.im)};
  }
  double factor = 1;
  const double largest = std::fmax(std::fabs(z.re), std::fabs(z.im));
  if (largest > 0x1p1000) {
    z = scale(z, 0x1p-4);
    factor = 4;
  } else if (largest < 0x1p-900) {
    z = scale(z, 0x1p200);
    factor = 0x1p-100;
  }
  const double t = std::sqrt(0.5 * (std::fabs(z.re) + modulus(z)));
  const double other = z.im / (2 * t);
  if (z.re >= 0) return {factor * t, factor * other};
  return {factor * std::fabs(other), factor * std::copysign(t, z.im)};
}

C rsqrt(C z) { return divide({1, 0}, sqrt(z)); }

C exp(C z) {
  if (z.im == 0) return {math::exp(z.re), z.im};
  const double e = math::exp(z.re);
  if (e == 0) return {0, 0};
  if (z.re == kInf && !(std::fabs(z.im) < kInf)) return {kInf, std::numeric_limits<double>::quiet_NaN()};
  if (e == kInf && z.re < kInf) {  // e^re overflows, e^re cos(im) may not
    const double half = math::exp(0.5 * z.re);
    return {math::cos(z.im) * half * half, math::sin(z.im) * half * half};
  }
  return {e * math::cos(z.im), e * math::sin(z.im)};
}

// e^re cos(im) - 1 = expm1(re) cos(im) - 2 sin(im/2)^2.
C expm1(C z) {
  if (z.im == 0) return {math::expm1(z.re), z.im};
  const double e = math::expm1(z.re), s = math::sin(0.5 * z.im);
  return {e * math::cos(z.im) - 2 * s * s, (e + 1) * math::sin(z.im)};
}

C log(C z) {
  const double a = std::fmax(std::fabs(z.re), std::fabs(z.im)),
               b = std::fmin(std::fabs(z.re), std::fabs(z.im));
  const double angle = math::atan2(z.im, z.re);
  if (a > 0.5 && a < 2) return {0.5 * math::log1p((a - 1) * (a + 1) + b * b), angle};
  return {math::log(modulus(z)), angle};
}

C log1p(C z) {
  const double a = std::fabs(z.re) + std::fabs(z.im);
  const double angle = math::atan2(z.im, 1 + z.re);
  if (a < 0.5) return {0.5 * math::log1p(z.re * (2 + z.re) + z.im * z.im), angle};
  return log({1 + z.re, z.im});
}

C pow(C x, C y) {
  if (isZero(y)) return {1, 0};
  if (isZero(x)) return y.re > 0 ? C{0, 0} : C{kInf, std::numeric_limits<double>::quiet_NaN()};
  return exp(multiply(y, log(x)));
}

C cbrt(C z) {
  if (isZero(z)) return z;
  const double r = math::cbrt(modulus(z)), angle = math::atan2(z.im, z.re) / 3;
  return {r * math::cos(angle), r * math::sin(angle)};
}

C logistic(C z) { return divide({1, 0}, add({1, 0}, exp({-z.re, -z.im}))); }

C sign(C z) {
  if (z.re != z.re || z.im != z.im)
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  if (isZero(z)) return {0, 0};
  const double m = modulus(z);
  return {z.re / m, z.im / m};
}

C sin(C z) { return {math::sin(z.re) * math::cosh(z.im), math::cos(z.re) * math::sinh(z.im)}; }

C cos(C z) { return {math::cos(z.re) * math::cosh(z.im), -math::sin(z.re) * math::sinh(z.im)}; }

// (sin 2re + i sinh 2im) / (cos 2re + cosh 2im), through tan and sinh so that nothing cancels.
C tan(C z) {
  if (std::fabs(z.im) > 20) {
    const double s = math::sin(z.re), c = math::cos(z.re), e = math::exp(-2 * std::fabs(z.im));
    return {4 * s * c * e, std::copysign(1.0, z.im)};
  }
  const double t = math::tan(z.re), beta = 1 + t * t, s = math::sinh(z.im), rho = std::sqrt(1 + s * s);
  if (std::fabs(t) == kInf) return {1 / t, rho / s};
  const double d = 1 + beta * s * s;
  return {t / d, beta * rho * s / d};
}

C sinh(C z) {
  const C w = sin({-z.im, z.re});  // sinh z = -i sin(iz)
  return {w.im, -w.re};
}

C cosh(C z) { return cos({-z.im, z.re}); }

C tanh(C z) {
  const C w = tan({-z.im, z.re});
  return {w.im, -w.re};
}

// Kahan: asin z = atan2(re, Re(sqrt(1-z) sqrt(1+z))) + i asinh(Im(conj(sqrt(1-z)) sqrt(1+z))).
C asin(C z) {
  const C a = sqrt({1 - z.re, -z.im}), b = sqrt({1 + z.re, z.im});
  if (std::fabs(z.re) > 1e150 || std::fabs(z.im) > 1e150) {
    const double im = math::log(modulus({z.re * 0.5, z.im * 0.5})) + 2 * 0x1.62e42fefa39efp-1;
    return {math::atan2(z.re, std::fabs(z.im)), std::copysign(im, z.im)};
  }
  return {math::atan2(z.re, a.re * b.re - a.im * b.im), math::asinh(a.re * b.im - a.im * b.re)};
}

C acos(C z) {
  const C a = sqrt({1 - z.re, -z.im}), b = sqrt({1 + z.re, z.im});
  if (std::fabs(z.re) > 1e150 || std::fabs(z.im) > 1e150) {
    const double im = math::log(modulus({z.re * 0.5, z.im * 0.5})) + 2 * 0x1.62e42fefa39efp-1;
    return {math::atan2(std::fabs(z.im), z.re), -std::copysign(im, z.im)};
  }
  return {2 * math::atan2(a.re, b.re), math::asinh(b.re * a.im - b.im * a.re)};
}

C asinh(C z) {
  const C w = asin({-z.im, z.re});  // asinh z = -i asin(iz)
  return {w.im, -w.re};
}

C acosh(C z) {
  const C a = sqrt({z.re - 1, z.im}), b = sqrt({z.re + 1, z.im});
  if (std::fabs(z.re) > 1e150 || std::fabs(z.im) > 1e150) {
    const double re = math::log(modulus({z.re * 0.5, z.im * 0.5})) + 2 * 0x1.62e42fefa39efp-1;
    return {re, math::atan2(z.im, z.re)};
  }
  return {math::asinh(a.re * b.re + a.im * b.im), 2 * math::atan2(a.im, b.re)};
}

// (log1p(4 re / ((1-re)^2 + im^2)) / 4, atan2(2 im, (1-re)(1+re) - im^2) / 2), on the half plane re >= 0.
C atanh(C z) {
  const double x = std::fabs(z.re), y = std::fabs(z.im);
  C w;
  if (x > 1e150 || y > 1e150) {
    w = {0, 0x1.921fb54442d18p+0};
  } else {
    w.re = 0.25 * math::log1p(4 * x / ((1 - x) * (1 - x) + y * y));
    w.im = 0.5 * math::atan2(2 * y, (1 - x) * (1 + x) - y * y);
  }
  return {std::copysign(w.re, z.re), std::copysign(w.im, z.im)};
}

C atan(C z) {
  const C w = atanh({-z.im, z.re});  // atan z = -i atanh(iz)
  return {w.im, -w.re};
}

C atan2(C y, C x) {
  const C direction = divide(add(x, timesI(y)), sqrt(add(multiply(x, x), multiply(y, y))));
  const C l = log(direction);
  return {l.im, -l.re};
}

}  // namespace tpu::eval
