// From a program on whole arrays with sharding wishes to the program one device runs.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"
#include "tpu/support/diagnostics.h"

namespace tpu::partition {

struct PartitionOptions {
  std::string mesh;                                            // "x=4,y=2", empty: the program's own
  std::vector<std::pair<std::string, std::string>> shardings;  // argument position or name -> sharding text
  std::string target;  // "v5e:4x2", empty: the default chip, as many devices as the mesh
  std::vector<std::string> without;  // names of passes left out (partitionModule; tools have --passes)
};

/// All passes at once, verified after each. A module of stage spmd is left as it is.
llvm::Error partitionModule(hlo::Module& module, const PartitionOptions& options, DiagnosticSink& sink);

}  // namespace tpu::partition
