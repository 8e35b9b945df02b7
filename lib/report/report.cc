// JSON Lines over an all-or-nothing file.
#include "tpu/report/report.h"

namespace tpu {

llvm::Expected<Report> Report::open(llvm::StringRef path) {
  llvm::Expected<OutputFile> file = OutputFile::open(path, OutputKind::kText);
  if (!file) return file.takeError();
  return Report(std::move(*file));
}

JsonWriter& Report::begin(llvm::StringRef type) {
  json_ = JsonWriter(file_.os());
  return json_.beginObject().field("type", type);
}

void Report::end() {
  json_.endObject();
  file_.os() << '\n';
}

void Report::line(llvm::StringRef json) { file_.os() << json << '\n'; }

llvm::Error Report::commit() { return file_.commit(); }

}  // namespace tpu
