// Runs stage `llo` without time: every buffer, block and scratch area has storage of its own with unmapped space around
// it, DMAs complete as they start, and FIFOs must never hold more than the chip allows in program order. What a program
// computes here is what its bundles must compute later; an access outside a buffer, a pop of an empty FIFO or a wait
// that can never end fails with a code and the source line.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "tpu/llo/llo.h"
#include "tpu/support/host_tensor.h"
#include "tpu/target/chip.h"

namespace tpu::emulate {

struct InterpretOptions {
  /// Word that memory holds before anything is written: a NaN as f32 and as bf16, so that padding that leaks is seen.
  uint32_t garbage = 0xffa5ffa5u;
  /// Fails (exit 5) after this many statements on one device; 0: no limit.
  int64_t max_statements = 0;
};

/// Fails with kHostMemory where the buffers of all devices and the global arrays need more memory than this host
/// has available, at the source line of the largest buffer.
llvm::Error requireMemory(const llo::Module& module);

/// Runs a module on all its devices with global arguments in the order of Module::args; gives global results.
llvm::Expected<std::vector<HostTensor>> interpret(const llo::Module& module, const target::Chip& chip,
                                                  llvm::ArrayRef<HostTensor> args, const InterpretOptions& options = {});

/// One operand of a kernel that runs alone: the bytes of the buffer behind a kHbm, kSmem or kVmem parameter (written
/// back), or the word itself.
struct KernelOperand {
  std::vector<uint8_t> bytes;
  uint32_t word = 0;
};
/// Runs one kernel once.
llvm::Error interpretKernel(const llo::Kernel& kernel, const target::Chip& chip, std::vector<KernelOperand>& operands,
                            const InterpretOptions& options = {});

}  // namespace tpu::emulate
