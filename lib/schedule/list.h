// Orders the instructions of a block into bundles: list scheduling by critical path over the chip's slots,
// units and latencies.
#pragma once
#include <vector>

#include "deps.h"

namespace tpu::schedule {

/// Instructions by bundle, terminator and its delay bundles included.
using Bundles = std::vector<llvm::SmallVector<Insn, 4>>;

/// Schedules a block that is not fixed. Bundles without instructions are left out except after a branch: the
/// machine waits by itself. False where FIFO limits cannot be kept in the order of the program.
bool listSchedule(const Block& block, const Machine& machine, Bundles* out);
/// The bundles of a fixed block.
void layOutFixed(const Block& block, const Machine& machine, Bundles* out);

}  // namespace tpu::schedule
