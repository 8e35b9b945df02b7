// Sine, cosine, tangent for arguments of any size, and their inverses.
//
// x is reduced to r = x - n pi/2, |r| <= pi/4, held as a sum of two doubles: for moderate x by subtracting n
// times pi/2 in pieces of 33 bits, beyond that by multiplying with the right 192 bits of 2/pi (Payne and
// Hanek).
#include <bit>
#include <cmath>
#include <limits>

#include "tpu/eval/math.h"

namespace tpu::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kHalfPiHi = 0x1.921fb54442d18p+0, kHalfPiLo = 0x1.1a62633145c07p-54;
constexpr double kPiHi = 2 * kHalfPiHi, kPiLo = 2 * kHalfPiLo;

struct Reduced {
  double hi, lo;
  int quadrant;
};

Reduced reduceModerate(double x) {
  constexpr double kPart1 = 0x1.921fb54400000p+0, kPart2 = 0x1.0b4611a600000p-34,
                   kPart3 = 0x1.3198a2e000000p-69, kPart4 = 0x1.b839a252049c1p-104;
  const double n = (x * 0.63661977236758134308 + 0x1.8p52) - 0x1.8p52;
  const double y0 = x - n * kPart1;
  const double w1 = n * kPart2, y1 = y0 - w1, v1 = y1 - y0, lost1 = (y0 - (y1 - v1)) + (-w1 - v1);
  const double w2 = n * kPart3, y2 = y1 - w2, v2 = y2 - y1, lost2 = (y1 - (y2 - v2)) + (-w2 - v2);
  const double tail = (lost1 + lost2) - n * kPart4;
  const double hi = y2 + tail;
  return {hi, (y2 - hi) + tail, static_cast<int>(static_cast<int64_t>(n) & 3)};
}

// 2/pi = 0.w0 w1 w2 ...
constexpr uint64_t kTwoOverPi[20] = {
    0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u,
    0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u,
    0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du,
    0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu, 0xf0cfbc209af4361du};

// The 64 bits of 2/pi that begin `bit` places behind the point.
uint64_t twoOverPiAt(int bit) {
  if (bit <= -64) return 0;
  if (bit < 0) return kTwoOverPi[0] >> -bit;
  const int word = bit / 64, shift = bit % 64;
  const uint64_t high = word < 20 ? kTwoOverPi[word] : 0, low = word < 19 ? kTwoOverPi[word + 1] : 0;
  return shift == 0 ? high : high << shift | low >> (64 - shift);
}

Reduced reduceLarge(double x) {
  using Wide = unsigned __int128;
  const uint64_t u = std::bit_cast<uint64_t>(std::fabs(x));
  const int exponent = static_cast<int>(u >> 52) - 1075;  // x = mantissa * 2^exponent
  const uint64_t mantissa = (u & 0xfffffffffffffull) | 1ull << 52;
  // mantissa times the 192 bits of 2/pi from weight 2^(2 - exponent) on, modulo 4: a fixed-point number with
  // 190 fraction bits.
  const int at = exponent - 2;
  const Wide p0 = static_cast<Wide>(mantissa) * twoOverPiAt(at + 128);
  const Wide p1 = static_cast<Wide>(mantissa) * twoOverPiAt(at + 64) + static_cast<uint64_t>(p0 >> 64);
  uint64_t top = mantissa * twoOverPiAt(at) + static_cast<uint64_t>(p1 >> 64);
  uint64_t mid = static_cast<uint64_t>(p1), low = static_cast<uint64_t>(p0);
  int quadrant = static_cast<int>(top >> 62);
  top <<= 2;  // the fraction, in units of 2^-64
  top |= mid >> 62;
  mid = mid << 2 | low >> 62;
  low <<= 2;
  const bool up = top >> 63;
  if (up) {  // nearest: the fraction minus one
    ++quadrant;
    low = ~low + 1;
    mid = ~mid + (low == 0);
    top = ~top + (low == 0 && mid == 0);
  }
  // To two doubles: the leading 64 bits after normalisation split 53 + rest.
  double scale = 0x1p-64;
  if (top == 0) {
    top = mid;
    mid = low;
    low = 0;
    scale = 0x1p-128;
  }
  const int shift = top == 0 ? 0 : std::countl_zero(top);
  if (shift > 0) {
    top = top << shift | mid >> (64 - shift);
    mid = mid << shift | low >> (64 - shift);
    scale = ldexp(scale, -shift);
  }
  const double f_hi = static_cast<double>(top & ~0x7ffull) * scale;
  const double f_lo = (static_cast<double>(top & 0x7ffull) + static_cast<double>(mid) * 0x1p-64) * scale;
  const double hi = f_hi * kHalfPiHi;
  const double lo = std::fma(f_hi, kHalfPiHi, -hi) + (f_hi * kHalfPiLo + f_lo * kHalfPiHi);
  Reduced r{hi + lo, 0, quadrant & 3};
  r.lo = (hi - r.hi) + lo;
  if (up) r = {-r.hi, -r.lo, r.quadrant};
  if (x < 0) r = {-r.hi, -r.lo, (4 - r.quadrant) & 3};
  return r;
}

Reduced reduce(double x) {
  if (std::fabs(x) <= 0.78539816339744831) return {x, 0, 0};
  return std::fabs(x) < 1e6 ? reduceModerate(x) : reduceLarge(x);
}

