// StableHLO's portable artifacts: a program of versioned operations (vhlo) in MLIR bytecode.
#pragma once
#include "llvm/Support/Error.h"
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/module.h"
#include "tpu/support/diagnostics.h"

namespace tpu::frontend {

/// Reads an artifact. Not verified. Errors name the byte at which they were found.
llvm::Expected<hlo::Module> readBytecode(llvm::StringRef bytes, llvm::StringRef filename,
                                         DiagnosticSink& sink, const ReadOptions& options = {});

}  // namespace tpu::frontend
