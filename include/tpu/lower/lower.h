// tpu-lower: a partitioned program (stage spmd, or a one-device source program) becomes buffers, kernels and a driver (stage
// llo). What the machine cannot do in this version is refused with a code, the op and its source line.
#pragma once
#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"
#include "tpu/llo/llo.h"
#include "tpu/support/diagnostics.h"
#include "tpu/target/chip.h"

namespace tpu::lower {

struct LowerOptions {
  /// bf16 passes of an f32 dot whose precision is DEFAULT: 1 (default), 3 (high), 6 (highest). Precision written in the
  /// program is never lowered.
  int default_passes = 1;
};

/// The module is consumed: calls are inlined, then every region is walked once in order.
llvm::Expected<llo::Module> lower(hlo::Module module, const target::Target& target, const LowerOptions& options,
                                  DiagnosticSink& sink);

}  // namespace tpu::lower
