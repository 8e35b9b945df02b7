// Flags that all tools answer by themselves: help, version, completion, codes, chips, passes, effective options.
#pragma once
#include "common/tool.h"

namespace tpu {

/// True where such a flag was given and answered on stdout: the tool then ends with 0.
llvm::Expected<bool> answerBuiltinFlags(const Tool& tool, llvm::ArrayRef<Flag> flags);

}  // namespace tpu
