// What a program exchanges with its host while it runs: --infeed, --receive, --outfeed, --sent.
#pragma once
#include "common/tool.h"
#include "tpu/eval/evaluate.h"

namespace tpu::run {

/// The arrays of --infeed and --receive, in the order in which they are read.
llvm::Expected<eval::HostTransfers> gatherTransfers(Tool& tool, const hlo::Module& module);

/// Writes --outfeed and --sent.
llvm::Error deliverTransfers(Tool& tool, const eval::HostTransfers& transfers);

}  // namespace tpu::run
