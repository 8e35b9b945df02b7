// Reports for programs: JSON Lines, one record per line, each with its "type". Integers are exact, sizes in bytes,
// times in nanoseconds, what is unknown is null. A report appears complete or not at all, like every output.
#pragma once
#include "tpu/serial/json_writer.h"
#include "tpu/support/files.h"

namespace tpu {

class Report {
 public:
  /// "-" is stdout.
  static llvm::Expected<Report> open(llvm::StringRef path);

  /// Starts a record: `report.begin("collective").field("bytes", n)...; report.end();`
  JsonWriter& begin(llvm::StringRef type);
  void end();
  /// A record that was rendered elsewhere: one JSON object without a line end.
  void line(llvm::StringRef json);
  llvm::Error commit();

 private:
  explicit Report(OutputFile file) : file_(std::move(file)), json_(file_.os()) {}
  OutputFile file_;
  JsonWriter json_;
};

}  // namespace tpu
