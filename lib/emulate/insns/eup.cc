// The transcendental unit. Each function is this text and nothing else: IEEE f32 operations in the order
// written, no fused multiply-add, so the same bits on every host. Constants are the nearest f32 to the
// decimals given.
//
//   rcp    q = 1 / a rounded to f32, then the three lowest fraction bits cleared (NaN stays)
//   rsqrt  q = 1 / sqrt(a), both rounded to f32, then the three lowest bits cleared
//   pow2   a >= 128: inf; a < -150: 0; else n = a rounded to the nearest integer (ties to even), f = a - n,
//          p = c0 + f (c1 + f (c2 + ... f c7)) with ck = ln(2)^k / k!, result (p * 2^(n >> 1)) * 2^(n - (n >>
//          1))
//   log2   a < 0: NaN; a = 0: -inf; inf: inf; a below 2^-126 is scaled by 2^24 first. a = m 2^e with m in
//   [0.75, 1.5):
//          t = (m - 1) / (m + 1), u = t t, result e + t (k1 + u (k3 + u (k5 + u (k7 + u k9)))), kj = 2 / (j
//          ln 2)
//   tanh   y = |a|. y < 0.25: a (1 + u (d1 + u (d2 + u (d3 + u d4)))), u = a a, dj the series of tanh(x)/x;
//          else 1 - 2 / (pow2(y * 2.885390082) + 1) with the sign of a
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../lib/emulate/insns/eup.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "bodies.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "vector-inl.h"

#define TPU_ARGS uint32_t *d, const uint32_t *a, const uint32_t *, const uint32_t *, uint32_t

HWY_BEFORE_NAMESPACE();
namespace tpu::emulate::HWY_NAMESPACE {

using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;

HWY_INLINE VF constant(float x) { return hn::Set(DF(), x); }

HWY_INLINE VF coarse(VF q) {
  const DF t;
  const VF cut = hn::And(q, hn::BitCast(t, hn::Set(DU(), ~7u)));
  return hn::IfThenElse(hn::IsNaN(q), q, cut);
}

HWY_INLINE VF power(VI n) { return hn::BitCast(DF(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(DI(), 127)))); }

HWY_INLINE VF pow2(VF a) {
  const DF t;
  const auto big = hn::Ge(a, constant(128.0f));
  const auto small = hn::Lt(a, constant(-150.0f));
  const auto nan = hn::IsNaN(a);
  const VF x = hn::IfThenZeroElse(hn::Or(nan, hn::Or(big, small)), a);
  const VF whole = hn::Round(x);
  const VF f = hn::Sub(x, whole);
  VF p = constant(1.5252734e-5f);
  for (const float c :
       {1.5403530e-4f, 1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f, 2.4022651e-1f, 6.9314718e-1f, 1.0f})
    p = hn::Add(constant(c), hn::Mul(f, p));
  const VI n = hn::ConvertTo(DI(), whole);
  const VI half = hn::ShiftRight<1>(n);
  VF r = hn::Mul(hn::Mul(p, power(half)), power(hn::Sub(n, half)));
  r = hn::IfThenElse(big, hn::Inf(t), r);
  r = hn::IfThenZeroElse(small, r);
  return hn::IfThenElse(nan, a, r);
}

HWY_INLINE VF log2(VF a) {
  const DF t;
  const auto tiny = hn::Lt(a, constant(1.17549435e-38f));
  const VF x = hn::IfThenElse(tiny, hn::Mul(a, constant(16777216.0f)), a);
  const VI bits = hn::BitCast(DI(), x);
  // The exponent that leaves the fraction in [0.75, 1.5).
  VI e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(DI(), 0x3f400000)));
  const VF m = hn::BitCast(t, hn::Sub(bits, hn::ShiftLeft<23>(e)));
  e = hn::Sub(e, hn::And(hn::BitCast(DI(), hn::VecFromMask(t, tiny)), hn::Set(DI(), 24)));
  const VF r = hn::Div(hn::Sub(m, constant(1.0f)), hn::Add(m, constant(1.0f)));
  const VF u = hn::Mul(r, r);
  VF p = constant(0.320598898f);
  for (const float c : {0.412198583f, 0.577078016f, 0.961796694f, 2.885390082f})
    p = hn::Add(constant(c), hn::Mul(u, p));
  VF y = hn::Add(hn::ConvertTo(t, e), hn::Mul(r, p));
  y = hn::IfThenElse(hn::Eq(a, hn::Inf(t)), hn::Inf(t), y);
  y = hn::IfThenElse(hn::Eq(a, hn::Zero(t)), hn::Neg(hn::Inf(t)), y);
  const auto bad = hn::Or(hn::Lt(a, hn::Zero(t)), hn::IsNaN(a));
  return hn::IfThenElse(bad, hn::BitCast(t, hn::Set(DU(), 0x7fc00000u)), y);
}

HWY_INLINE VF tanh(VF a) {
  const VF y = hn::Abs(a);
  const VF u = hn::Mul(a, a);
  VF p = constant(0.0218694885f);
  for (const float c : {-0.0539682540f, 0.133333333f, -0.333333333f, 1.0f})
    p = hn::Add(constant(c), hn::Mul(u, p));
  const VF near = hn::Mul(a, p);
  const VF power = pow2(hn::Mul(y, constant(2.885390082f)));
  const VF far = hn::Sub(constant(1.0f), hn::Div(constant(2.0f), hn::Add(power, constant(1.0f))));
  const VF r = hn::IfThenElse(hn::Lt(y, constant(0.25f)), near, hn::CopySign(far, a));
  return hn::IfThenElse(hn::IsNaN(a), a, r);
}

void vrcp(TPU_ARGS) {
  unary<float>(d, a, [](auto x) { return coarse(hn::Div(constant(1.0f), x)); });
}
void vrsqrt(TPU_ARGS) {
  unary<float>(d, a, [](auto x) { return coarse(hn::Div(constant(1.0f), hn::Sqrt(x))); });
}
void vpow2(TPU_ARGS) {
  unary<float>(d, a, [](auto x) { return pow2(x); });
}
void vlog2(TPU_ARGS) {
  unary<float>(d, a, [](auto x) { return log2(x); });
}
void vtanh(TPU_ARGS) {
  unary<float>(d, a, [](auto x) { return tanh(x); });
}

}  // namespace tpu::emulate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tpu::emulate {
TPU_EXPORT_BODY(vrcp)
TPU_EXPORT_BODY(vrsqrt)
TPU_EXPORT_BODY(vpow2)
TPU_EXPORT_BODY(vlog2)
TPU_EXPORT_BODY(vtanh)
}  // namespace tpu::emulate
#endif
