// HLO text as XLA prints it, in the short and the long form, before or after its optimisation.
#pragma once
#include "tpu/frontend/frontend.h"

namespace tpu::frontend {

/// Not verified.
llvm::Expected<hlo::Module> parseHloText(llvm::StringRef text, llvm::StringRef filename, DiagnosticSink& sink);

}  // namespace tpu::frontend
