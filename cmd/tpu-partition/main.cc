// tpu-partition: a program on whole arrays becomes the program that each device runs.
#include "common/tool.h"
#include "llvm/ADT/StringExtras.h"
#include "tpu/partition/tool.h"

namespace {

constexpr tpu::Flag kFlags[] = {
#define TPU_FLAG(name, letter, kind, value, otherwise, level, help) \
  {name, letter, tpu::FlagKind::kind, value, otherwise, tpu::FlagLevel::level, help},
#include "flags.def"
};

constexpr tpu::Example kExamples[] = {
    {"tpu-partition step.mlir --target v5e:4x2 -o step.spmd.json", "partition a JAX program for eight chips"},
    {"tpu-partition step.mlir --explain -o /dev/null", "say why each collective is there"},
    {"tpu-partition a.mlir | tpu-lower | tpu-schedule | tpu-asm | tpu-run --inputs=seed:7", "the whole line"},
};

tpu::ToolInfo info() {
  return {
      .name = "tpu-partition",
      .summary = "split a program over the devices of a mesh",
      .input = "StableHLO text or a portable artifact, HLO text, or an IR document of stage hlo or spmd",
      .groups = tpu::kOutputFlags | tpu::kEmitFlags | tpu::kPassFlags | tpu::kReportFlags | tpu::kTargetFlags,
      .flags = kFlags,
      .examples = kExamples,
      .passes = tpu::partition::partitionPasses()};
}

llvm::Error fill(tpu::Tool& tool, tpu::partition::PartitionRun& run) {
  run.options.mesh = tool.get("mesh").str();
  run.options.target = tool.get("target").str();
  run.passes = tool.passOptions();
  run.check = tool.has("check");
  run.find_removals = tool.has("explain");
  llvm::StringRef explain = tool.get("explain");
  if (tool.has("explain") && explain != "text" && explain != "json") run.explain = explain.str();
  for (const std::string& text : tool.all("sharding")) {
    auto [name, sharding] = llvm::StringRef(text).split('=');
    if (name.empty() || sharding.empty())
      return tool.badFlag("sharding", "expected ARG=TEXT, found '" + text + "'");
    run.options.shardings.push_back({name.str(), sharding.str()});
  }
  for (const std::string& text : tool.list("device-order")) {
    int64_t device;
    if (llvm::StringRef(text).getAsInteger(10, device))
      return tool.badFlag("device-order", "expected device numbers, found '" + text + "'");
    run.device_order.push_back(device);
  }
  return llvm::Error::success();
}

llvm::Error run(tpu::Tool& tool) {
  tpu::partition::PartitionRun request;
  if (llvm::Error e = fill(tool, request)) return e;
  bool signature = tool.has("signature");
  if (llvm::Error e = signature ? tool.openOutput(tpu::OutputKind::kText) : tool.openOutput()) return e;
  llvm::Expected<tpu::Input> in = tool.readInput();
  if (!in) return in.takeError();
  request.input_bytes = std::move(in->bytes);
  request.input_name = in->name;
  llvm::StringRef target = tool.get("target").rsplit(':').first;
  if (target.ends_with(".json")) tool.dependsOn(target);

  tpu::partition::Partitioner partitioner(std::move(request), tool.diagnostics());
  if (llvm::Error e = partitioner.run()) return e;
  if (signature) {
    partitioner.writeSignature(tool.os());
  } else if (llvm::Error e = partitioner.write(tool.os(), tool.get("emit"), tool.get("only"))) {
    return e;
  }
  if (tool.has("mesh-report")) partitioner.writeMeshReport(llvm::errs());
  if (tool.has("explain") && !(tool.report() && tool.get("explain") == "json")) {
    partitioner.writeExplanation(llvm::errs(), tool.get("explain") == "json");
  }
  if (tool.report()) {
    std::string lines;
    llvm::raw_string_ostream os(lines);
    partitioner.writeExplanation(os, true);
    llvm::SmallVector<llvm::StringRef, 16> rows;
    llvm::StringRef(lines).split(rows, '\n', -1, false);
    for (llvm::StringRef row : rows) tool.report()->line(row);
  }
  tool.summary() << partitioner.summary(tool.diagnostics().warnings());
  return llvm::Error::success();
}

}  // namespace

int main(int argc, char** argv) { return tpu::runTool(info(), argc, argv, run); }
