// exp and its relatives: x = n ln 2 + r, a polynomial in r, and 2^n from the EUP, which is exact for integers.
#include "math.h"

namespace tpu::lower::emit {
namespace {

constexpr float kLog2e = 1.44269502f;
constexpr float kLn2High = 0.693138123f;      // 17 bits: products with n up to 7 bits are exact
constexpr float kLn2Low = 9.05800061e-6f;
constexpr float kMagic = 12582912.0f;         // 1.5 * 2^23: adding it rounds to an integer

struct Reduced {
  F shifted;  // n + magic
  F n, r;
};
Reduced reduce(F x) {
  const F shifted = x * kLog2e + kMagic;
  const F n = shifted - kMagic;
  return {shifted, n, (x - n * kLn2High) - n * kLn2Low};
}

// num / (d + d_low) for d in [1, 2^100], given y = 1 / d roughly.
F quotient(F num, F d, F d_low, F y) {
  const F q = num * y;
  const Halves a = split(q), b = split(d);
  const F rest = (((num - a.hi * b.hi) - a.hi * b.lo) - a.lo * d) - q * d_low;
  return q + rest * y;
}

// e^x without the final scaling: x in [-104, 89].
F exponentialIn(F x) {
  const Reduced a = reduce(x);
  // Twice the polynomial times 2^(n-1), so that n = 128 is reached.
  const F p = horner(a.r, {2.0f, 2.0f, 0.99999988f, 0.333330422f, 0.083336778f, 0.0167374555f, 0.00276291626f});
  return p * pow2Int(a.shifted - (kMagic + 1.0f));
}

}  // namespace

F horner(F x, std::initializer_list<float> c) {
  const float* last = c.end() - 1;
  F r = constant(x.e, *last);
  while (last != c.begin()) r = r * x + *--last;
  return r;
}

F exponential(F x) { return exponentialIn(min(max(x, -104.0f), 89.0f)); }

F exponentialMinusOne(F x) {
  const Reduced a = reduce(min(max(x, -20.0f), 89.0f));
  const F q = horner(a.r, {0.49999997f, 0.166665435f, 0.0416672006f, 0.00836653076f, 0.00138825201f});
  const F e = a.r + (a.r * a.r) * q;
  // 2 (2^(n-1) e + (2^(n-1) - 1/2)); n = 0 apart, where halving a denormal would lose a bit.
  const F s = pow2Int(a.shifted - (kMagic + 1.0f));
  const F y = s * e + (s - 0.5f);
  const F r = select(eq(a.n, 0.0f), e, y + y);
  return asF(asI(r) | signBit(x));
}

F logistic(F x) {
  // With e = exp(-|x|): 1 / (1 + e), or e / (1 + e) for negative x.
  const F e = exponentialIn(max(-abs(x), -104.0f));
  const F d = e + 1.0f;
  const F num = select(lt(x, 0.0f), e, 1.0f);
  const F r = quotient(num, d, e - (d - 1.0f), seedRcp(d));
  return select(ne(x, x), x, r);
}

F hyperbolicTangent(F x) {
  const F y = min(abs(x), 10.0f);
  const F u = y * y;
  const F p = horner(u, {-0.333333164f, 0.13332586f, -0.0538523048f, 0.0210716538f, -0.00627420144f});
  const F near = y + (y * u) * p;
  // 1 - 2 / (exp(2 y) + 1)
  const F e = exponentialIn(y + y);
  const F d = e + 1.0f;
  const F far = 1.0f - quotient(constant(x.e, 2.0f), d, 1.0f - (d - e), seedRcp(d));
  const F r = select(lt(y, 0.55f), near, far);
  return select(ne(x, x), x, withSign(r, signBit(x)));
}

F scaleByPow2(F x, F n) {
  const F half = floor(n * 0.5f);
  return (x * pow2Int(half)) * pow2Int(n - half);
}

}  // namespace tpu::lower::emit
