// The clock behind --time-passes.
#include "tpu/support/time_table.h"

#include <chrono>

#include "llvm/Support/Format.h"

namespace tpu {
namespace {

double nowMs() {
  auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(t).count();
}

}  // namespace

void TimeTable::begin() { begin_ms_ = nowMs(); }

void TimeTable::end(llvm::StringRef step) {
  steps_.emplace_back(step.str(), nowMs() - begin_ms_);
  begin();
}

void TimeTable::print(llvm::raw_ostream& os, llvm::StringRef whole) const {
  double total = 0;
  for (const auto& [step, ms] : steps_) total += ms;
  for (const auto& [step, ms] : steps_)
    os << llvm::format("%10.2f ms %5.1f %%  ", ms, total > 0 ? 100 * ms / total : 0.0) << step << '\n';
  os << llvm::format("%10.2f ms 100.0 %%  ", total) << whole << '\n';
}

}  // namespace tpu
