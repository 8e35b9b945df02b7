// The pass list as data.
#pragma once
#include "context.h"
#include "tpu/partition/partition.h"
#include "tpu/target/chip.h"

namespace tpu::partition {

struct State {
  hlo::Module module;
  PartitionOptions options;
  Context ctx;
  target::Target target;
  double unpartitioned_ops = 0;  // contraction work of the program as written
};

struct PassRow {
  const char* name;
  const char* summary;
  llvm::Error (*run)(State&);
};
/// In order; each leaves a program that verifies.
llvm::ArrayRef<PassRow> passRows();

}  // namespace tpu::partition
