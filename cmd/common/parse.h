// Command line to values. The one translation unit behind this header that includes CLI11 and catches exceptions.
#pragma once
#include "common/tool.h"

namespace tpu {

/// kUsageError (exit 2) for an unknown flag (with the nearest one), a missing or disallowed value, a second input.
llvm::Expected<FlagValues> parseCommandLine(const ToolInfo& info, llvm::ArrayRef<Flag> flags, int argc, char** argv);

}  // namespace tpu
