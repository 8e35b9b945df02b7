// Expectations inside programs.
#pragma once
#include "kernel.h"

namespace tpu::eval {

/// True for the names of checks on two tensors (the second may be the op's own constant).
bool isCheck(llvm::StringRef target);
/// Exit status 3 with the first differing element where the check `op` does not hold.
llvm::Error checkHolds(const hlo::Module& module, hlo::OpId op, const HostTensor& got,
                       const HostTensor& want);

}  // namespace tpu::eval
