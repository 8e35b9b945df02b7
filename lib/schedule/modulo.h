// Software pipelining of innermost loops: iterations start every II cycles, so that the units of the chip
// work on several of them at once.
//
// No register is renamed: a value must be read before the next iteration writes its register, which is an
// edge like any other. Values that would live longer are results in FIFOs (which hold several) or addresses,
// and an address gets a pointer of its own for each part of the iteration (pointers.h).
#pragma once
#include "machine.h"

namespace tpu::schedule {

struct PipelineStats {
  int pipelined = 0, plain = 0;
};

/// Pipelines every innermost straight-line loop where that pays; such a loop becomes prologue, fixed kernel
/// block and epilogue, with the plain loop beside it where the trip count is known only when running.
void pipelineLoops(Func& func, const Machine& machine, PipelineStats* stats);

/// A modulo schedule of a loop body.
struct ModuloSchedule {
  int ii = 0;
  std::vector<int32_t> time;  // by instruction, from 0
  int stages() const;
};
/// Fails (false) where no schedule shorter than `limit` cycles per iteration is found. Cycles
/// `reserved_scalar` before the branch, and the branch's own slot, are kept free for the loop's control.
bool moduloSchedule(llvm::ArrayRef<Insn> body, const Machine& machine, int limit, ModuloSchedule* out);

}  // namespace tpu::schedule
