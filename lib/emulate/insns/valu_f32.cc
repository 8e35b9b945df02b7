// VALU rows on f32: arithmetic, minimum and maximum, rounding, comparisons.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../lib/emulate/insns/valu_f32.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "bodies.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "vector-inl.h"

#define TPU_ARGS uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *, uint32_t

HWY_BEFORE_NAMESPACE();
namespace tpu::emulate::HWY_NAMESPACE {

void vadd_f32(TPU_ARGS) {
  binary<float>(d, a, b, [](auto x, auto y) { return hn::Add(x, y); });
}
void vsub_f32(TPU_ARGS) {
  binary<float>(d, a, b, [](auto x, auto y) { return hn::Sub(x, y); });
}
void vmul_f32(TPU_ARGS) {
  binary<float>(d, a, b, [](auto x, auto y) { return hn::Mul(x, y); });
}

// Equal operands differ at most in the sign of zero: `same` picks it. NaN of either gives the quiet NaN.
template <class V, class Same>
HWY_INLINE V extreme(V x, V y, hn::Mask<DF> first, Same same) {
  const DF t;
  const V picked = hn::IfThenElse(hn::Eq(x, y), same(x, y), hn::IfThenElse(first, x, y));
  const auto nan = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
  return hn::IfThenElse(nan, hn::BitCast(t, hn::Set(DU(), 0x7fc00000u)), picked);
}
void vmax_f32(TPU_ARGS) {
  binary<float>(d, a, b, [](auto x, auto y) {
    return extreme(x, y, hn::Gt(x, y), [](auto p, auto q) { return hn::And(p, q); });
  });
}
void vmin_f32(TPU_ARGS) {
  binary<float>(d, a, b, [](auto x, auto y) {
    return extreme(x, y, hn::Lt(x, y), [](auto p, auto q) { return hn::Or(p, q); });
  });
}

void vfloor_f32(TPU_ARGS) {
  unary<float>(d, a, [](auto x) { return hn::Floor(x); });
}
void vceil_f32(TPU_ARGS) {
  unary<float>(d, a, [](auto x) { return hn::Ceil(x); });
}
void vtrunc_f32(TPU_ARGS) {
  unary<float>(d, a, [](auto x) { return hn::Trunc(x); });
}
void vround_f32(TPU_ARGS) {
  unary<float>(d, a, [](auto x) { return hn::Round(x); });
}

void vcmp_eq_f32(TPU_ARGS) {
  compare<float>(d, a, b, [](auto x, auto y) { return hn::Eq(x, y); });
}
void vcmp_ne_f32(TPU_ARGS) {
  compare<float>(d, a, b, [](auto x, auto y) { return hn::Not(hn::Eq(x, y)); });
}
void vcmp_lt_f32(TPU_ARGS) {
  compare<float>(d, a, b, [](auto x, auto y) { return hn::Lt(x, y); });
}
void vcmp_le_f32(TPU_ARGS) {
  compare<float>(d, a, b, [](auto x, auto y) { return hn::Le(x, y); });
}
void vcmp_gt_f32(TPU_ARGS) {
  compare<float>(d, a, b, [](auto x, auto y) { return hn::Lt(y, x); });
}
void vcmp_ge_f32(TPU_ARGS) {
  compare<float>(d, a, b, [](auto x, auto y) { return hn::Le(y, x); });
}

}  // namespace tpu::emulate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tpu::emulate {
TPU_EXPORT_BODY(vadd_f32)
TPU_EXPORT_BODY(vsub_f32)
TPU_EXPORT_BODY(vmul_f32)
TPU_EXPORT_BODY(vmax_f32)
TPU_EXPORT_BODY(vmin_f32)
TPU_EXPORT_BODY(vfloor_f32)
TPU_EXPORT_BODY(vceil_f32)
TPU_EXPORT_BODY(vtrunc_f32)
TPU_EXPORT_BODY(vround_f32)
TPU_EXPORT_BODY(vcmp_eq_f32)
TPU_EXPORT_BODY(vcmp_ne_f32)
TPU_EXPORT_BODY(vcmp_lt_f32)
TPU_EXPORT_BODY(vcmp_le_f32)
TPU_EXPORT_BODY(vcmp_gt_f32)
TPU_EXPORT_BODY(vcmp_ge_f32)
}  // namespace tpu::emulate
#endif
