// Expands a kernel's tile pipeline: grid steps as one flattened loop, blocks fetched one or two steps ahead into
// slots that the body does not use, outputs written back while the next step runs.
//
//   prologue   parameters into descriptors, fetches of step 0 (and 1)
//   loop       advance to step s+1 (s+2), start its fetches; wait for the blocks of step s; companions; body;
//              start write-backs of outputs whose offset changes; swap slots
//   epilogue   wait for the last write-backs; return
//
// A companion is stepped until it says that it is done; what it has left at the end of the grid is the
// driver's to drain. A block with one slot (it never moves, or VMEM is short) is fetched after the body
// instead.
#pragma once
#include "expand.h"

namespace tpu::schedule {

/// VMEM of one kernel: one to three slots per block, scratch, and what is left for spilled registers. Two steps
/// ahead means that every input that moves has three: a write-back then does not hold up the fetches.
struct VmemPlan {
  std::vector<llvm::SmallVector<int64_t, 3>> slots;  // addresses, by block
  bool two_ahead = false;
  std::vector<int64_t> scratch;
  int64_t end = 0;
  bool reduced = false;  // some block that moves has one slot only
};
/// Places the blocks of a kernel above the module's buffers; fails with exit 4, naming the largest block.
llvm::Expected<VmemPlan> planVmem(const Context& ctx, const llo::Kernel& kernel);

/// The function of a kernel with its companions; `call_locs` (row of Module::call_locs or -1) gives its op
/// slots' lines.
Func expandKernel(Context& ctx, const Callee& callee, const VmemPlan& plan, int32_t call_locs);

}  // namespace tpu::schedule
