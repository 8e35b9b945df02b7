// The frame of IR documents, written row by row.
#include "llvm/ADT/StringExtras.h"
#include "tpu/serial/document.h"

namespace tpu {

DocumentWriter::DocumentWriter(llvm::raw_ostream& os, llvm::StringRef stage, llvm::StringRef only)
    : os_(&os), only_(only.str()), wanted_(only.empty()) {
  if (wanted_) *os_ << "{\"format\":\"tpu-ir\",\"version\":" << kDocumentVersion << ",\"stage\":\"" << stage << '"';
}

JsonWriter& DocumentWriter::field(llvm::StringRef name) {
  wanted_ = only_.empty();
  llvm::raw_ostream& os = wanted_ ? *os_ : llvm::nulls();
  os << ",\n";
  writeJsonString(os, name);
  os << ':';
  json_ = std::make_unique<JsonWriter>(os);
  return *json_;
}

void DocumentWriter::beginTable(llvm::StringRef name) {
  tables_.push_back(name.str());
  wanted_ = only_.empty() || only_ == name;
  first_row_ = true;
  if (only_.empty()) *os_ << ",\n\"" << name << "\":[";
  json_ = std::make_unique<JsonWriter>(wanted_ ? *os_ : llvm::nulls());
}

JsonWriter& DocumentWriter::row() {
  if (only_.empty()) *os_ << (first_row_ ? "\n" : ",\n");
  if (!only_.empty() && wanted_ && !first_row_) *os_ << '\n';
  first_row_ = false;
  *json_ = JsonWriter(wanted_ ? *os_ : llvm::nulls());
  return *json_;
}

void DocumentWriter::endTable() {
  if (only_.empty())
    *os_ << (first_row_ ? "]" : "\n]");
  else if (wanted_ && !first_row_)
    *os_ << '\n';
}

llvm::Error DocumentWriter::finish() {
  if (only_.empty()) {
    *os_ << "}\n";
    return llvm::Error::success();
  }
  if (llvm::is_contained(tables_, only_)) return llvm::Error::success();
  return fail(Code::kUsageError, "", "no table '" + only_ + "' in this document; its tables are " + llvm::join(tables_, ", "),
              ExitStatus::kUsage);
}

}  // namespace tpu
