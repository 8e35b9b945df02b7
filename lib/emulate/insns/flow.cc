// Definedness of whole registers, moves and masked merging.
#include "flow.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../lib/emulate/insns/flow.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tpu::emulate::HWY_NAMESPACE {

HWY_INLINE hn::Vec<DU> whole(hn::Vec<DU> x) {
  const DU t;
  return hn::VecFromMask(t, hn::Ne(x, hn::Zero(t)));
}

void Words(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c) {
  fill(d, [&](size_t i) {
    return whole(hn::Or(load<uint32_t>(a + i), hn::Or(load<uint32_t>(b + i), load<uint32_t>(c + i))));
  });
}
void Bits(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  fill(d, [&](size_t i) { return hn::Or(load<uint32_t>(a + i), load<uint32_t>(b + i)); });
}
void FlowAnd(uint32_t* d, const uint32_t* x, const uint32_t* y, const uint32_t* a, const uint32_t* b) {
  fill(d, [&](size_t i) {
    const auto ua = load<uint32_t>(a + i), ub = load<uint32_t>(b + i);
    return hn::And(hn::Or(ua, ub),
                   hn::And(hn::Or(ua, load<uint32_t>(x + i)), hn::Or(ub, load<uint32_t>(y + i))));
  });
}
void FlowOr(uint32_t* d, const uint32_t* x, const uint32_t* y, const uint32_t* a, const uint32_t* b) {
  fill(d, [&](size_t i) {
    const auto ua = load<uint32_t>(a + i), ub = load<uint32_t>(b + i);
    return hn::And(hn::Or(ua, ub), hn::And(hn::Or(ua, hn::Not(load<uint32_t>(x + i))),
                                           hn::Or(ub, hn::Not(load<uint32_t>(y + i)))));
  });
}
void Select(uint32_t* d, const uint32_t* mask, const uint32_t* mask_shadow, const uint32_t* yes,
            const uint32_t* no) {
  fill(d, [&](size_t i) {
    const auto m = load<uint32_t>(mask + i);
    const auto picked = hn::Or(hn::And(m, load<uint32_t>(yes + i)), hn::AndNot(m, load<uint32_t>(no + i)));
    return hn::Or(picked, whole(load<uint32_t>(mask_shadow + i)));
  });
}
bool AnyBit(const uint32_t* a) {
  const DU t;
  auto all = hn::Zero(t);
  for (size_t i = 0; i < kVectorWords; i += hn::Lanes(t)) all = hn::Or(all, load<uint32_t>(a + i));
  return !hn::AllTrue(t, hn::Eq(all, hn::Zero(t)));
}
bool AllFinite(const uint32_t* a) {
  const DU t;
  const auto exponent = hn::Set(t, 0x7f800000u);
  auto largest = hn::Zero(t);
  for (size_t i = 0; i < kVectorWords; i += hn::Lanes(t))
    largest = hn::Max(largest, hn::And(load<uint32_t>(a + i), exponent));
  return hn::AllFalse(t, hn::Eq(largest, exponent));
}
void CopyWords(uint32_t* to, const uint32_t* from, size_t words) {
  const size_t n = hn::Lanes(DU());
  for (size_t i = 0; i < words; i += n) store(load<uint32_t>(from + i), to + i);
}
void CopyRows(uint32_t* to, size_t to_stride, const uint32_t* from, size_t from_stride, int rows) {
  for (int s = 0; s < 8; ++s, to += to_stride, from += from_stride)
    if (rows >> s & 1) CopyWords(to, from, 128);
}
void MergeWords(uint32_t* to, const uint32_t* value, const uint32_t* mask, size_t words) {
  const DU t;
  for (size_t i = 0; i < words; i += hn::Lanes(t)) {
    const auto m = load<uint32_t>(mask + i);
    store(hn::Or(hn::And(m, load<uint32_t>(value + i)), hn::AndNot(m, load<uint32_t>(to + i))), to + i);
  }
}

}  // namespace tpu::emulate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tpu::emulate {
HWY_EXPORT(Words);
HWY_EXPORT(Bits);
HWY_EXPORT(FlowAnd);
HWY_EXPORT(FlowOr);
HWY_EXPORT(Select);
HWY_EXPORT(AnyBit);
HWY_EXPORT(AllFinite);
HWY_EXPORT(CopyWords);
HWY_EXPORT(CopyRows);
HWY_EXPORT(MergeWords);

void flowWords(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c) {
  HWY_DYNAMIC_DISPATCH(Words)(d, a, b, c);
}
void flowBits(uint32_t* d, const uint32_t* a, const uint32_t* b) { HWY_DYNAMIC_DISPATCH(Bits)(d, a, b); }
void flowAnd(uint32_t* d, const uint32_t* x, const uint32_t* y, const uint32_t* a, const uint32_t* b) {
  HWY_DYNAMIC_DISPATCH(FlowAnd)(d, x, y, a, b);
}
void flowOr(uint32_t* d, const uint32_t* x, const uint32_t* y, const uint32_t* a, const uint32_t* b) {
  HWY_DYNAMIC_DISPATCH(FlowOr)(d, x, y, a, b);
}
void flowSelect(uint32_t* d, const uint32_t* mask, const uint32_t* mask_shadow, const uint32_t* yes,
                const uint32_t* no) {
  HWY_DYNAMIC_DISPATCH(Select)(d, mask, mask_shadow, yes, no);
}
bool anyBit(const uint32_t* a) { return HWY_DYNAMIC_DISPATCH(AnyBit)(a); }
bool allFinite(const uint32_t* a) { return HWY_DYNAMIC_DISPATCH(AllFinite)(a); }
void copyWords(uint32_t* to, const uint32_t* from, size_t words) {
  HWY_DYNAMIC_DISPATCH(CopyWords)(to, from, words);
}
void copyRows(uint32_t* to, size_t to_stride, const uint32_t* from, size_t from_stride, int rows) {
  HWY_DYNAMIC_DISPATCH(CopyRows)(to, to_stride, from, from_stride, rows);
}
void mergeWords(uint32_t* to, const uint32_t* value, const uint32_t* mask, size_t words) {
  HWY_DYNAMIC_DISPATCH(MergeWords)(to, value, mask, words);
}
}  // namespace tpu::emulate
#endif
