// Division, roots and the exact remainder: EUP seeds corrected by a residual that is computed without error.
#include "math.h"

namespace tpu::lower::emit {
namespace {

// 2^k with k = 127 - exponent field of x, so that x times it lies in [1, 2): below that for denormals, and infinity
// and NaN stay what they are.
F normalizer(I exponent) { return asF(smax(0x7f000000u - exponent, 0x00400000u)); }

}  // namespace

F divide(F a, F b) {
  const I ea = asI(a) & 0x7f800000u, eb = asI(b) & 0x7f800000u;
  const F x = a * normalizer(ea), d = b * normalizer(eb);
  const F y = seedRcp(d);
  const F q = x * y;
  const Halves u = split(q), v = split(d);
  const F refined = q + (((x - u.hi * v.hi) - u.hi * v.lo) - u.lo * d) * y;
  // Divisors 0 and infinity, dividends 0 and infinity: the unrefined quotient is right, its residual may be NaN.
  const F r = select(gt(abs(refined), 0.0f), refined, q);
  // Times 2^(ea - eb), in two steps of which only the last can round.
  const I n = smax(ea - eb, 0x81000000u);
  const I half = sra(n, 1u) & 0xff800000u;
  return (r * asF(half + 0x3f800000u)) * asF((n - half) + 0x3f800000u);
}

F squareRoot(F x) {
  const B tiny = lt(x, 1.26217745e-29f);  // 2^-96
  const F a = select(tiny, x * 281474976710656.0f, x);  // 2^48
  const F y = seedRsqrt(a);
  const F s = a * y;
  const Halves h = split(s);
  const F cross = h.hi * h.lo;
  const F rest = ((a - h.hi * h.hi) - (cross + cross)) - h.lo * h.lo;
  const F r = s + rest * (y * 0.5f);
  const F scaled = r * select(tiny, 5.96046448e-8f, 1.0f);  // 2^-24
  return select(eq(x, 0.0f) | eq(x, __builtin_inff()), x, scaled);
}

F reciprocalSquareRoot(F x) {
  const B tiny = lt(x, 1.26217745e-29f);
  const F a = select(tiny, x * 281474976710656.0f, x);
  const F seed = seedRsqrt(a);
  const F y = asF(asI(seed) & 0xfffff000u);  // its square is exact
  const Halves s = split(y * y), v = split(a);
  const F rest = (((1.0f - v.hi * s.hi) - v.hi * s.lo) - v.lo * s.hi) - v.lo * s.lo;
  const F refined = y + y * (rest * horner(rest, {0.5f, 0.375f, 0.3125f}));
  const F r = select(ne(refined, refined), seed, refined);
  return r * select(tiny, 16777216.0f, 1.0f);  // 2^24
}

F cubeRoot(F x) {
  const F ax = abs(x);
  const B tiny = lt(ax, 9.86076132e-32f);  // 2^-103
  const F a = select(tiny, ax * 281474976710656.0f, ax);  // 2^48
  // A third of the exponent, then two Newton steps.
  F c = asF(mulHigh(asI(a), 0x55555556u) + 0x2a5119f2u);
  for (int i = 0; i < 2; ++i) c = (c + c + a * seedRcp(c * c)) * 0.333333343f;
  c = asF(asI(c) & 0xfffff000u);  // 12 bits: the square is exact
  const F square = c * c;
  const Halves s = split(square);
  const F y = seedRcp(square);
  const F d = (((a - s.hi * c) - s.lo * c) * y) * 0.333333343f;
  const F root = c + (d - (d * d) * (c * y));
  const F r = root * select(tiny, 1.52587891e-5f, 1.0f);  // 2^-16
  return select(eq(x, 0.0f) | ne(x - x, 0.0f), x, withSign(r, signBit(x)));
}

// Long division of the significands, 8 bits at a time, until no lane has an exponent difference left.
F remainder(F x, F y) {
  Vec& e = *x.e;
  llo::CodeBuilder& b = e.code();
  const I ux = asI(abs(x)), uy = asI(abs(y));
  const I fx = ux & 0x7fffffu, fy = uy & 0x7fffffu;
  const I ex = umax(ux >> 23u, 1u), field_y = uy >> 23u;
  const I mx = select(gt(ux >> 23u, 0u), fx | 0x800000u, fx);
  const I raw_y = select(gt(field_y, 0u), fy | 0x800000u, fy);
  const I shift = smax(clz(raw_y) - 8u, 0u);
  const I my = raw_y << shift, ey = umax(field_y, 1u) - shift;
  const F fmy = fromU32(my), inverse = seedRcp(fmy);

  const auto modulo = [&](I v) {
    const I q = toU32(fromU32(v) * inverse);
    I r = v - q * my;
    r = select(lt(r, 0u), r + my, r);
    return select(ge(r, my), r - my, r);
  };
  const I first = modulo(mx);
  const I distance = smax(ex - ey, 0u);
  const S steps = b.s(Opcode::sshr, {b.s(Opcode::sadd, {e.largest(distance.v), 7}), 3});
  const V rest = e.unary(Opcode::vmov, first.v), left = e.unary(Opcode::vmov, distance.v);
  b.loop(steps, [&](S) {
    const I now = smin(I{&e, left}, 8u);
    const I r = modulo(I{&e, rest} << now);
    b.emit(Opcode::vmov, {rest, r.v});
    b.emit(Opcode::vsub_s32, {left, left, now.v});
  });
  // rest * 2^(ey - 150), exact.
  const F whole = fromU32({&e, rest});
  const I n = ey - 150u, half = sra(n, 1u);
  const F scaled = (whole * asF((half + 127u) << 23u)) * asF(((n - half) + 127u) << 23u);
  const F signed_result = withSign(scaled, signBit(x));
  const F smaller = select(ltu(ux, uy), x, signed_result);
  // Zero divisor, infinite dividend, NaN.
  const B bad = eq(uy, 0u) | geu(ux, 0x7f800000u) | gtu(uy, 0x7f800000u);
  return select(bad, asF(constant(&e, 0x7fc00000u)), smaller);
}

}  // namespace tpu::lower::emit
