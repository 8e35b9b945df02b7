// Where two programs that give different results first compute different values.
#pragma once
#include "tpu/eval/compare.h"
#include "tpu/eval/evaluate.h"

namespace tpu::run {

/// Ops of the two modules match by source location, name and element type, in order, where both have as many; calls are
/// inlined first. Runs both on the inputs and compares what matching ops compute, whole arrays, the first time that each
/// runs outside of a manual computation.
struct Parting {
  int64_t matched = 0;   // pairs of ops
  int64_t agreed = 0;    // compared before the first difference
  bool found = false;
  std::string op, loc;   // the op that differs, and its line
  hlo::Dims dims;
  std::optional<int64_t> device;  // that holds the element
  eval::Difference difference;
  HostTensor here, there;
};
llvm::Expected<Parting> findParting(const hlo::Module& here, const hlo::Module& there, const std::vector<HostTensor>& inputs,
                                    llvm::function_ref<eval::Tolerance(ElementType)> tolerance);

}  // namespace tpu::run
