// tpu-lower as a list of passes over one state. Up to the last one, `lower`, the program is HLO, after it
// llo.
#pragma once
#include <optional>

#include "llvm/Support/raw_ostream.h"
#include "tpu/lower/lower.h"
#include "tpu/pass/pass.h"
#include "tpu/report/report.h"

namespace tpu::lower {

struct State {
  explicit State(DiagnosticSink& sink) : sink(sink) {}
  std::string input, input_name;   // bytes of the program
  std::string target_text;         // of --target, may be empty
  LowerOptions options;
  DiagnosticSink& sink;
  hlo::Module hlo;
  std::optional<target::Target> target;
  bool lowered = false;
  llo::Module llo;
};

llvm::ArrayRef<Pass<State>> passes();

class Hooks : public PassHooks {
 public:
  explicit Hooks(State& state) : state_(state) {}
  llvm::Error verify() override;
  void printText(llvm::raw_ostream& os) override;
  void writeDocument(llvm::raw_ostream& os) override;

 private:
  State& state_;
};

/// One line per kernel: grid, calls, VMEM bytes of blocks and scratch.
void reportKernels(const llo::Module& module, llvm::raw_ostream& os, Report* report);
/// Buffers whose padded size is at least twice the real one, worst first, with what would help.
void reportPadding(const llo::Module& module, llvm::raw_ostream& os, Report* report);
/// "12 kernels in 31 calls, 8 copies, ..."; with a report, a record of type "summary" as well.
std::string summary(const State& state, Report* report);

}  // namespace tpu::lower
