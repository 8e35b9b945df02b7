// Arrays named on the command line: which input or result, which file or literal.
#pragma once
#include "program.h"
#include "tpu/support/port_name.h"

namespace tpu::run {

/// The port that tpu::findPort finds, or an error. `role` is "input" or "result".
llvm::Expected<size_t> findPort(llvm::ArrayRef<Port> ports, llvm::StringRef key, llvm::StringRef role);
/// "input 0 'x'".
std::string portText(llvm::StringRef role, size_t index, const Port& port);

/// The array behind "@f.npy", "@f.npz:key", "bits@f.npy", "2x3xf32=..", "seed:7", checked against the port.
llvm::Expected<HostTensor> loadArray(Tool& tool, llvm::StringRef spec, const Port& port, size_t index,
                                     llvm::StringRef role);

/// --input and --inputs for all arguments.
llvm::Expected<std::vector<HostTensor>> gatherInputs(Tool& tool, const Signature& signature);

/// --expect: the position of the result and the array.
struct Expected {
  size_t index;
  HostTensor want;
};
llvm::Expected<std::vector<Expected>> gatherExpected(Tool& tool, const Signature& signature);

/// Writes --output, prints for --print, compares with `expected`; a difference is the error of exit status 3.
llvm::Error deliver(Tool& tool, const Program& program, llvm::ArrayRef<HostTensor> results,
                    llvm::ArrayRef<Expected> expected);

}  // namespace tpu::run
