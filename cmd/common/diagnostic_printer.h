// Diagnostics on stderr: `file:line:col: severity[TPnnnn]: text` with the source line and a caret where the file can be
// read, or one JSON object per line. Colour only on a terminal and never with NO_COLOR.
#pragma once
#include <map>
#include <set>

#include "tpu/support/diagnostics.h"

namespace tpu {

std::string codeName(Code code);  // "TP0101"
/// "TP0101", "0101" or "101".
std::optional<uint16_t> parseCode(llvm::StringRef text);

class DiagnosticPrinter : public DiagnosticSink {
 public:
  /// `tool` stands in place of a missing location; relative source names are looked up here and beside `input`.
  DiagnosticPrinter(llvm::StringRef tool, llvm::StringRef input);
  void setJson(bool json) { json_ = json; }
  void treatAsError(Code code) { errors_.insert(code); }
  void treatAllAsErrors() { all_errors_ = true; }
  void suppress(Code code) { suppressed_.insert(code); }

  void report(const Diagnostic& diagnostic) override;
  /// Prints all diagnostics of `error` and gives the exit status of the first.
  ExitStatus reportError(llvm::Error error);
  /// A warning that was made an error was reported.
  bool hasPromoted() const { return promoted_; }
  unsigned warnings() const { return warnings_; }

 private:
  void printText(const Diagnostic& d, Severity severity);
  void printSource(llvm::StringRef loc);
  void printJson(llvm::raw_ostream& os, const Diagnostic& d, Severity severity) const;
  /// Lines of a source file, or null.
  const std::vector<std::string>* sourceLines(llvm::StringRef file);

  std::string tool_, input_;
  bool json_ = false, color_ = false, all_errors_ = false, promoted_ = false;
  unsigned warnings_ = 0;
  std::set<Code> errors_, suppressed_;
  std::map<std::string, std::vector<std::string>> sources_;
};

}  // namespace tpu
