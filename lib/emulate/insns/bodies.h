// The arithmetic of every vector instruction, one function each: VALU, EUP and XLU rows of instructions.def.
// A body sees whole registers (1024 words, row-major by sublane) and nothing of the machine; masks are
// registers whose words are 0 or ~0. The interpreter of untimed programs uses the same functions. A row
// without a body does not link.
#pragma once
#include <cstdint>

#include "tpu/emulate/vector_bodies.h"
#include "tpu/isa/isa.h"

namespace tpu::emulate {

// One getter per vector row; the family files define them.
#define TPU_BODY_kScalar(id)
#define TPU_BODY_kLoad(id)
#define TPU_BODY_kStore(id)
#define TPU_BODY_kMxu(id)
#define TPU_BODY_kPop(id)
#define TPU_BODY_kMisc(id)
#define TPU_BODY_kValu(id) VectorBody bodyOf_##id();
#define TPU_BODY_kEup(id) VectorBody bodyOf_##id();
#define TPU_BODY_kXlu(id) VectorBody bodyOf_##id();
#define TPU_INSN(id, mnemonic, slot, ...) TPU_BODY_##slot(id)
#include "tpu/isa/instructions.def"
#undef TPU_BODY_kValu
#undef TPU_BODY_kEup
#undef TPU_BODY_kXlu

}  // namespace tpu::emulate

/// Defines the getter of a body that foreach_target has compiled; inside HWY_ONCE.
#define TPU_EXPORT_BODY(id) \
  HWY_EXPORT(id);           \
  VectorBody bodyOf_##id() { return &HWY_DYNAMIC_DISPATCH(id); }
