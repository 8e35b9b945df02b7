// tpu-lower: stage spmd (or a one-device source program) to stage llo.
#include "common/tool.h"
#include "tpu/llo/document.h"
#include "tpu/lower/op_table.h"
#include "tpu/lower/passes.h"

namespace {

using namespace tpu;

constexpr Flag kFlags[] = {
#define TPU_FLAG(name, letter, kind, value, otherwise, level, help) \
  {name, letter, FlagKind::kind, value, otherwise, FlagLevel::level, help},
#include "tpu-lower/flags.def"
};
constexpr Example kExamples[] = {
    {"tpu-partition m.mlir | tpu-lower -o m.llo", "lower a partitioned program"},
    {"tpu-lower m.mlir --precision=highest --emit=text", "a one-device program, f32 dots in six passes, as text"},
    {"tpu-lower m.spmd --kernel-report --lint -o /dev/null", "what each kernel needs, and where padding wastes memory"},
};

llvm::Error listOps(Tool& tool) {
  if (llvm::Error e = tool.openOutput(OutputKind::kText)) return e;
  const bool json = tool.get("list-ops") == "json";
  tool.os() << lower::describeOps(json ? lower::OpTableForm::kJson : lower::OpTableForm::kMan);
  return llvm::Error::success();
}

llvm::Error run(Tool& tool) {
  if (tool.has("list-ops")) return listOps(tool);
  llvm::StringRef precision = tool.get("precision");
  lower::State state(tool.diagnostics());
  state.options.default_passes = precision == "highest" ? 6 : precision == "high" ? 3 : 1;
  state.target_text = tool.get("target").str();
  llvm::Expected<Input> in = tool.readInput();
  if (!in) return in.takeError();
  if (llvm::Error e = tool.openOutput()) return e;
  state.input = std::move(in->bytes);
  state.input_name = in->name;
  lower::Hooks hooks(state);
  const PassOptions options = tool.passOptions();
  llvm::Expected<bool> finished = runPasses<lower::State>(lower::passes(), state, hooks, options);
  if (!finished) return finished.takeError();
  if (!*finished || tool.get("emit") == "text") {
    if (tool.get("emit") == "text") hooks.printText(tool.os());
    else hooks.writeDocument(tool.os());
  } else if (llvm::Error e = llo::writeDocument(state.llo, tool.os(), tool.get("only"))) {
    return e;
  }
  if (!*finished) return llvm::Error::success();
  if (tool.has("kernel-report")) lower::reportKernels(state.llo, llvm::errs(), tool.report());
  if (tool.has("lint")) lower::reportPadding(state.llo, llvm::errs(), tool.report());
  tool.summary() << lower::summary(state, tool.report());
  return llvm::Error::success();
}

const ToolInfo& info() {
  static const ToolInfo kInfo = {"tpu-lower", "a partitioned program to loops of machine operations", "an spmd document, or a one-device program",
                                 kOutputFlags | kEmitFlags | kPassFlags | kReportFlags | kTargetFlags, kFlags, kExamples,
                                 passInfos(lower::passes())};
  return kInfo;
}

}  // namespace

int main(int argc, char** argv) { return runTool(info(), argc, argv, run); }
