// VALU rows on integers and bits: arithmetic, shifts, counts, comparisons, masks.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../lib/emulate/insns/valu_int.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "bodies.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "vector-inl.h"

#define TPU_ARGS uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t

HWY_BEFORE_NAMESPACE();
namespace tpu::emulate::HWY_NAMESPACE {

void vadd_s32(TPU_ARGS) {
  binary<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Add(x, y); });
}
void vsub_s32(TPU_ARGS) {
  binary<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Sub(x, y); });
}
void vmul_s32(TPU_ARGS) {
  binary<int32_t>(d, a, b, [](auto x, auto y) { return hn::Mul(x, y); });
}
void vmulh_u32(TPU_ARGS) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < kVectorWords; ++i) d[i] = static_cast<uint32_t>(uint64_t{a[i]} * b[i] >> 32);
#else
  binary<uint32_t>(d, a, b, [](auto x, auto y) {
    const hn::ScalableTag<uint64_t> wide;
    const DU t;
    const auto even = hn::MulEven(x, y);
    const auto odd = hn::MulEven(hn::BitCast(t, hn::ShiftRight<32>(hn::BitCast(wide, x))),
                                 hn::BitCast(t, hn::ShiftRight<32>(hn::BitCast(wide, y))));
    const auto high = hn::And(odd, hn::Set(wide, 0xffffffff00000000ull));
    return hn::BitCast(t, hn::Or(hn::ShiftRight<32>(even), high));
  });
#endif
}
void vmax_s32(TPU_ARGS) {
  binary<int32_t>(d, a, b, [](auto x, auto y) { return hn::Max(x, y); });
}
void vmin_s32(TPU_ARGS) {
  binary<int32_t>(d, a, b, [](auto x, auto y) { return hn::Min(x, y); });
}
void vmax_u32(TPU_ARGS) {
  binary<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Max(x, y); });
}
void vmin_u32(TPU_ARGS) {
  binary<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Min(x, y); });
}
void vand(TPU_ARGS) {
  binary<uint32_t>(d, a, b, [](auto x, auto y) { return hn::And(x, y); });
}
void vor(TPU_ARGS) {
  binary<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Or(x, y); });
}
void vxor(TPU_ARGS) {
  binary<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Xor(x, y); });
}

// The amount reduced to 0..31, and the lanes in which it was more than that.
template <class V>
HWY_INLINE V lowAmount(V y) {
  return hn::And(y, hn::Set(DU(), 31));
}
template <class V>
HWY_INLINE auto tooFar(V y) {
  return hn::Gt(y, hn::Set(DU(), 31));
}
void vshl(TPU_ARGS) {
  binary<uint32_t>(d, a, b,
                   [](auto x, auto y) { return hn::IfThenZeroElse(tooFar(y), hn::Shl(x, lowAmount(y))); });
}
void vshr(TPU_ARGS) {
  binary<uint32_t>(d, a, b,
                   [](auto x, auto y) { return hn::IfThenZeroElse(tooFar(y), hn::Shr(x, lowAmount(y))); });
}
void vshra(TPU_ARGS) {
  binary<uint32_t>(d, a, b, [](auto x, auto y) {
    const auto n = hn::BitCast(DI(), hn::Min(y, hn::Set(DU(), 31)));
    return hn::Shr(hn::BitCast(DI(), x), n);
  });
}
void vclz(TPU_ARGS) {
  unary<uint32_t>(d, a, [](auto x) {
    x = hn::Or(x, hn::ShiftRight<1>(x));
    x = hn::Or(x, hn::ShiftRight<2>(x));
    x = hn::Or(x, hn::ShiftRight<4>(x));
    x = hn::Or(x, hn::ShiftRight<8>(x));
    x = hn::Or(x, hn::ShiftRight<16>(x));
    return hn::Sub(hn::Set(DU(), 32), hn::PopulationCount(x));
  });
}
void vpcnt(TPU_ARGS) {
  unary<uint32_t>(d, a, [](auto x) { return hn::PopulationCount(x); });
}

