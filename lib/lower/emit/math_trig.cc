// Trigonometric functions. Arguments are reduced by exact integer arithmetic with 224 bits of 2/pi, whatever their size.
#include "math.h"

namespace tpu::lower::emit {
namespace {

// |x| = quadrant * pi/2 + hi + lo, quadrant modulo 4, |hi| <= pi/4.
struct Angle {
  I quadrant;
  F hi, lo;  // with sign
};

// Word `index` (a register of 0 to 4) + k of the table {0, 2/pi bits 1-32, 33-64, ...}.
I tableWord(B i1, B i2, B i3, B i4, int k) {
  static constexpr uint32_t kTwoOverPi[8] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                             0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
  Vec* e = i1.e;
  I w = constant(e, kTwoOverPi[k]);
  w = select(i1, constant(e, kTwoOverPi[k + 1]), w);
  w = select(i2, constant(e, kTwoOverPi[k + 2]), w);
  w = select(i3, constant(e, kTwoOverPi[k + 3]), w);
  return k + 4 < 8 ? select(i4, constant(e, kTwoOverPi[k + 4]), w) : w;
}

Angle reduceLarge(I u) {
  Vec* e = u.e;
  // x = m 2^(E-150). The 96 bits of 2/pi from bit E-152 on give x 2/pi modulo 4.
  const I m = (u & 0x7fffffu) | 0x800000u;
  const I start = (u >> 23u) - 120u;
  const I index = start >> 5u, shift = start & 31u;
  const B i1 = ge(index, 1u), i2 = ge(index, 2u), i3 = ge(index, 3u), i4 = ge(index, 4u);
  I t[4] = {tableWord(i1, i2, i3, i4, 0), tableWord(i1, i2, i3, i4, 1), tableWord(i1, i2, i3, i4, 2),
            tableWord(i1, i2, i3, i4, 3)};
  const I back = 32u - shift;
  const I w0 = (t[0] << shift) | (t[1] >> back), w1 = (t[1] << shift) | (t[2] >> back),
          w2 = (t[2] << shift) | (t[3] >> back);
  const I low = m * w1;
  const I middle = low + mulHigh(m, w2);
  const I carry = select(ltu(middle, low), 1u, 0u);
  const I high = m * w0 + mulHigh(m, w1) + carry;
  // high:middle counts quarter turns in units of 2^-62. The nearest one goes to the quadrant, the rest is a signed fraction.
  Angle a{(high + 0x20000000u) >> 30u, {e, {}}, {e, {}}};
  const I signed_top = (high << 2u) | (middle >> 30u);
  const I sign = sra(signed_top, 31u);
  const I top = signed_top ^ sign, rest = (middle << 2u) ^ sign;
  // Normalised, then in pieces of 12 bits whose products with the pieces of pi/2 are exact.
  const I zeros = clz(top);
  const I v = (top << zeros) | (rest >> (32u - zeros));
  const F h1 = fromU32(v & 0xfff00000u), h2 = fromU32(v & 0x000fff00u), h3 = fromU32(v & 0xffu);
  constexpr float kHalfPi1 = 1.5703125f, kHalfPi2 = 4.83751297e-4f, kHalfPi3 = 7.54979013e-8f;
  const F hi = h1 * kHalfPi1;
  const F lo = (h1 * kHalfPi2 + h2 * kHalfPi1) + (h1 * kHalfPi3 + h2 * kHalfPi2 + h3 * kHalfPi1);
  const Pair r = fastTwoSum(hi, lo);
  const F scale = asF(((95u - zeros) << 23u) | (sign & 0x80000000u));
  a.hi = r.hi * scale;
  a.lo = r.lo * scale;
  return a;
}

Angle reduce(F x) {
  const I u = asI(x) & 0x7fffffffu;
  Angle a = reduceLarge(u);
  const B small = ltu(u, 0x3f490fdbu);  // pi/4
  a.hi = select(small, asF(u), a.hi);
  a.lo = select(small, constant(x.e, 0.0f), a.lo);
  a.quadrant = select(small, 0u, a.quadrant);
  return a;
}

F sineOf(F r, F lo) {
  const F z = r * r;
  return r + ((r * z) * horner(z, {-0.166666672f, 0.00833332911f, -0.000198393114f, 2.71811109e-06f}) + lo);
}
F cosineOf(F r, F lo) {
  const F z = r * r;
  const F half = z * 0.5f;
  const F w = 1.0f - half;
  const F tail = (z * z) * horner(z, {0.0416666456f, -0.00138873153f, 2.44330513e-05f}) - r * lo;
  return w + (((1.0f - w) - half) + tail);
}

F orNan(F x, F r) { return select(lt(abs(x), __builtin_inff()), r, x - x); }

}  // namespace

F sine(F x) {
  const Angle a = reduce(x);
  const F r = select(ne(a.quadrant & 1u, 0u), cosineOf(a.hi, a.lo), sineOf(a.hi, a.lo));
  const I flip = ((a.quadrant & 2u) << 30u) ^ signBit(x);
  return orNan(x, asF(asI(r) ^ flip));
}

F cosine(F x) {
  const Angle a = reduce(x);
  const F r = select(ne(a.quadrant & 1u, 0u), sineOf(a.hi, a.lo), cosineOf(a.hi, a.lo));
  const I flip = ((a.quadrant + 1u) & 2u) << 30u;
  return orNan(x, asF(asI(r) ^ flip));
}

F tangent(F x) {
  const Angle a = reduce(x);
  const F r = a.hi, z = r * r;
  const F p = horner(z, {0.333333492f, 0.13332662f, 0.0540600717f, 0.0212813672f, 0.010838001f, 8.66878108e-05f, 0.00437771529f});
  const F tail = (r * z) * p + (a.lo + a.lo * z);
  const Pair t = fastTwoSum(r, tail);
  // In odd quadrants -1 / (t.hi + t.lo).
  const F y = seedRcp(t.hi);
  const Halves u = split(y), v = split(t.hi);
  const F rest = (((1.0f - u.hi * v.hi) - u.hi * v.lo) - u.lo * t.hi) - y * t.lo;
  const F cotangent = -(y + y * rest);
  const F result = select(ne(a.quadrant & 1u, 0u), cotangent, t.hi);
  return orNan(x, asF(asI(result) ^ signBit(x)));
}

F arcTangent2(F y, F x) {
  Vec* e = x.e;
  const float inf = __builtin_inff();
  const F ax = abs(x), ay = abs(y);
  const B swapped = gt(ay, ax);
  // Two infinities count as equal, one makes the other zero.
  const B infinite = eq(max(ax, ay), inf);
  const F large = select(infinite, 1.0f, max(ax, ay));
  const F small = select(infinite, select(eq(min(ax, ay), inf), 1.0f, constant(e, 0.0f)), min(ax, ay));
  // Both scaled so that the larger lies in [1, 2); twice, for denormals.
  const auto normalizer = [&](F v) { return asF(smax(0x7f000000u - (asI(v) & 0x7f800000u), 0x00400000u)); };
  const F s1 = normalizer(large);
  const F once = large * s1;
  const F s2 = normalizer(once);
  const F b = once * s2, a = (small * s1) * s2;
  // Beyond tan(pi/8) the angle is pi/4 + atan((a - b) / (a + b)).
  const B upper = gt(a, b * 0.414213562f);
  const F difference = a - b, sum = b + a;
  const F num = select(upper, difference, a), den = select(upper, sum, b);
  const F num_low = select(upper, (a - (difference + b)), constant(e, 0.0f));
  const F den_low = select(upper, a - (sum - b), constant(e, 0.0f));
  const F seed = seedRcp(den);
  const F q = num * seed;
  const Halves u = split(q), v = split(den);
  const F rest = ((((num - u.hi * v.hi) - u.hi * v.lo) - u.lo * den) - q * den_low) + num_low;
  const F t = select(eq(small, 0.0f), constant(e, 0.0f), q + rest * seed);
  const F z = t * t;
  const F tail = (t * z) * horner(z, {-0.333333313f, 0.19999902f, -0.142819434f, 0.110438593f, -0.0847140998f, 0.0473358631f});
  // k quarters of pi plus or minus that angle.
  const B negative = ne(signBit(x), 0u);
  const F base = select(upper, 1.0f, 0.0f);
  const F first = select(swapped, 2.0f - base, base);
  const F k = select(negative, 4.0f - first, first);
  const I flip = select(swapped ^ negative, 0x80000000u, 0u);
  const F st = asF(asI(t) ^ flip), stail = asF(asI(tail) ^ flip);
  const F angle = k * 0.78539753f + (st + (stail + k * 6.33795423e-07f));
  // k = 0 keeps the tail separate.
  const F r = select(eq(k, 0.0f), st + stail, angle);
  return select(ne(x, x) | ne(y, y), x + y, withSign(abs(r), signBit(y)));
}

}  // namespace tpu::lower::emit
