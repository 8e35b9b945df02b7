// Logarithms and powers. x = 2^k m with m in [sqrt(1/2), sqrt(2)).
#include "math.h"

namespace tpu::lower::emit {
namespace {

constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;

struct Parts {
  F k, m;
};
// x positive, normal or scaled: `bias` is added to k.
Parts significand(F x) {
  const I bits = asI(x) - 0x3f3504f3u;
  return {fromS32(sra(bits, 23u)), asF((bits & 0x7fffffu) + 0x3f3504f3u)};
}

// log(1 + f) - f for f in [sqrt(1/2) - 1, sqrt(2) - 1], with `low` joined to it.
F logTail(F f, F low) {
  const F z = f * f;
  const F p = horner(f, {0.333333135f, -0.250000089f, 0.200021192f, -0.166679963f, 0.142195463f, -0.124055788f,
                         0.11888203f, -0.116757371f, 0.0674665496f});
  return ((f * z) * p + low) - z * 0.5f;
}

// Results of zero, negative numbers, infinity and NaN as the EUP has them.
F orSpecial(F x, F r) {
  const B usual = gt(x, 0.0f) & lt(x, __builtin_inff());
  return select(usual, r, F{x.e, x.e->eup(Opcode::vlog2, x.v)});
}

Pair mulPair(Pair a, Pair b) {
  const Pair p = twoProduct(a.hi, b.hi);
  return fastTwoSum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}
Pair addPair(Pair a, Pair b) {
  const Pair s = twoSum(a.hi, b.hi);
  return fastTwoSum(s.hi, s.lo + (a.lo + b.lo));
}
Pair pairOf(Vec* e, float hi, float lo) { return {constant(e, hi), constant(e, lo)}; }

// log2 of a positive normal x to about 2^-34 relative: 2 atanh(s) log2(e), s = f / (2 + f).
Pair log2Pair(F x, F exponent_bias) {
  Vec* e = x.e;
  const Parts a = significand(x);
  const F f = a.m - 1.0f;
  const F d = f + 2.0f;
  const F d_low = f - (d - 2.0f);
  const F y = seedRcp(d);
  const F s = f * y;
  // s as a pair: the residual f - s (d + d_low), and one more correction for the seed.
  const Halves u = split(s), v = split(d);
  const F rest = ((((f - u.hi * v.hi) - u.hi * v.lo) - u.lo * v.hi) - u.lo * v.lo) - s * d_low;
  const Pair q = fastTwoSum(s, rest * y);
  const Pair z = mulPair(q, q);
  // 1 + z (1/3 + z (1/5 + ...)): the first term of the series as a pair.
  const F tail = z.hi * horner(z.hi, {0.200000763f, 0.142735407f, 0.11709968f});
  const Pair third = fastTwoSum(constant(e, 0.333333343f), tail + -9.93410776e-9f);
  const Pair series = mulPair(z, third);
  const Pair one = fastTwoSum(constant(e, 1.0f), series.hi);
  const Pair sum = mulPair(mulPair(q, {one.hi, one.lo + series.lo}), pairOf(e, 2.88539004f, 3.85192607e-8f));
  return addPair({a.k + exponent_bias, constant(e, 0.0f)}, sum);
}

}  // namespace

F logarithm(F x) {
  const B tiny = lt(x, 1.17549435e-38f);
  const Parts a = significand(select(tiny, x * 8388608.0f, x));
  const F k = a.k + select(tiny, -23.0f, 0.0f);
  const F f = a.m - 1.0f;
  const F r = (f + logTail(f, k * kLn2Low)) + k * kLn2High;
  return orSpecial(x, r);
}

F logOnePlus(F x) {
  const Pair sum = twoSum(x, constant(x.e, 1.0f));
  const Parts a = significand(sum.hi);
  const F f = a.m - 1.0f;
  const F seed = seedRcp(sum.hi);
  const F correction = sum.lo * (seed + seed * (1.0f - sum.hi * seed));
  const F r = (f + logTail(f, a.k * kLn2Low + correction)) + a.k * kLn2High;
  return asF(asI(orSpecial(sum.hi, r)) | signBit(x));
}

F power(F x, F y) {
  Vec* e = x.e;
  const F ax = abs(x), ay = abs(y);
  const B tiny = lt(ax, 1.17549435e-38f);
  const Pair l = log2Pair(select(tiny, ax * 8388608.0f, ax), select(tiny, -23.0f, 0.0f));
  // y log2 x as a pair; beyond 2^8 the result over- or underflows, and more would only overflow here.
  const F limited = withSign(min(ay, 1e30f), signBit(y));
  const Pair p = twoProduct(limited, l.hi);
  const F low = p.lo + limited * l.lo;
  const F high = min(max(p.hi, -300.0f), 300.0f);
  const F n = roundEven(high);
  const F in_range = select(eq(high, p.hi), low, 0.0f);
  const F r = (high - n) + in_range;
  const F poly = horner(r, {1.0f, 0.693147182f, 0.240226507f, 0.055504106f, 0.00961804297f, 0.00133338198f, 0.000154653739f,
                            1.5213599e-05f});
  F result = scaleByPow2(poly, n);

  // Zero and infinite x or y by their limits.
  const float inf = __builtin_inff();
  const F huge = constant(e, inf), zero = constant(e, 0.0f);
  const B grows = gt(ax, 1.0f), y_positive = gt(y, 0.0f);
  const B special_x = eq(ax, 0.0f) | eq(ax, inf);
  const B to_infinity = !(grows ^ y_positive);
  result = select(special_x | eq(ay, inf), select(to_infinity, huge, zero), result);
  // The sign: negative x to an odd integer.
  const B is_integer = eq(trunc(y), y);
  const F halved = y * 0.5f;
  const B is_odd = is_integer & ne(trunc(halved), halved);
  result = withSign(result, asI(select(is_odd, x, 0.0f)) & 0x80000000u);
  const B nan = (lt(x, 0.0f) & !is_integer & !eq(ax, inf)) | ne(x, x) | ne(y, y);
  result = select(nan, asF(constant(e, 0x7fc00000u)), result);
  return select(eq(y, 0.0f) | eq(x, 1.0f) | (eq(x, -1.0f) & eq(ay, inf)), 1.0f, result);
}

}  // namespace tpu::lower::emit
