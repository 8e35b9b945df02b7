// Where a tool's own time goes: named steps, one after the other, printed as a table by --time-passes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "llvm/Support/raw_ostream.h"

namespace tpu {

class TimeTable {
 public:
  TimeTable() { begin(); }
  /// A step starts now.
  void begin();
  /// The step that began last ends now, and the next one starts.
  void end(llvm::StringRef step);
  /// A row per step, ms of wall time and share, and a row for all of them, called `whole`.
  void print(llvm::raw_ostream& os, llvm::StringRef whole) const;

 private:
  double begin_ms_ = 0;
  std::vector<std::pair<std::string, double>> steps_;  // ms
};

}  // namespace tpu
