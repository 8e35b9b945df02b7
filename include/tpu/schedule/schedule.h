// Stage llo to stage bundles: memory, pipelines, units, registers, bundles.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "tpu/isa/program.h"
#include "tpu/llo/llo.h"
#include "tpu/target/chip.h"

namespace tpu::schedule {

struct Options {
  int64_t hbm_limit = 0;  // bytes; 0: what the chip lets a program use
  bool modulo = true;     // software-pipeline innermost loops
  int threads = 1;        // functions are scheduled independently; the result does not depend on it
};

/// What became of one function.
struct FunctionStats {
  std::string name;
  int64_t bundles = 0, instructions = 0;
  int loops_pipelined = 0, loops_plain = 0;  // innermost straight-line loops
  std::array<int, 4> spilled{};              // by isa::RegClass
  bool reduced_depth = false;                // a moving block has one slot only
  int64_t vmem_bytes = 0;
};
struct Stats {
  std::vector<FunctionStats> functions;
};

/// Schedules the whole module. Fails with exit 4 where memory does not suffice.
llvm::Expected<isa::Program> schedule(const llo::Module& module, const target::Chip& chip,
                                      const Options& options, Stats* stats = nullptr);

/// A buffer that is live at the peak, for reports.
struct PeakBuffer {
  int32_t buffer = 0;
  int64_t bytes = 0, real_bytes = 0;
};
/// HBM bytes that are live at once at most, where (statement of the driver), and who they are, largest first.
struct Peak {
  int64_t bytes = 0;
  int64_t position = 0;
  std::vector<PeakBuffer> buffers;
};
Peak hbmPeak(const llo::Module& module);

}  // namespace tpu::schedule
