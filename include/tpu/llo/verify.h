// The rules of stage llo, checked after reading, after lowering and before scheduling.
#pragma once
#include "llvm/Support/Error.h"
#include "tpu/llo/llo.h"
#include "tpu/target/chip.h"

namespace tpu::llo {

/// Registers are virtual, of the function, and written before they are read on every path; memory is reached
/// only through blocks, scratch and buffers; FIFO entries pushed in a loop body or branch are popped there,
/// in every path alike; transfers, semaphores, calls and tables are well-formed. The first violation fails
/// with kBadLlo at the statement's source line.
llvm::Error verify(const Module& module, const target::Chip& chip);

}  // namespace tpu::llo
