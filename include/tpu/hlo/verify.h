// The verifier: run on read, after every pass and before write.
#pragma once
#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"

namespace tpu::hlo {

/// Checks structure (ids, parents, terminators, unique function names, no recursion), definitions before
/// uses, region arguments and yields, calls and ports, shardings against meshes, and each op's own rule
/// (infer.h). In stage spmd also that ports' per-device types follow from their global types. The first
/// failure of each function is returned (joined), located at the op.
llvm::Error verify(const Module& module);

/// One op alone, without its surroundings.
llvm::Error verifyOp(const Module& module, OpId op);

}  // namespace tpu::hlo
