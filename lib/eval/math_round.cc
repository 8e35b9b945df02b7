// Rounding to integers and remainders, by the bits.
#include <bit>
#include <cmath>
#include <limits>

#include "tpu/eval/math.h"

namespace tpu::math {
namespace {

// |x| >= 2^52 or not finite: already integral.
bool isIntegral(double x) { return !(std::fabs(x) < 0x1p52); }

double truncate(double x) { return std::copysign(static_cast<double>(static_cast<int64_t>(x)), x); }

// Exponent and mantissa with the leading bit in place, also for denormals; x positive.
void decompose(double x, uint64_t& mantissa, int& exponent) {
  const uint64_t u = std::bit_cast<uint64_t>(x);
  exponent = static_cast<int>(u >> 52);
  mantissa = u & 0xfffffffffffffull;
  if (exponent != 0) {
    mantissa |= 1ull << 52;
    return;
  }
  const int shift = std::countl_zero(mantissa) - 11;
  mantissa <<= shift;
  exponent = 1 - shift;
}

}  // namespace

double floor(double x) {
  if (isIntegral(x)) return x;
  const double t = truncate(x);
  return t > x ? t - 1.0 : t;
}

double ceil(double x) {
  if (isIntegral(x)) return x;
  const double t = truncate(x);
  return t < x ? std::copysign(t + 1.0, x) : t;
}

double roundHalfAway(double x) {
  if (isIntegral(x)) return x;
  const double t = truncate(x);
  return std::fabs(x - t) >= 0.5 ? t + std::copysign(1.0, x) : t;
}

double roundHalfEven(double x) {
  if (isIntegral(x)) return x;
  const double shift = std::copysign(0x1p52, x);
  return std::copysign((x + shift) - shift, x);
}

double fmod(double x, double y) {
  const double a = std::fabs(x), b = std::fabs(y);
  if (x != x || y != y || b == 0 || a == std::numeric_limits<double>::infinity())
    return std::numeric_limits<double>::quiet_NaN();
  if (a < b) return x;
  uint64_t ma, mb;
  int ea, eb;
  decompose(a, ma, ea);
  decompose(b, mb, eb);
  for (; ea > eb; --ea) {
    if (ma >= mb) ma -= mb;
    ma <<= 1;
  }
  if (ma >= mb) ma -= mb;
  return std::copysign(ldexp(static_cast<double>(ma), eb - 1075), x);
}

}  // namespace tpu::math
