// tpu-schedule: stage llo to stage bundles.
#include "common/tool.h"
#include "tpu/asm/assembly.h"
#include "tpu/asm/program_document.h"
#include "tpu/llo/document.h"
#include "tpu/schedule/passes.h"
#include "tpu/schedule/report.h"
#include "tpu/support/units.h"

namespace {

using namespace tpu;

constexpr Flag kFlags[] = {
#define TPU_FLAG(name, letter, kind, value, otherwise, level, help) \
  {name, letter, FlagKind::kind, value, otherwise, FlagLevel::level, help},
#include "tpu-schedule/flags.def"
};
constexpr Example kExamples[] = {
    {"tpu-lower m.spmd | tpu-schedule -o m.bundles", "schedule for the chip that was lowered for"},
    {"tpu-schedule m.llo --memory=peak -o /dev/null", "who is in HBM when it is fullest"},
    {"tpu-schedule m.llo --limit=8GiB -q -o /dev/null", "does it fit into 8 GiB? (exit 4: no)"},
};

/// After the last pass the program is a bundles document.
class Views : public schedule::Hooks {
 public:
  explicit Views(schedule::State& state) : Hooks(state), program_(state.program) {}
  void printText(llvm::raw_ostream& os) override {
    if (program_.bundles.empty())
      Hooks::printText(os);
    else
      os << assembly::disassemble(program_);
  }
  void writeDocument(llvm::raw_ostream& os) override {
    if (program_.bundles.empty())
      Hooks::writeDocument(os);
    else
      os << assembly::writeProgramDocument(program_);
  }

 private:
  const isa::Program& program_;
};

llvm::Error run(Tool& tool) {
  schedule::State state;
  state.options.modulo = !tool.has("no-pipeline");
  if (tool.has("limit")) {
    const std::optional<int64_t> bytes = schedule::parseSize(tool.get("limit"));
    if (!bytes)
      return tool.badFlag("limit",
                          "expected a size such as 16GiB or 500MB, found '" + tool.get("limit") + "'");
    state.options.hbm_limit = *bytes;
  }
  llvm::Expected<Input> in = tool.readInput();
  if (!in) return in.takeError();
  if (llvm::Error e = tool.openOutput()) return e;
  state.input = std::move(in->bytes);
  state.input_name = in->name;
  Views hooks(state);
  const PassOptions options = tool.passOptions();
  llvm::Expected<bool> finished = runPasses<schedule::State>(schedule::passes(), state, hooks, options);
  if (!finished) return finished.takeError();
  if (tool.get("memory") == "peak") schedule::reportPeak(state, llvm::errs(), tool.report());
  if (tool.has("estimate")) schedule::reportFunctions(state, llvm::errs(), tool.report());
  if (*finished) tool.summary() << schedule::summary(state, tool.report());
  if (tool.get("emit") == "text") {
    hooks.printText(tool.os());
    return llvm::Error::success();
  }
  if (!*finished) return llo::writeDocument(state.module, tool.os(), tool.get("only"));
  return assembly::writeProgramDocument(state.program, tool.os(), tool.get("only"));
}

const ToolInfo& info() {
  static const ToolInfo kInfo = {"tpu-schedule",
                                 "loops of machine operations to bundles on real registers",
                                 "an llo document",
                                 kOutputFlags | kEmitFlags | kPassFlags | kReportFlags | kTargetFlags,
                                 kFlags,
                                 kExamples,
                                 passInfos(schedule::passes())};
  return kInfo;
}

}  // namespace

int main(int argc, char** argv) { return runTool(info(), argc, argv, run); }
