// The table of vector bodies, in the order of instructions.def, and cutting entries out of a transposition.
#include "bodies.h"

#include <array>

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

}  // namespace tpu::emulate
