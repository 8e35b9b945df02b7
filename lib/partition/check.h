// Proofs before running: collectives that cannot hang.
#pragma once
#include <vector>

#include "tpu/hlo/module.h"
#include "tpu/support/diagnostics.h"

namespace tpu::partition {

/// Groups partition the participants, permutes are one-to-one, and no loop or branch around a collective can
/// go different ways on devices of one group. All findings, in program order; empty when the program is
/// sound.
std::vector<Diagnostic> checkCollectives(const hlo::Module& m);

}  // namespace tpu::partition
