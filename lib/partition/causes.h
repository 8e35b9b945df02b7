// Why a reshard is made, in words: what forced it and the cheapest change that removes it.
#pragma once
#include "tpu/hlo/module.h"

namespace tpu::partition {

/// Kept apart until it is known whether a reshard is made. Texts outlive it (literals, or a rule's note).
struct Cause {
  llvm::StringRef code;
  hlo::OpId needed_by;
  hlo::LocId asked_at;
  llvm::StringRef reason, remove_by;
};

/// An operand comes in another sharding than the operation computes with; `note` says why a dimension must be
/// whole.
Cause operandCause(const hlo::Module& m, hlo::OpId op, hlo::LocId asked_at, llvm::StringRef note);
/// A result is wanted in another sharding than the operation gives.
Cause resultCause(hlo::OpId op, hlo::LocId asked_at);
/// A result is a partial sum on every device; `scattered`: it is wanted sharded over the axes along which it is summed.
Cause partialCause(const hlo::Module& m, hlo::OpId op, hlo::LocId asked_at, bool scattered);

/// A collective that an operation's own expansion makes, by its code: "halo", "mirror", "sort", ...
Cause expansionCause(hlo::OpId op, llvm::StringRef code);

}  // namespace tpu::partition
