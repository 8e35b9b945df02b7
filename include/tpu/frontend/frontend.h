// Programs as frameworks print them, read into HLO.
#pragma once
#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"
#include "tpu/support/diagnostics.h"

namespace tpu::frontend {

enum class Format : uint8_t { kIrDocument, kStableHlo, kHloText, kBytecode, kEmpty, kUnknown };

/// What the first bytes say. Compressed input is recognised and unpacked before (support).
Format sniff(llvm::StringRef bytes);

/// Reads a program in any format that is read: an IR document of stage hlo or spmd, StableHLO text, or
/// StableHLO's portable artifacts (MLIR bytecode). Others are refused by name. The result is verified.
/// `filename` names the input in diagnostics, its base name locates ops of text without locations (one warning
/// says how to print them); errors in bytecode name the byte.
llvm::Expected<hlo::Module> readProgram(llvm::StringRef bytes, llvm::StringRef filename,
                                        DiagnosticSink& sink);

/// StableHLO text in pretty or generic form, as JAX, PyTorch and TensorFlow print it. Not verified.
llvm::Expected<hlo::Module> parseStableHlo(llvm::StringRef text, llvm::StringRef filename,
                                           DiagnosticSink& sink);

}  // namespace tpu::frontend
