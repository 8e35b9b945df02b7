// Results against what was expected, and against what another program makes of the same inputs.
#pragma once
#include "arrays.h"

namespace tpu::run {

/// The error of exit status 3 for each result that is not within the tolerance of --rtol, --atol, --ulp or its type.
llvm::Error compareWithExpected(Tool& tool, const Program& program, llvm::ArrayRef<HostTensor> results,
                                llvm::ArrayRef<Expected> expected);

/// What --compare-to names: a program of any stage with the same signature, or "@FILE" with recorded results.
struct Other {
  std::string name;
  std::unique_ptr<Program> program;  // null: recorded
  std::vector<Expected> recorded;
};
llvm::Expected<Other> openOther(Tool& tool, const Signature& signature);

/// Runs the other program on `inputs` and compares every result; names element, owning device, both values and the
/// distance in ULPs of the first difference.
llvm::Error compareWithOther(Tool& tool, const Program& program, llvm::ArrayRef<HostTensor> results, Other& other,
                             std::vector<HostTensor> inputs);

}  // namespace tpu::run
