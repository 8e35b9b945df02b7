// The cross-lane unit: reductions over lanes, rotations, broadcasts, permutations. (Transposition works on a
// buffer of the unit; its entries are cut out by transposeEntry.)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../lib/emulate/insns/xlu.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "bodies.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "vector-inl.h"

#define TPU_ARGS uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *, uint32_t imm

HWY_BEFORE_NAMESPACE();
namespace tpu::emulate::HWY_NAMESPACE {

// A tree over the 128 lanes of every sublane, halves first: whole host vectors as they stand, then what is left
// of a sublane as a column, so that the last steps are taken for all sublanes at once.
template <class F>
HWY_INLINE void reduceLanes(uint32_t *d, const uint32_t *a, F f) {
  constexpr size_t kMaxLanes = HWY_MAX_BYTES / 4, kMaxWidth = kMaxLanes < 8 ? 8 : kMaxLanes;
  const size_t n = hn::Lanes(DF()), width = n < 8 ? 8 : n;
  alignas(64) uint32_t columns[kMaxLanes * kMaxWidth] = {};
  for (int s = 0; s < 8; ++s) {
    alignas(64) uint32_t row[128];
    for (size_t l = 0; l < 128; l += n) store(load<uint32_t>(a + s * 128 + l), row + l);
    for (size_t step = 64; step >= n; step /= 2)
      for (size_t l = 0; l < step; l += n)
        store(f(load<float>(row + l), load<float>(row + l + step)), row + l);
    for (size_t l = 0; l < n; ++l) columns[l * width + s] = row[l];
  }
  for (size_t step = n / 2; step >= 1; step /= 2)
    for (size_t i = 0; i < step * width; i += n)
      store(f(load<float>(columns + i), load<float>(columns + i + step * width)), columns + i);
  for (int s = 0; s < 8; ++s) {
    const auto all = hn::Set(DU(), columns[s]);
    for (size_t l = 0; l < 128; l += n) store(all, d + s * 128 + l);
  }
}

void vadd_xlane_f32(TPU_ARGS) {
  reduceLanes(d, a, [](auto x, auto y) { return hn::Add(x, y); });
}

template <class V, class Same>
HWY_INLINE V extreme(V x, V y, hn::Mask<DF> first, Same same) {
  const V picked = hn::IfThenElse(hn::Eq(x, y), same(x, y), hn::IfThenElse(first, x, y));
  const auto nan = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
  return hn::IfThenElse(nan, hn::BitCast(DF(), hn::Set(DU(), 0x7fc00000u)), picked);
}
void vmax_xlane_f32(TPU_ARGS) {
  reduceLanes(d, a, [](auto x, auto y) {
    return extreme(x, y, hn::Gt(x, y), [](auto p, auto q) { return hn::And(p, q); });
  });
}
void vmin_xlane_f32(TPU_ARGS) {
  reduceLanes(d, a, [](auto x, auto y) {
    return extreme(x, y, hn::Lt(x, y), [](auto p, auto q) { return hn::Or(p, q); });
  });
}

void vrot_lane(TPU_ARGS) {
  const size_t n = imm & 127;
  for (int s = 0; s < 8; ++s) {
    uint32_t row[128];
    std::memcpy(row, a + s * 128, sizeof row);
    std::memcpy(d + s * 128 + n, row, (128 - n) * 4);
    std::memcpy(d + s * 128, row + 128 - n, n * 4);
  }
}
void vbcast_lane(TPU_ARGS) {
  const size_t n = hn::Lanes(DU());
  for (int s = 0; s < 8; ++s) {
    const auto all = hn::Set(DU(), a[s * 128 + (imm & 127)]);
    for (size_t l = 0; l < 128; l += n) store(all, d + s * 128 + l);
  }
}
void vperm_lane(TPU_ARGS) {
  for (int s = 0; s < 8; ++s) {
    uint32_t row[128];
    for (int l = 0; l < 128; ++l) row[l] = a[s * 128 + (b[s * 128 + l] & 127)];
    std::memcpy(d + s * 128, row, sizeof row);
  }
}

}  // namespace tpu::emulate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tpu::emulate {
TPU_EXPORT_BODY(vadd_xlane_f32)
TPU_EXPORT_BODY(vmax_xlane_f32)
TPU_EXPORT_BODY(vmin_xlane_f32)
TPU_EXPORT_BODY(vrot_lane)
TPU_EXPORT_BODY(vbcast_lane)
TPU_EXPORT_BODY(vperm_lane)
}  // namespace tpu::emulate
#endif
