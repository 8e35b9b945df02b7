// Programs written back as StableHLO text, for every tool that reads MLIR (--emit=stablehlo).
#pragma once
#include "llvm/Support/raw_ostream.h"
#include "tpu/hlo/module.h"

namespace tpu::hlo {

/// StableHLO in MLIR's generic form, with sdy shardings and source locations. Reading the text of a module of
/// stage hlo gives its document again. Of stage spmd it is the program of one device: local types, no shardings,
/// collectives over listed groups of partitions.
void writeStableHlo(const Module& module, llvm::raw_ostream& os);

}  // namespace tpu::hlo
