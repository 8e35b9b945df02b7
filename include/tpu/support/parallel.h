// Work on all host cores with results that do not depend on how many there are: fn(i) writes only what belongs to i.
#pragma once
#include <cstddef>

#include "llvm/ADT/STLFunctionalExtras.h"

namespace tpu {

/// Sets the number of threads for the whole process (0: all hardware threads). Call before the first parallelFor.
void setThreads(unsigned n);
unsigned threads();

/// Calls fn(0) ... fn(n-1), each exactly once, in no particular order, and returns when all are done. Calls from inside
/// fn run serially. One thread means the plain loop.
void parallelFor(size_t n, llvm::function_ref<void(size_t)> fn);

}  // namespace tpu
