// Values as StableHLO's reference interpreter prints them, for programs that are checked by their output.
#pragma once
#include <string>

#include "llvm/Support/raw_ostream.h"
#include "tpu/hlo/module.h"
#include "tpu/support/host_tensor.h"

namespace tpu::eval {

/// "tensor<2x?xi32>", "tuple<...>", "!stablehlo.token".
std::string mlirTypeText(const hlo::Module& module, const hlo::Type& type);
/// One element as MLIR prints attributes: "1", "true", "1.000000e+00", "0x7FC0", "(1.0,2.0)" (or in
/// brackets).
std::string mlirElementText(const HostTensor& tensor, int64_t index, bool brackets);

/// "tensor<2x2xi8> {\n  [\n    [1, 2],\n    [3, 4]\n  ]\n}".
void printInterpreted(llvm::raw_ostream& os, llvm::StringRef type, const HostTensor& tensor);
/// "dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>".
void printDense(llvm::raw_ostream& os, llvm::StringRef type, const HostTensor& tensor);

/// The name that MLIR's printer gives a value: "%0", "%2#1", "%c_0", "%arg1".
std::string printedName(const hlo::Module& module, hlo::ValueId value);

}  // namespace tpu::eval
