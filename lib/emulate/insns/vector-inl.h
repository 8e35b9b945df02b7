// Loops over whole registers, shared by the families of vector bodies. Included once per instruction set.
#if defined(TPU_EMULATE_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TPU_EMULATE_VECTOR_INL_H_
#undef TPU_EMULATE_VECTOR_INL_H_
#else
#define TPU_EMULATE_VECTOR_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"
#include "tpu/emulate/vector_bodies.h"

HWY_BEFORE_NAMESPACE();
namespace tpu::emulate::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DU = hn::ScalableTag<uint32_t>;
using DI = hn::ScalableTag<int32_t>;
using DF = hn::ScalableTag<float>;

template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> load(const uint32_t* p) {
  return hn::BitCast(hn::ScalableTag<T>(), hn::Load(DU(), p));
}
template <class V>
HWY_INLINE void store(V v, uint32_t* p) {
  hn::Store(hn::BitCast(DU(), v), DU(), p);
}

template <class T, class F>
HWY_INLINE void unary(uint32_t* d, const uint32_t* a, F f) {
  const size_t n = hn::Lanes(DU());
  for (size_t i = 0; i < kVectorWords; i += n) store(f(load<T>(a + i)), d + i);
}
template <class T, class F>
HWY_INLINE void binary(uint32_t* d, const uint32_t* a, const uint32_t* b, F f) {
  const size_t n = hn::Lanes(DU());
  for (size_t i = 0; i < kVectorWords; i += n) store(f(load<T>(a + i), load<T>(b + i)), d + i);
}
template <class T, class F>
HWY_INLINE void compare(uint32_t* d, const uint32_t* a, const uint32_t* b, F f) {
  const size_t n = hn::Lanes(DU());
  const hn::ScalableTag<T> t;
  for (size_t i = 0; i < kVectorWords; i += n)
    store(hn::VecFromMask(t, f(load<T>(a + i), load<T>(b + i))), d + i);
}
template <class F>
HWY_INLINE void fill(uint32_t* d, F f) {
  const size_t n = hn::Lanes(DU());
  for (size_t i = 0; i < kVectorWords; i += n) store(f(i), d + i);
}

/// Word l of output sublane s = f(s, l), lanes of a vector at a time, where f reads other places of a and b.
template <class F>
HWY_INLINE void byRows(uint32_t* d, const uint32_t* a, const uint32_t* b, F f) {
  alignas(64) uint32_t aside[kVectorWords];
  uint32_t* out = d == a || d == b ? aside : d;
  const size_t n = hn::Lanes(DU());
  for (int s = 0; s < 8; ++s)
    for (size_t l = 0; l < 128; l += n) store(f(s, l), out + s * 128 + l);
  if (out != d) std::memcpy(d, out, sizeof aside);
}

}  // namespace tpu::emulate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
