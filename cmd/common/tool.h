// What the five mains stand on: runTool parses the flags, answers the common ones, runs the tool's function, prints
// diagnostics, commits outputs only after success, and gives the exit status. A main is a ToolInfo and one function:
//
//   llvm::Error run(tpu::Tool& tool) {
//     llvm::Expected<tpu::Input> in = tool.readInput();
//     if (!in) return in.takeError();
//     if (llvm::Error e = tool.openOutput()) return e;
//     ... tool.os() << ...; tool.summary() << ...
//   }
//   int main(int argc, char** argv) { return tpu::runTool(info(), argc, argv, run); }
#pragma once
#include <map>
#include <optional>

#include "common/diagnostic_printer.h"
#include "common/flags.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "tpu/pass/pass.h"
#include "tpu/report/report.h"
#include "tpu/support/files.h"

namespace tpu {

struct Example {
  llvm::StringLiteral command, what;
};

struct ToolInfo {
  llvm::StringLiteral name;     // "tpu-partition"
  llvm::StringLiteral summary;  // one line, lower case, no full stop
  llvm::StringLiteral input;    // what FILE is, for --help
  unsigned groups = 0;          // FlagGroup bits
  llvm::ArrayRef<Flag> flags;   // its own
  llvm::ArrayRef<Example> examples;
  std::vector<PassInfo> passes = {};
};

/// The values of one command line.
struct FlagValues {
  std::map<std::string, std::vector<std::string>> given;  // by flag name; a bare switch gives ""
  std::string input = "-";
};

class Tool {
 public:
  Tool(const ToolInfo& info, FlagValues values);

  const ToolInfo& info() const { return info_; }
  bool has(llvm::StringRef flag) const;            // stands on the command line
  llvm::StringRef get(llvm::StringRef flag) const;  // the last value, or the table's default
  std::vector<std::string> all(llvm::StringRef flag) const;   // every occurrence
  std::vector<std::string> list(llvm::StringRef flag) const;  // every occurrence, split at commas
  /// kUsageError naming flag and range.
  llvm::Expected<int64_t> getInt(llvm::StringRef flag, int64_t min, int64_t max) const;
  llvm::Expected<double> getNonNegative(llvm::StringRef flag) const;
  /// kUsageError "--flag: text".
  llvm::Error badFlag(llvm::StringRef flag, const llvm::Twine& text) const;

  llvm::Expected<Input> readInput() const { return tpu::readInput(values_.input); }
  /// Another file that the result depends on, for -MD.
  void dependsOn(llvm::StringRef path) { dependencies_.push_back(path.str()); }

  DiagnosticPrinter& diagnostics() { return printer_; }
  /// Opens -o; the kind follows from --emit and --only unless given. Committed by runTool.
  llvm::Error openOutput();
  llvm::Error openOutput(OutputKind kind);
  llvm::raw_ostream& os() { return output_->os(); }
  /// Printed to stderr after success, unless -q: one to three lines in a person's units.
  llvm::raw_ostream& summary() { return summary_stream_; }
  /// The report of --report, null where none was asked for. Opened before the run, committed by runTool.
  Report* report() { return report_ ? &*report_ : nullptr; }
  PassOptions passOptions() const;

 private:
  friend int runTool(const ToolInfo&, int, char**, llvm::function_ref<llvm::Error(Tool&)>);
  llvm::Error prepare();
  llvm::Error checkOutputFlags() const;
  llvm::Error commit();
  llvm::Error writeDepfile();
  const Flag& flag(llvm::StringRef name) const;

  const ToolInfo& info_;
  FlagValues values_;
  std::vector<Flag> flags_;
  DiagnosticPrinter printer_;
  std::optional<OutputFile> output_;
  std::optional<Report> report_;
  std::string summary_;
  llvm::raw_string_ostream summary_stream_{summary_};
  std::vector<std::string> dependencies_;
};

int runTool(const ToolInfo& info, int argc, char** argv, llvm::function_ref<llvm::Error(Tool&)> run);

}  // namespace tpu
