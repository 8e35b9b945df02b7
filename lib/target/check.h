// Relations between the numbers of a chip that single ranges cannot say.
#pragma once
#include <string>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "tpu/target/chip.h"

namespace tpu::target {

/// Refuses nonsense; `locOf` gives the place of a field.
llvm::Error checkChip(const Chip& chip, llvm::function_ref<std::string(const std::string&)> locOf);

}  // namespace tpu::target
