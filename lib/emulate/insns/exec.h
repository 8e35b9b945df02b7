// How the function of an instruction is written down: TPU_EXEC(sadd) { ... } sees the core `c` and the
// decoded `op`, and is compiled twice, for plain and for strict runs (`kStrict`), so that plain runs pay
// nothing for definedness.
#pragma once
#include "../core.h"

namespace tpu::emulate {

// One getter per row; the family files define them. Vector rows share their plumbing (vector.cc).
#define TPU_EXEC_ROW(id) Exec execOf_##id(bool strict);
#define TPU_INSN(id, mnemonic, slot, ...) TPU_EXEC_ROW(id)
#include "tpu/isa/instructions.def"
#undef TPU_EXEC_ROW

}  // namespace tpu::emulate

#define TPU_EXEC(id)                                                                    \
  template <bool kStrict>                                                               \
  static void run_##id(Core& c, const Op& op);                                          \
  Exec execOf_##id(bool strict) { return strict ? &run_##id<true> : &run_##id<false>; } \
  template <bool kStrict>                                                               \
  static void run_##id([[maybe_unused]] Core& c, [[maybe_unused]] const Op& op)
