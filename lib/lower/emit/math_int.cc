// Integer division, remainder and power.
#include "math.h"

namespace tpu::lower::emit {
namespace {

struct Division {
  I quotient, rest;
};
Division divideUnsigned(I a, I b) {
  // 2^32 / b from below, one Newton step, and a quotient that is at most two short.
  I z = toU32(seedRcp(fromU32(b)) * 4294965248.0f);
  z = z + mulHigh(z, (0u - b) * z);
  I q = mulHigh(a, z);
  I r = a - q * b;
  for (int i = 0; i < 2; ++i) {
    const B more = geu(r, b);
    q = select(more, q + 1u, q);
    r = select(more, r - b, r);
  }
  return {q, r};
}

I negateIf(I x, I mask) { return (x ^ mask) - mask; }

}  // namespace

I divideU(I a, I b) { return select(eq(b, 0u), 0xffffffffu, divideUnsigned(a, b).quotient); }
I remainderU(I a, I b) { return select(eq(b, 0u), a, divideUnsigned(a, b).rest); }

I divideS(I a, I b) {
  const I sa = sra(a, 31u), sb = sra(b, 31u);
  const I q = divideUnsigned(negateIf(a, sa), negateIf(b, sb)).quotient;
  return select(eq(b, 0u), 0xffffffffu, negateIf(q, sa ^ sb));
}
I remainderS(I a, I b) {
  const I sa = sra(a, 31u), sb = sra(b, 31u);
  const I r = divideUnsigned(negateIf(a, sa), negateIf(b, sb)).rest;
  return select(eq(b, 0u), a, negateIf(r, sa));
}

I integerPower(I a, I b, bool is_signed) {
  Vec& e = *a.e;
  llo::CodeBuilder& code = e.code();
  // Square and multiply; the number of steps is that of the largest exponent in the register.
  I bits = 32u - clz(b);
  if (is_signed) bits = select(lt(b, 0u), 1u, bits);
  const S steps = e.largest(bits.v);
  const V result = code.v(Opcode::vmov, {e.bits(1)}), square = code.v(Opcode::vmov, {a.v}), left = code.v(Opcode::vmov, {b.v});
  code.loop(steps, [&](S) {
    const I r{&e, result}, s{&e, square}, l{&e, left};
    const I next = select(ne(l & 1u, 0u), r * s, r);
    const I squared = s * s, shifted = l >> 1u;
    code.emit(Opcode::vmov, {result, next.v});
    code.emit(Opcode::vmov, {square, squared.v});
    code.emit(Opcode::vmov, {left, shifted.v});
  });
  I r{&e, result};
  if (!is_signed) return r;
  // 1 / a^|b|: nothing but 1 and -1 has a whole reciprocal.
  const I odd = select(ne(b & 1u, 0u), 0xffffffffu, 1u);
  const I inverse = select(eq(a, 1u), 1u, select(eq(a, 0xffffffffu), odd, 0u));
  return select(lt(b, 0u), inverse, r);
}

}  // namespace tpu::lower::emit
