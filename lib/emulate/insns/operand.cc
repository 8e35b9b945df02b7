// Operands on their way into a matrix unit: the values of packed elements as f32, 4 / width rows from every
// sublane.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../lib/emulate/insns/operand.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include <array>
#include <bit>

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tpu/emulate/vector_bodies.h"
#include "vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tpu::emulate::HWY_NAMESPACE {

HWY_INLINE hn::Vec<DU> roundToBf16(hn::Vec<DU> x) {
  const DU t;
  const auto even = hn::And(hn::ShiftRight<16>(x), hn::Set(t, 1));
  const auto rounded = hn::Add(x, hn::Add(even, hn::Set(t, 0x7fff)));
  const auto quiet = hn::Or(x, hn::Set(t, 0x400000u));
  const auto nan = hn::Gt(hn::And(x, hn::Set(t, 0x7fffffffu)), hn::Set(t, 0x7f800000u));
  return hn::And(hn::IfThenElse(nan, quiet, rounded), hn::Set(t, 0xffff0000u));
}
void OperandF32(uint32_t* d, const uint32_t* a) {
  unary<uint32_t>(d, a, [](auto x) { return roundToBf16(x); });
}
void OperandBf16(uint32_t* d, const uint32_t* a) {
  for (size_t i = 0; i < kVectorWords; i += hn::Lanes(DU())) {
    uint32_t* row = d + i / 128 * 256 + i % 128;
    const auto x = load<uint32_t>(a + i);
    store(hn::ShiftLeft<16>(x), row);
    store(hn::And(x, hn::Set(DU(), 0xffff0000u)), row + 128);
  }
}
// f(word with the byte on top) is its value.
template <class F>
HWY_INLINE void operand8(uint32_t* d, const uint32_t* a, F f) {
  for (size_t i = 0; i < kVectorWords; i += hn::Lanes(DU())) {
    uint32_t* row = d + i / 128 * 512 + i % 128;
    const auto x = load<uint32_t>(a + i);
    store(f(hn::ShiftLeft<24>(x)), row);
    store(f(hn::ShiftLeft<16>(x)), row + 128);
    store(f(hn::ShiftLeft<8>(x)), row + 256);
    store(f(x), row + 384);
  }
}
void OperandS8(uint32_t* d, const uint32_t* a) {
  operand8(d, a, [](auto x) { return hn::ConvertTo(DF(), hn::ShiftRight<24>(hn::BitCast(DI(), x))); });
}
void OperandU8(uint32_t* d, const uint32_t* a) {
  operand8(d, a, [](auto x) { return hn::ConvertTo(DF(), hn::BitCast(DI(), hn::ShiftRight<24>(x))); });
}

}  // namespace tpu::emulate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tpu::emulate {
HWY_EXPORT(OperandF32);
HWY_EXPORT(OperandBf16);
HWY_EXPORT(OperandS8);
HWY_EXPORT(OperandU8);

namespace {

// All values of an 8-bit float: sign, `e` exponent and 7 - e fraction bits. IEEE-like with infinities, or
// (finite) with only the all-ones pattern as NaN.
std::array<uint32_t, 256> float8(int e, bool finite) {
  std::array<uint32_t, 256> table{};
  const int fraction = 7 - e, bias = (1 << (e - 1)) - 1, top = (1 << e) - 1;
  for (uint32_t v = 0; v < 256; ++v) {
    const int exp = static_cast<int>(v >> fraction) & top, man = static_cast<int>(v) & ((1 << fraction) - 1);
    float x = exp ? 1.0f + static_cast<float>(man) / static_cast<float>(1 << fraction)
                  : static_cast<float>(man) / static_cast<float>(1 << fraction);
    const int scale = (exp ? exp : 1) - bias;
    for (int i = 0; i < scale; ++i) x *= 2.0f;
    for (int i = 0; i > scale; --i) x *= 0.5f;
    uint32_t bits = std::bit_cast<uint32_t>(x);
    if (finite && (v & 0x7f) == 0x7f) bits = 0x7fc00000u;
    if (!finite && exp == top) bits = man ? 0x7fc00000u : 0x7f800000u;
    table[v] = bits ^ (v & 0x80) << 24;
  }
  return table;
}

void operandByTable(uint32_t* d, const uint32_t* a, const std::array<uint32_t, 256>& table) {
  for (int s = 0; s < 8; ++s)
    for (int byte = 0; byte < 4; ++byte)
      for (int l = 0; l < 128; ++l)
        d[(4 * s + byte) * 128 + l] = table[a[s * 128 + l] >> (8 * byte) & 0xff];
}

}  // namespace

int mxuOperand(isa::Opcode type, const uint32_t* a, float* out) {
  using enum isa::Opcode;
  auto* d = reinterpret_cast<uint32_t*>(out);
  switch (type) {
    case vmatpush_f32:
    case vmatpusht_f32:
    case vmatmul_f32:
    case vmatmul_acc_f32:
      HWY_DYNAMIC_DISPATCH(OperandF32)(d, a);
      return 8;
    case vmatpush_bf16:
    case vmatpusht_bf16:
    case vmatmul_bf16:
    case vmatmul_acc_bf16:
      HWY_DYNAMIC_DISPATCH(OperandBf16)(d, a);
      return 16;
    case vmatpush_s8:
    case vmatpusht_s8:
    case vmatmul_s8:
    case vmatmul_acc_s8:
      HWY_DYNAMIC_DISPATCH(OperandS8)(d, a);
      return 32;
    case vmatpush_u8:
    case vmatpusht_u8:
    case vmatmul_u8:
    case vmatmul_acc_u8:
      HWY_DYNAMIC_DISPATCH(OperandU8)(d, a);
      return 32;
    case vmatpush_f8e4m3fn:
    case vmatpusht_f8e4m3fn:
    case vmatmul_f8e4m3fn:
    case vmatmul_acc_f8e4m3fn: {
      static const auto table = float8(4, true);
      operandByTable(d, a, table);
      return 32;
    }
    case vmatpush_f8e5m2:
    case vmatpusht_f8e5m2:
    case vmatmul_f8e5m2:
    case vmatmul_acc_f8e5m2: {
      static const auto table = float8(5, false);
      operandByTable(d, a, table);
      return 32;
    }
    default:
      return 0;
  }
}

}  // namespace tpu::emulate
#endif
