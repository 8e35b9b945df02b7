// What a run did and how long it took: per device, kernel, queue and link, and the two floors.
#pragma once
#include "args.h"

namespace tpu::emulate {

/// Fills everything of `result` but the results. Fails where a run beats its executed floor.
llvm::Error gatherStats(const Machine& machine, const Chips& chips, RunResult* result);

}  // namespace tpu::emulate