void vcmp_eq_s32(TPU_ARGS) {
  compare<int32_t>(d, a, b, [](auto x, auto y) { return hn::Eq(x, y); });
}
void vcmp_ne_s32(TPU_ARGS) {
  compare<int32_t>(d, a, b, [](auto x, auto y) { return hn::Not(hn::Eq(x, y)); });
}
void vcmp_lt_s32(TPU_ARGS) {
  compare<int32_t>(d, a, b, [](auto x, auto y) { return hn::Lt(x, y); });
}
void vcmp_le_s32(TPU_ARGS) {
  compare<int32_t>(d, a, b, [](auto x, auto y) { return hn::Not(hn::Gt(x, y)); });
}
void vcmp_gt_s32(TPU_ARGS) {
  compare<int32_t>(d, a, b, [](auto x, auto y) { return hn::Gt(x, y); });
}
void vcmp_ge_s32(TPU_ARGS) {
  compare<int32_t>(d, a, b, [](auto x, auto y) { return hn::Not(hn::Lt(x, y)); });
}
void vcmp_lt_u32(TPU_ARGS) {
  compare<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Lt(x, y); });
}
void vcmp_le_u32(TPU_ARGS) {
  compare<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Not(hn::Gt(x, y)); });
}
void vcmp_gt_u32(TPU_ARGS) {
  compare<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Gt(x, y); });
}
void vcmp_ge_u32(TPU_ARGS) {
  compare<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Not(hn::Lt(x, y)); });
}

void vsel(TPU_ARGS) {
  const size_t n = hn::Lanes(DU());
  for (size_t i = 0; i < kVectorWords; i += n) {
    const auto mask = load<uint32_t>(a + i), yes = load<uint32_t>(b + i), no = load<uint32_t>(c + i);
    store(hn::Or(hn::And(mask, yes), hn::AndNot(mask, no)), d + i);
  }
}
void mand(TPU_ARGS) {
  binary<uint32_t>(d, a, b, [](auto x, auto y) { return hn::And(x, y); });
}
void mor(TPU_ARGS) {
  binary<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Or(x, y); });
}
void mxor(TPU_ARGS) {
  binary<uint32_t>(d, a, b, [](auto x, auto y) { return hn::Xor(x, y); });
}
void mnot(TPU_ARGS) {
  unary<uint32_t>(d, a, [](auto x) { return hn::Not(x); });
}
void mmov(TPU_ARGS) {
  unary<uint32_t>(d, a, [](auto x) { return x; });
}

}  // namespace tpu::emulate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tpu::emulate {
TPU_EXPORT_BODY(vadd_s32)
TPU_EXPORT_BODY(vsub_s32)
TPU_EXPORT_BODY(vmul_s32)
TPU_EXPORT_BODY(vmulh_u32)
TPU_EXPORT_BODY(vmax_s32)
TPU_EXPORT_BODY(vmin_s32)
TPU_EXPORT_BODY(vmax_u32)
TPU_EXPORT_BODY(vmin_u32)
TPU_EXPORT_BODY(vand)
TPU_EXPORT_BODY(vor)
TPU_EXPORT_BODY(vxor)
TPU_EXPORT_BODY(vshl)
TPU_EXPORT_BODY(vshr)
TPU_EXPORT_BODY(vshra)
TPU_EXPORT_BODY(vclz)
TPU_EXPORT_BODY(vpcnt)
TPU_EXPORT_BODY(vcmp_eq_s32)
TPU_EXPORT_BODY(vcmp_ne_s32)
TPU_EXPORT_BODY(vcmp_lt_s32)
TPU_EXPORT_BODY(vcmp_le_s32)
TPU_EXPORT_BODY(vcmp_gt_s32)
TPU_EXPORT_BODY(vcmp_ge_s32)
TPU_EXPORT_BODY(vcmp_lt_u32)
TPU_EXPORT_BODY(vcmp_le_u32)
TPU_EXPORT_BODY(vcmp_gt_u32)
TPU_EXPORT_BODY(vcmp_ge_u32)
TPU_EXPORT_BODY(vsel)
TPU_EXPORT_BODY(mand)
TPU_EXPORT_BODY(mor)
TPU_EXPORT_BODY(mxor)
TPU_EXPORT_BODY(mnot)
TPU_EXPORT_BODY(mmov)
}  // namespace tpu::emulate
#endif
