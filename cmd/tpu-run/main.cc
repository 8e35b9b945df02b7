// tpu-run: a program of any stage, run on inputs, its results written, printed or compared.
#include "arrays.h"
#include "compare.h"
#include "flag_rules.h"
#include "pieces.h"
#include "tpu/asm/object.h"
#include "tpu/frontend/frontend.h"
#include "tpu/serial/document.h"
#include "tpu/support/time_table.h"

namespace tpu::run {

llvm::Expected<std::unique_ptr<Program>> openProgram(Tool& tool, const Input& input) {
  const llvm::StringRef bytes(input.bytes);
  const std::string stage = stageOf(bytes);
  const bool document = looksLikeJson(bytes);
  if (assembly::isObject(bytes) || stage == "llo" || stage == "bundles") return openMachine(tool, input);
  // Assembly text begins with a directive or a comment of its own, which no source program does.
  if (!document && frontend::sniff(bytes) == frontend::Format::kUnknown) return openMachine(tool, input);
  return openEvaluated(tool, input);
}

}  // namespace tpu::run

namespace {

constexpr tpu::Flag kFlags[] = {
#define TPU_FLAG(name, letter, kind, value, otherwise, level, help) \
  {name, letter, tpu::FlagKind::kind, value, otherwise, tpu::FlagLevel::level, help},
#include "flags.def"
};

constexpr tpu::Example kExamples[] = {
    {"tpu-run step.tpuobj --inputs=seed:7 --report=run.jsonl", "run on emulated chips, inputs drawn"},
    {"tpu-run model.mlir --input x=@x.npy --input 1=2x2xf32=1,2,3,4 --print", "run a program as written"},
    {"tpu-run ops.mlir --split-input --entry='*'", "run functions that check themselves"},
    {"tpu-run step.spmd.json --inputs=@params.npz --expect 0=@want.npy --rtol=1e-4",
     "compare with known results"},
};

tpu::ToolInfo info() {
  return {.name = "tpu-run",
          .summary = "run a program of any stage",
          .input = "a source program, an IR document of any stage, assembly text, or an object file",
          .groups = tpu::kReportFlags,
          .flags = kFlags,
          .examples = kExamples};
}

llvm::Error run(tpu::Tool& tool) {
  tpu::TimeTable times;
  if (llvm::Error e = tpu::run::checkCompanions(tool)) return e;
  auto in = tool.readInput();
  if (!in) return in.takeError();
  if (tpu::run::runsPieces(tool)) return tpu::run::runPieces(tool, *in);
  auto program = tpu::run::openProgram(tool, *in);
  if (!program) return program.takeError();
  times.end("read");
  const tpu::run::Signature& signature = (*program)->signature();
  auto expected = tpu::run::gatherExpected(tool, signature);
  if (!expected) return expected.takeError();
  for (const std::string& text : tool.all("output")) {  // before the work is done
    const llvm::StringRef key = llvm::StringRef(text).split('=').first;
    if (key.starts_with("@")) continue;
    if (auto index = tpu::run::findPort(signature.results, key, "result"); !index) return index.takeError();
  }
  std::optional<tpu::run::Other> other;
  if (tool.has("compare-to")) {
    auto opened = tpu::run::openOther(tool, signature);
    if (!opened) return opened.takeError();
    other = std::move(*opened);
  }
  const tpu::run::Program* const beside = other ? other->program.get() : nullptr;
  if (llvm::Error e = tpu::run::checkFlags(tool, **program, beside)) return e;
  if (llvm::Error e = (*program)->requireMemory(tool)) return e;
  if (beside)
    if (llvm::Error e = beside->requireMemory(tool)) return e;
  auto inputs = tpu::run::gatherInputs(tool, signature);
  if (!inputs) return inputs.takeError();
  times.end("inputs");
  std::vector<tpu::HostTensor> again;  // for the other program
  if (other) again = *inputs;
  auto results = (*program)->run(std::move(*inputs), tool, tpu::run::Record::kAsAsked);
  if (!results) return results.takeError();
  times.end("run");
  if (tool.has("time-passes")) times.print(llvm::errs(), "all steps");
  tool.summary() << (*program)->summary();
  if (tool.has("timing-only")) return llvm::Error::success();
  if (llvm::Error e = tpu::run::deliver(tool, **program, *results, *expected)) return e;
  if (!other) return llvm::Error::success();
  return tpu::run::compareWithOther(tool, **program, *results, *other, std::move(again));
}

}  // namespace

int main(int argc, char** argv) { return tpu::runTool(info(), argc, argv, run); }
