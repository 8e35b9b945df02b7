// Scalar arithmetic, comparisons and predicates.
#include "exec.h"

namespace tpu::emulate {
namespace {

template <bool kStrict>
uint32_t shadowOf(const Core& c, const Op& op) {  // of the SI operand
  return op.sreg == kNoReg ? 0 : c.s_shadow[op.sreg];
}
template <bool kStrict>
void define(Core& c, const Op& op, bool undefined) {
  if constexpr (kStrict) c.s_shadow[op.d] = undefined ? ~0u : 0;
}

template <bool kStrict, class F>
void arithmetic(Core& c, const Op& op, F f) {
  const uint32_t r = f(c.s[op.a], c.scalar(op));
  define<kStrict>(c, op, c.s_shadow[op.a] || shadowOf<kStrict>(c, op));
  c.s[op.d] = r;
}
template <bool kStrict, class F>
void comparison(Core& c, const Op& op, F f) {
  const bool r = f(c.s[op.a], c.scalar(op));
  if constexpr (kStrict) c.p_shadow[op.d] = c.s_shadow[op.a] || shadowOf<kStrict>(c, op);
  c.p[op.d] = r;
}
template <bool kStrict, class F>
void predicate(Core& c, const Op& op, F f) {
  const bool r = f(c.p[op.a], c.p[op.b]);
  if constexpr (kStrict) c.p_shadow[op.d] = c.p_shadow[op.a] || c.p_shadow[op.b];
  c.p[op.d] = r;
}
int32_t asSigned(uint32_t x) { return static_cast<int32_t>(x); }

}  // namespace

TPU_EXEC(smov) {
  const uint32_t r = c.scalar(op);
  define<kStrict>(c, op, shadowOf<kStrict>(c, op));
  c.s[op.d] = r;
}
TPU_EXEC(sadd) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return a + b; });
}
TPU_EXEC(ssub) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return a - b; });
}
TPU_EXEC(smul) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return a * b; });
}
TPU_EXEC(sdivu) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return b ? a / b : ~0u; });
}
TPU_EXEC(sremu) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return b ? a % b : a; });
}
TPU_EXEC(sdivs) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) {
    if (b == 0) return ~0u;
    if (b == ~0u) return 0u - a;
    return static_cast<uint32_t>(asSigned(a) / asSigned(b));
  });
}
TPU_EXEC(srems) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) {
    if (b == 0) return a;
    if (b == ~0u) return 0u;
    return static_cast<uint32_t>(asSigned(a) % asSigned(b));
  });
}
TPU_EXEC(sand) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return a & b; });
}
TPU_EXEC(sor) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return a | b; });
}
TPU_EXEC(sxor) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return a ^ b; });
}
TPU_EXEC(sshl) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return b < 32 ? a << b : 0; });
}
TPU_EXEC(sshr) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return b < 32 ? a >> b : 0; });
}
TPU_EXEC(sshra) {
  arithmetic<kStrict>(
      c, op, [](uint32_t a, uint32_t b) { return static_cast<uint32_t>(asSigned(a) >> (b < 32 ? b : 31)); });
}
TPU_EXEC(smin) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return asSigned(a) < asSigned(b) ? a : b; });
}
TPU_EXEC(smax) {
  arithmetic<kStrict>(c, op, [](uint32_t a, uint32_t b) { return asSigned(a) > asSigned(b) ? a : b; });
}
TPU_EXEC(ssel) {
  const bool first = c.p[op.a];
  const uint32_t r = first ? c.s[op.b] : c.scalar(op);
  define<kStrict>(c, op, c.p_shadow[op.a] || (first ? c.s_shadow[op.b] : shadowOf<kStrict>(c, op)));
  c.s[op.d] = r;
}
TPU_EXEC(scmp_eq) {
  comparison<kStrict>(c, op, [](uint32_t a, uint32_t b) { return a == b; });
}
TPU_EXEC(scmp_ne) {
  comparison<kStrict>(c, op, [](uint32_t a, uint32_t b) { return a != b; });
}
TPU_EXEC(scmp_lt) {
  comparison<kStrict>(c, op, [](uint32_t a, uint32_t b) { return asSigned(a) < asSigned(b); });
}
TPU_EXEC(scmp_le) {
  comparison<kStrict>(c, op, [](uint32_t a, uint32_t b) { return asSigned(a) <= asSigned(b); });
}
TPU_EXEC(scmp_gt) {
  comparison<kStrict>(c, op, [](uint32_t a, uint32_t b) { return asSigned(a) > asSigned(b); });
}
TPU_EXEC(scmp_ge) {
  comparison<kStrict>(c, op, [](uint32_t a, uint32_t b) { return asSigned(a) >= asSigned(b); });
}
TPU_EXEC(scmp_ltu) {
  comparison<kStrict>(c, op, [](uint32_t a, uint32_t b) { return a < b; });
}
TPU_EXEC(scmp_leu) {
  comparison<kStrict>(c, op, [](uint32_t a, uint32_t b) { return a <= b; });
}
TPU_EXEC(pand) {
  predicate<kStrict>(c, op, [](bool a, bool b) { return a && b; });
}
TPU_EXEC(por) {
  predicate<kStrict>(c, op, [](bool a, bool b) { return a || b; });
}
TPU_EXEC(pxor) {
  predicate<kStrict>(c, op, [](bool a, bool b) { return a != b; });
}
TPU_EXEC(pmov) {
  if constexpr (kStrict) c.p_shadow[op.d] = c.p_shadow[op.a];
  c.p[op.d] = c.p[op.a];
}
TPU_EXEC(pset) {
  if constexpr (kStrict) c.p_shadow[op.d] = 0;
  c.p[op.d] = op.imm & 1;
}
TPU_EXEC(spop) {
  const int slot = c.pop(kV2sFifo);
  if constexpr (kStrict) c.s_shadow[op.d] = c.fifos[kV2sFifo].shadow[slot].w[0];
  c.s[op.d] = c.fifos[kV2sFifo].value[slot].w[0];
}

}  // namespace tpu::emulate
