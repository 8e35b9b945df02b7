// Flags that only some programs honour, and flags that say something only beside another: what would be ignored is
// refused.
#pragma once
#include "program.h"

namespace tpu::run {

/// Fails where a flag of the command line lacks the flag that it speaks about; before anything is read.
llvm::Error checkCompanions(const Tool& tool);
/// Fails where neither `program` nor `other` (the one of --compare-to, or null) honours a flag. --trace and
/// --timing-only speak of `program` alone.
llvm::Error checkFlags(const Tool& tool, const Program& program, const Program* other);

}  // namespace tpu::run
