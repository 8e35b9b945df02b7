// What tpu-schedule says about its work: for people, and as records of --report.
#pragma once
#include <optional>

#include "tpu/report/report.h"
#include "tpu/schedule/passes.h"

namespace tpu::schedule {

/// "16GiB", "500MB", "4096": bytes; K, M, G, T with iB or B.
std::optional<int64_t> parseSize(llvm::StringRef text);
/// Who lives in HBM at the fullest moment. Records of type "memory" and "buffer".
void reportPeak(const State& state, llvm::raw_ostream& os, Report* report);
/// Bundles, instructions, loops and spills by function. Records of type "function".
void reportFunctions(const State& state, llvm::raw_ostream& os, Report* report);
/// One to three lines; with a report, a record of type "summary" as well.
std::string summary(const State& state, Report* report);
/// What people call a buffer: its name, or "a temporary f32[4,16,128]".
std::string bufferText(const llo::Buffer& buffer);

}  // namespace tpu::schedule
