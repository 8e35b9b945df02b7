// What a program exchanges with its host while it runs: --infeed, --receive, --outfeed, --sent.
#pragma once
#include "common/tool.h"
#include "tpu/eval/evaluate.h"

namespace tpu::run {

/// The arrays of --infeed and --receive. The K-th --infeed is read as the types of the K-th infeed of the program, from the
/// first again where there are more (loops).
llvm::Expected<eval::HostTransfers> gatherTransfers(Tool& tool, const hlo::Module& module);

/// Writes --outfeed and --sent.
llvm::Error deliverTransfers(Tool& tool, const eval::HostTransfers& transfers);

}  // namespace tpu::run
