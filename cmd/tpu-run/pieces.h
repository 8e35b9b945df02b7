// Functions that check themselves, in one program or in several of one text.
#pragma once
#include "common/tool.h"

namespace tpu::run {

/// True where the command line asks for them.
bool runsPieces(const Tool& tool);
llvm::Error runPieces(Tool& tool, const Input& input);

}  // namespace tpu::run
