// VALU rows that convert, pack, unpack and move.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../lib/emulate/insns/valu_move.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "bodies.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "vector-inl.h"

#define TPU_ARGS uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *, uint32_t imm

HWY_BEFORE_NAMESPACE();
namespace tpu::emulate::HWY_NAMESPACE {

// ---- conversions
void vcvt_f32_s32(TPU_ARGS) {
  unary<float>(d, a, [](auto x) {
    const DF t;
    const auto high = hn::Ge(x, hn::Set(t, 2147483648.0f));
    const auto low = hn::Lt(x, hn::Set(t, -2147483648.0f));
    const auto inside = hn::IfThenZeroElse(hn::Or(hn::IsNaN(x), hn::Or(high, low)), x);
    auto r = hn::BitCast(DU(), hn::ConvertTo(DI(), inside));
    r = hn::IfThenElse(hn::RebindMask(DU(), high), hn::Set(DU(), 0x7fffffffu), r);
    return hn::IfThenElse(hn::RebindMask(DU(), low), hn::Set(DU(), 0x80000000u), r);
  });
}
void vcvt_f32_u32(TPU_ARGS) {
  unary<float>(d, a, [](auto x) {
    const DF t;
    const auto half = hn::Set(t, 2147483648.0f);
    const auto high = hn::Ge(x, hn::Set(t, 4294967296.0f));
    const auto upper = hn::Ge(x, half);
    const auto kept =
        hn::IfThenElseZero(hn::And(hn::Gt(x, hn::Zero(t)), hn::Not(high)), x);  // NaN and negative: 0
    const auto low = hn::IfThenElse(upper, hn::Sub(kept, half), kept);
    const auto inside = hn::IfThenZeroElse(high, low);
    auto r = hn::BitCast(DU(), hn::ConvertTo(DI(), inside));
    r = hn::Add(r, hn::IfThenElseZero(hn::RebindMask(DU(), upper), hn::Set(DU(), 0x80000000u)));
    return hn::IfThenElse(hn::RebindMask(DU(), high), hn::Set(DU(), 0xffffffffu), r);
  });
}
void vcvt_s32_f32(TPU_ARGS) {
  unary<int32_t>(d, a, [](auto x) { return hn::ConvertTo(DF(), x); });
}
// Both halves are exact, so that the one addition rounds as the conversion must.
void vcvt_u32_f32(TPU_ARGS) {
  unary<uint32_t>(d, a, [](auto x) {
    const auto high = hn::ConvertTo(DF(), hn::BitCast(DI(), hn::ShiftRight<16>(x)));
    const auto low = hn::ConvertTo(DF(), hn::BitCast(DI(), hn::And(x, hn::Set(DU(), 0xffffu))));
    return hn::Add(hn::Mul(high, hn::Set(DF(), 65536.0f)), low);
  });
}

// ---- packing: output sublane s of a 16-bit pack holds rows 2s and 2s+1, of a for s < 4, else of b
HWY_INLINE const uint32_t* packSource(const uint32_t* a, const uint32_t* b, int s) {
  return s < 4 ? a + s * 256 : b + (s - 4) * 256;
}
HWY_INLINE hn::Vec<DU> roundBf16(hn::Vec<DU> x) {  // the bf16 bits in the low half
  const DU t;
  const auto even = hn::And(hn::ShiftRight<16>(x), hn::Set(t, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(x, hn::Add(even, hn::Set(t, 0x7fff))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(x), hn::Set(t, 0x40));
  const auto nan = hn::Gt(hn::And(x, hn::Set(t, 0x7fffffffu)), hn::Set(t, 0x7f800000u));
  return hn::IfThenElse(nan, quiet, rounded);
}
void vpack_bf16(TPU_ARGS) {
  byRows(d, a, b, [&](int s, size_t l) {
    const uint32_t* p = packSource(a, b, s) + l;
    return hn::Or(roundBf16(load<uint32_t>(p)), hn::ShiftLeft<16>(roundBf16(load<uint32_t>(p + 128))));
  });
}
void vpack_b16(TPU_ARGS) {
  byRows(d, a, b, [&](int s, size_t l) {
    const uint32_t* p = packSource(a, b, s) + l;
    return hn::Or(hn::And(load<uint32_t>(p), hn::Set(DU(), 0xffff)),
                  hn::ShiftLeft<16>(load<uint32_t>(p + 128)));
  });
}
void vpack_b8(TPU_ARGS) {
  byRows(d, a, b, [&](int s, size_t l) {
    const uint32_t* p = packSource(a, b, s) + l;
    const auto bytes = [](auto x) {  // the low byte of either half, side by side
      const DU t;
      return hn::Or(hn::And(x, hn::Set(t, 0xff)), hn::And(hn::ShiftRight<8>(x), hn::Set(t, 0xff00)));
    };
    return hn::Or(bytes(load<uint32_t>(p)), hn::ShiftLeft<16>(bytes(load<uint32_t>(p + 128))));
  });
}
void vunpack_bf16(TPU_ARGS) {
  byRows(d, a, b, [&](int s, size_t l) {
    const auto x = load<uint32_t>(a + (imm * 4 + s / 2) * 128 + l);
    return s % 2 ? hn::And(x, hn::Set(DU(), 0xffff0000u)) : hn::ShiftLeft<16>(x);
  });
}
void vunpack_u16(TPU_ARGS) {
  byRows(d, a, b, [&](int s, size_t l) {
    const auto x = load<uint32_t>(a + (imm * 4 + s / 2) * 128 + l);
    return s % 2 ? hn::ShiftRight<16>(x) : hn::And(x, hn::Set(DU(), 0xffff));
  });
}
void vunpack_s16(TPU_ARGS) {
  byRows(d, a, b, [&](int s, size_t l) {
    const auto x = load<uint32_t>(a + (imm * 4 + s / 2) * 128 + l);
    return hn::ShiftRight<16>(hn::BitCast(DI(), s % 2 ? x : hn::ShiftLeft<16>(x)));
  });
}
HWY_INLINE hn::Vec<DU> topByte(const uint32_t* a, uint32_t imm, int s,
                               size_t l) {  // byte s % 4 of its row, moved up
  const auto x = load<uint32_t>(a + (imm * 2 + s / 4) * 128 + l);
  switch (s % 4) {
    case 0:
      return hn::ShiftLeft<24>(x);
    case 1:
      return hn::ShiftLeft<16>(x);
    case 2:
      return hn::ShiftLeft<8>(x);
    default:
      return x;
  }
}
void vunpack_s8(TPU_ARGS) {
  byRows(d, a, b,
         [&](int s, size_t l) { return hn::ShiftRight<24>(hn::BitCast(DI(), topByte(a, imm, s, l))); });
}
void vunpack_u8(TPU_ARGS) {
  byRows(d, a, b, [&](int s, size_t l) { return hn::ShiftRight<24>(topByte(a, imm, s, l)); });
}

// ---- moves
void vmov(TPU_ARGS) {
  unary<uint32_t>(d, a, [](auto x) { return x; });
}
void vtos(TPU_ARGS) {
  unary<uint32_t>(d, a, [](auto x) { return x; });
}
void vimm(TPU_ARGS) {
  fill(d, [&](size_t) { return hn::Set(DU(), imm); });
}
void vsplat(TPU_ARGS) {
  fill(d, [&](size_t) { return hn::Set(DU(), imm); });
}
void vlane(TPU_ARGS) {
  fill(d, [](size_t i) { return hn::Iota(DU(), static_cast<uint32_t>(i % 128)); });
}
void vsublane(TPU_ARGS) {
  fill(d, [](size_t i) { return hn::Set(DU(), static_cast<uint32_t>(i / 128)); });
}
void vrot_sublane(TPU_ARGS) {
  byRows(d, a, b, [&](int s, size_t l) { return load<uint32_t>(a + ((s - imm) & 7) * 128 + l); });
}
void vbcast_sublane(TPU_ARGS) {
  byRows(d, a, b, [&](int, size_t l) { return load<uint32_t>(a + (imm & 7) * 128 + l); });
}

}  // namespace tpu::emulate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tpu::emulate {
TPU_EXPORT_BODY(vcvt_f32_s32)
TPU_EXPORT_BODY(vcvt_f32_u32)
TPU_EXPORT_BODY(vcvt_s32_f32)
TPU_EXPORT_BODY(vcvt_u32_f32)
TPU_EXPORT_BODY(vpack_bf16)
TPU_EXPORT_BODY(vpack_b16)
TPU_EXPORT_BODY(vpack_b8)
TPU_EXPORT_BODY(vunpack_bf16)
TPU_EXPORT_BODY(vunpack_u16)
TPU_EXPORT_BODY(vunpack_s16)
TPU_EXPORT_BODY(vunpack_s8)
TPU_EXPORT_BODY(vunpack_u8)
TPU_EXPORT_BODY(vmov)
TPU_EXPORT_BODY(vtos)
TPU_EXPORT_BODY(vimm)
TPU_EXPORT_BODY(vsplat)
TPU_EXPORT_BODY(vlane)
TPU_EXPORT_BODY(vsublane)
TPU_EXPORT_BODY(vrot_sublane)
TPU_EXPORT_BODY(vbcast_sublane)
}  // namespace tpu::emulate
#endif