// |x| <= pi/4, y the low part: Taylor series.
double sinKernel(double x, double y) {
  const double z = x * x;
  double p = 1.0 / 51090942171709440000.0;
  p = p * z - 1.0 / 121645100408832000.0;
  p = p * z + 1.0 / 355687428096000.0;
  p = p * z - 1.0 / 1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z - 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z - 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  p = p * z - 1.0 / 6.0;
  return x + (x * z * p + y * (1.0 - 0.5 * z));
}

double cosKernel(double x, double y) {
  const double z = x * x;
  double p = -1.0 / 1124000727777607680000.0;
  p = p * z + 1.0 / 2432902008176640000.0;
  p = p * z - 1.0 / 6402373705728000.0;
  p = p * z + 1.0 / 20922789888000.0;
  p = p * z - 1.0 / 87178291200.0;
  p = p * z + 1.0 / 479001600.0;
  p = p * z - 1.0 / 3628800.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z - 1.0 / 720.0;
  p = p * z + 1.0 / 24.0;
  const double half = 0.5 * z, w = 1.0 - half;
  return w + (((1.0 - w) - half) + (z * z * p - x * y));
}

// atan on [0, 1]: from the nearest eighth.
struct Arc {
  double hi, lo;
};
constexpr Arc kArcOfEighth[9] = {{0, 0},
                                 {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
                                 {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
                                 {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
                                 {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
                                 {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
                                 {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
                                 {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
                                 {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55}};

Arc arc(double a) {
  const int k = static_cast<int>(a * 8 + 0.5);
  const double c = k * 0.125;
  const double t = k == 0 ? a : (a - c) / (1.0 + a * c);
  const double z = t * t;
  double p = 1.0 / 15 - z * (1.0 / 17);
  p = 1.0 / 13 - z * p;
  p = 1.0 / 11 - z * p;
  p = 1.0 / 9 - z * p;
  p = 1.0 / 7 - z * p;
  p = 1.0 / 5 - z * p;
  p = 1.0 / 3 - z * p;
  return {kArcOfEighth[k].hi, kArcOfEighth[k].lo + (t - t * z * p)};
}

// atan(y / x) for y, x >= 0, not both infinite or zero, as hi + lo.
Arc arcOfQuotient(double y, double x) {
  if (y <= x) return arc(y / x);
  const Arc a = arc(x / y);
  const double hi = kHalfPiHi - a.hi;
  return {hi, ((kHalfPiHi - hi) - a.hi) + (kHalfPiLo - a.lo)};
}

}  // namespace

double sin(double x) {
  if (!(std::fabs(x) < kInf)) return kNan;
  if (std::fabs(x) < 0x1p-27) return x;
  const Reduced r = reduce(x);
  const double v = r.quadrant & 1 ? cosKernel(r.hi, r.lo) : sinKernel(r.hi, r.lo);
  return r.quadrant & 2 ? -v : v;
}

double cos(double x) {
  if (!(std::fabs(x) < kInf)) return kNan;
  const Reduced r = reduce(x);
  const double v = r.quadrant & 1 ? sinKernel(r.hi, r.lo) : cosKernel(r.hi, r.lo);
  return r.quadrant == 1 || r.quadrant == 2 ? -v : v;
}

double tan(double x) {
  if (!(std::fabs(x) < kInf)) return kNan;
  if (std::fabs(x) < 0x1p-27) return x;
  const Reduced r = reduce(x);
  const double s = sinKernel(r.hi, r.lo), c = cosKernel(r.hi, r.lo);
  return r.quadrant & 1 ? -c / s : s / c;
}

double atan(double x) {
  if (x != x) return x;
  const double a = std::fabs(x);
  if (a < 0x1p-27) return x;
  const Arc r = a == kInf ? Arc{kHalfPiHi, kHalfPiLo} : arcOfQuotient(a, 1.0);
  return std::copysign(r.hi + r.lo, x);
}

double atan2(double y, double x) {
  if (x != x || y != y) return kNan;
  const double a = std::fabs(y), b = std::fabs(x);
  const bool left = std::signbit(x);
  if (a == 0) return left ? std::copysign(kPiHi, y) : y;
  if (b == 0) return std::copysign(kHalfPiHi, y);
  if (a == kInf && b == kInf) return std::copysign(left ? 3 * (kHalfPiHi / 2) : kHalfPiHi / 2, y);
  if (b == kInf) return std::copysign(left ? kPiHi : 0.0, y);
  if (a == kInf) return std::copysign(kHalfPiHi, y);
  Arc r = arcOfQuotient(a, b);
  if (left) {
    const double hi = kPiHi - r.hi;
    r = {hi, ((kPiHi - hi) - r.hi) + (kPiLo - r.lo)};
  }
  return std::copysign(r.hi + r.lo, y);
}

double asin(double x) {
  if (!(std::fabs(x) <= 1)) return kNan;
  if (std::fabs(x) < 0x1p-27) return x;
  return atan2(x, std::sqrt((1.0 - x) * (1.0 + x)));
}

double acos(double x) {
  if (!(std::fabs(x) <= 1)) return kNan;
  return 2 * atan2(std::sqrt(1.0 - x), std::sqrt(1.0 + x));
}

}  // namespace tpu::math
