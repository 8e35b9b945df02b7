// The table of vector bodies, in the order of instructions.def, and the two that belong to buffers of a unit:
// cutting entries out of a transposition, and turning packed operands into the values a matrix unit
// multiplies.
#include "bodies.h"

#include <array>
#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#include "hwy/highway.h"

namespace tpu::emulate {

// These two load the buffer of a unit; they have no body of the plain form.
VectorBody bodyOf_vxpose() { return nullptr; }
VectorBody bodyOf_vxpose_go() { return nullptr; }

VectorBody vectorBody(isa::Opcode op) {
  static const auto table = [] {
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    std::array<VectorBody, static_cast<size_t>(isa::Opcode::kCount)> t{};
    size_t row = 0;
#define TPU_BODY_kValu(id) t[row] = bodyOf_##id();
#define TPU_BODY_kEup(id) t[row] = bodyOf_##id();
#define TPU_BODY_kXlu(id) t[row] = bodyOf_##id();
#define TPU_INSN(id, mnemonic, slot, ...) TPU_BODY_##slot(id)++ row;
#include "tpu/isa/instructions.def"
    return t;
  }();
  return table[static_cast<size_t>(op)];
}

void transposeEntry(uint32_t* d, const uint32_t* buffer, int lane, int j) {
  const uint32_t* column = buffer + lane + 8 * j;
  for (int l = 0; l < 128; ++l)
    for (int s = 0; s < 8; ++s) d[s * 128 + l] = column[l * 128 + s];
}

bool mxuInteger(isa::Opcode op) {
  using enum isa::Opcode;
  switch (op) {
    case vmatpush_s8:
    case vmatpusht_s8:
    case vmatmul_s8:
    case vmatmul_acc_s8:
    case vmatpush_u8:
    case vmatpusht_u8:
    case vmatmul_u8:
    case vmatmul_acc_u8:
      return true;
    default:
      return false;
  }
}

namespace {

float fromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

float roundToBf16(uint32_t x) {
  if ((x & 0x7fffffffu) > 0x7f800000u) return fromBits((x | 0x400000u) & 0xffff0000u);
  return fromBits((x + 0x7fff + ((x >> 16) & 1)) & 0xffff0000u);
}

// All values of an 8-bit float: sign, `e` exponent and 7 - e fraction bits. IEEE-like with infinities, or
// (finite) with only the all-ones pattern as NaN.
std::array<float, 256> float8(int e, bool finite) {
  std::array<float, 256> table{};
  const int fraction = 7 - e, bias = (1 << (e - 1)) - 1, top = (1 << e) - 1;
  for (int v = 0; v < 256; ++v) {
    const int exp = (v >> fraction) & top, man = v & ((1 << fraction) - 1);
    float x = exp ? 1.0f + static_cast<float>(man) / static_cast<float>(1 << fraction)
                  : static_cast<float>(man) / static_cast<float>(1 << fraction);
    const int scale = (exp ? exp : 1) - bias;
    for (int i = 0; i < scale; ++i) x *= 2.0f;
    for (int i = 0; i > scale; --i) x *= 0.5f;
    if (finite && (v & 0x7f) == 0x7f) x = fromBits(0x7fc00000u);
    if (!finite && exp == top) x = fromBits(man ? 0x7fc00000u : 0x7f800000u);
    table[v] = v & 0x80 ? fromBits(std::bit_cast<uint32_t>(x) ^ 0x80000000u) : x;
  }
  return table;
}

void unpackF32(const uint32_t* a, float* out) {
  for (int i = 0; i < kVectorWords; ++i) out[i] = roundToBf16(a[i]);
}
void unpackBf16(const uint32_t* a, float* out) {
  auto* bits = reinterpret_cast<uint32_t*>(out);
  for (int s = 0; s < 8; ++s)
    for (int l = 0; l < 128; ++l) {
      bits[(2 * s) * 128 + l] = a[s * 128 + l] << 16;
      bits[(2 * s + 1) * 128 + l] = a[s * 128 + l] & 0xffff0000u;
    }
}
template <class F>
void unpack8(const uint32_t* a, float* out, F value) {
  for (int s = 0; s < 8; ++s)
    for (int byte = 0; byte < 4; ++byte)
      for (int l = 0; l < 128; ++l)
        out[(4 * s + byte) * 128 + l] = value(static_cast<uint8_t>(a[s * 128 + l] >> (8 * byte)));
}

}  // namespace

int mxuOperand(isa::Opcode type, const uint32_t* a, float* out) {
  using enum isa::Opcode;
  switch (type) {
    case vmatpush_f32:
    case vmatpusht_f32:
    case vmatmul_f32:
    case vmatmul_acc_f32:
      unpackF32(a, out);
      return 8;
    case vmatpush_bf16:
    case vmatpusht_bf16:
    case vmatmul_bf16:
    case vmatmul_acc_bf16:
      unpackBf16(a, out);
      return 16;
    case vmatpush_s8:
    case vmatpusht_s8:
    case vmatmul_s8:
    case vmatmul_acc_s8:
      unpack8(a, out, [](uint8_t x) { return static_cast<float>(static_cast<int8_t>(x)); });
      return 32;
    case vmatpush_u8:
    case vmatpusht_u8:
    case vmatmul_u8:
    case vmatmul_acc_u8:
      unpack8(a, out, [](uint8_t x) { return static_cast<float>(x); });
      return 32;
    case vmatpush_f8e4m3fn:
    case vmatpusht_f8e4m3fn:
    case vmatmul_f8e4m3fn:
    case vmatmul_acc_f8e4m3fn: {
      static const auto table = float8(4, true);
      unpack8(a, out, [](uint8_t x) { return table[x]; });
      return 32;
    }
    case vmatpush_f8e5m2:
    case vmatpusht_f8e5m2:
    case vmatmul_f8e5m2:
    case vmatmul_acc_f8e5m2: {
      static const auto table = float8(5, false);
      unpack8(a, out, [](uint8_t x) { return table[x]; });
      return 32;
    }
    default:
      return 0;
  }
}

}  // namespace tpu::emulate
