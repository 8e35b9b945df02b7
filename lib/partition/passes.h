// The pass list as data, and what the passes work on.
#pragma once
#include "context.h"
#include "tpu/partition/partition.h"
#include "tpu/pass/pass.h"
#include "tpu/target/chip.h"

namespace tpu::partition {

struct State {
  hlo::Module module;
  PartitionOptions options;
  Context ctx;
  target::Target target;
  bool keep_requests = false;               // for findRemovals
  std::unique_ptr<hlo::Module> requested;   // the program before propagation, where kept
  double unpartitioned_ops = 0;         // contraction work of the program as written
  std::string input_bytes, input_name;  // read by the first pass unless empty
};

/// In order; each leaves a program that verifies.
llvm::ArrayRef<Pass<State>> passList();

}  // namespace tpu::partition
