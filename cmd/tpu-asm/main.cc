// tpu-asm: bundles become an object file, and back.
#include "common/tool.h"
#include "tpu/asm/assembly.h"
#include "tpu/asm/describe.h"
#include "tpu/asm/object.h"
#include "tpu/asm/program_document.h"
#include "tpu/support/time_table.h"
#include "tpu/support/units.h"

namespace {

constexpr tpu::Flag kFlags[] = {
#define TPU_FLAG(name, letter, kind, value, otherwise, level, help) \
  {name, letter, tpu::FlagKind::kind, value, otherwise, tpu::FlagLevel::level, help},
#include "flags.def"
};

constexpr tpu::Example kExamples[] = {
    {"tpu-asm step.bundles.json -o step.o", "assemble what tpu-schedule wrote"},
    {"tpu-asm -d --show-encoding step.o | less", "read an object"},
    {"tpu-asm kernel.s | tpu-run --inputs=seed:7", "assemble and run a program written by hand"},
};

tpu::ToolInfo info() {
  return {.name = "tpu-asm",
          .summary = "assemble bundles to an object file, or take one apart",
          .input = "an IR document of stage bundles, assembly text, or an object file",
          .groups = tpu::kOutputFlags | tpu::kTargetFlags,
          .flags = kFlags,
          .examples = kExamples};
}

std::string summary(const tpu::isa::Program& p) {
  uint64_t insns = 0;
  for (const tpu::isa::Bundle& bundle : p.bundles) insns += bundle.insns.size();
  std::string text =
      p.target + ", " + tpu::plural(p.devices, "device") + ": " + tpu::plural(p.bundles.size(), "bundle");
  if (!p.ranges.empty()) text += " in " + tpu::plural(p.ranges.size(), "kernel");
  return text + ", " + tpu::plural(insns, "instruction") + "; HBM " + tpu::formatBinaryBytes(p.hbm_bytes) +
         ", VMEM " + tpu::formatBinaryBytes(p.vmem_bytes) + "\n";
}

llvm::Error describe(tpu::Tool& tool) {
  using tpu::assembly::DescribeForm;
  if (llvm::Error error = tool.openOutput(tpu::OutputKind::kText)) return error;
  const llvm::StringRef form = tool.get("describe");
  tool.os() << describeInstructions(form == "json"  ? DescribeForm::kJson
                                    : form == "man" ? DescribeForm::kMan
                                                    : DescribeForm::kMarkdown);
  return llvm::Error::success();
}

// One of the values of --emit. -d, --show-encoding and --only imply one each, and contradict the others.
llvm::Expected<llvm::StringRef> outputForm(const tpu::Tool& tool) {
  const std::pair<const char*, const char*> kImplied[] = {
      {"disassemble", "text"}, {"show-encoding", "text"}, {"only", "bundles"}};
  llvm::StringRef form = tool.has("emit") ? tool.get("emit") : "";
  for (const auto& [flag, implied] : kImplied) {
    if (!tool.has(flag)) continue;
    if (!form.empty() && form != implied)
      return tool.badFlag(flag, llvm::Twine("it writes ") + implied + ", another flag asks for " + form);
    form = implied;
  }
  return form.empty() ? tool.get("emit") : form;
}

llvm::Error run(tpu::Tool& tool) {
  tpu::TimeTable times;
  if (tool.has("describe")) return describe(tool);
  auto form = outputForm(tool);
  if (!form) return form.takeError();
  const llvm::StringRef emit = *form;
  const bool encoding = tool.has("show-encoding");
  const bool readable = emit == "text" || tool.has("only");
  if (llvm::Error error = tool.openOutput(readable ? tpu::OutputKind::kText : tpu::OutputKind::kDocument))
    return error;
  auto in = tool.readInput();
  if (!in) return in.takeError();
  std::vector<std::string> files;
  auto program = tpu::assembly::readAnyProgram(in->bytes, in->name, &files);
  if (!program) return program.takeError();
  for (const std::string& file : files) tool.dependsOn(file);
  times.end("read");
  if (emit == "text") {
    tool.os() << tpu::assembly::disassemble(*program, {.show_encoding = encoding});
  } else if (emit == "bundles") {
    if (llvm::Error error = tpu::assembly::writeProgramDocument(*program, tool.os(), tool.get("only")))
      return error;
  } else {
    auto object = tpu::assembly::writeObject(*program);
    if (!object) return object.takeError();
    tool.os() << *object;
  }
  times.end("write");
  if (tool.has("time-passes")) times.print(llvm::errs(), "all steps");
  tool.summary() << summary(*program);
  return llvm::Error::success();
}

}  // namespace

int main(int argc, char** argv) { return tpu::runTool(info(), argc, argv, run); }
