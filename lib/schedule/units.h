// Virtual matrix and cross-lane units to those of the chip.
#pragma once
#include "llvm/Support/Error.h"
#include "machine.h"

namespace tpu::schedule {

/// Gives every virtual unit one physical unit, balancing the work, so that pushes and pops in program order
/// stay paired.
llvm::Error assignUnits(Func& func, const Machine& machine);

}  // namespace tpu::schedule
