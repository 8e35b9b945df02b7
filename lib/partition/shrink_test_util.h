// Cutting a failing program down to a small one that still fails.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "tpu/hlo/module.h"

namespace tpu::partition {

/// Drops results, operations (their results become arguments, or an operand of the same type) and shardings as long as
/// `fails` holds; every program tried verifies.
hlo::Module shrink(const hlo::Module& whole, llvm::function_ref<bool(const hlo::Module&)> fails);

/// Operations of the entry, nested ones included, terminators aside.
size_t countOps(const hlo::Module& m);

}  // namespace tpu::partition
