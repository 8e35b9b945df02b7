// Virtual registers to physical ones by graph colouring; what does not fit is spilled and tried again.
//
// Scalars spill to SMEM words, vectors to VMEM, masks and predicates through a vector or scalar register.
// Constants are made again instead. Values that live over a call are always spilled: a kernel may use every
// register.
#pragma once
#include "context.h"
#include "llvm/Support/Error.h"
#include "machine.h"

namespace tpu::schedule {

struct AllocStats {
  int spilled[kNumClasses] = {0, 0, 0, 0};
  int rounds = 0;
};
/// Where registers of fixed blocks would have to be spilled, *unfix is set: the function is then useless.
llvm::Error allocateRegisters(Func& func, Context& ctx, const Machine& machine, AllocStats* stats,
                              bool* unfix);

}  // namespace tpu::schedule
