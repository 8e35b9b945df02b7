// Global arrays to and from the memories of devices, by the signature of a program.
#pragma once
#include <memory>
#include <vector>

#include "chip.h"
#include "llvm/ADT/ArrayRef.h"
#include "tpu/support/host_tensor.h"

namespace tpu::emulate {

using Chips = std::vector<std::unique_ptr<ChipSim>>;

/// Checks number, types and shapes.
llvm::Error checkArguments(const isa::Program& program, llvm::ArrayRef<HostTensor> args);
/// Writes every argument's part into every device, the constants, and the words of identity in SMEM.
void loadDevices(const Machine& machine, Chips& chips, llvm::ArrayRef<HostTensor> args);
/// Results as global arrays. Replicas must agree bit for bit; in strict runs every element must be defined.
llvm::Expected<std::vector<HostTensor>> collectResults(const Machine& machine, Chips& chips);

}  // namespace tpu::emulate
