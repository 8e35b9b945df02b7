// Answers on stdout that need no input.
#include "common/builtin.h"

#include "common/help.h"
#include "llvm/ADT/StringExtras.h"
#include "tpu/support/nearest.h"
#include "tpu/target/chip.h"

namespace tpu {
namespace {

llvm::Expected<std::string> explainCode(const Tool& tool) {
  std::optional<uint16_t> number = parseCode(tool.get("explain-code"));
  const CodeInfo* info = number ? findCode(*number) : nullptr;
  if (!info) return tool.badFlag("explain-code", "no diagnostic code '" + tool.get("explain-code") + "'");
  return (codeName(info->code) + ": " + info->title + "\n  cause: " + info->cause + "\n  what helps: " + info->fix + "\n").str();
}

std::string passList(const ToolInfo& info) {
  size_t width = 0;
  for (const PassInfo& p : info.passes) width = std::max(width, p.name.size());
  std::string out;
  for (const PassInfo& p : info.passes) out += p.name.str() + std::string(width + 2 - p.name.size(), ' ') + p.summary.str() + "\n";
  return out;
}

std::string effectiveOptions(const Tool& tool, llvm::ArrayRef<Flag> flags) {
  std::string out;
  for (const Flag& f : flags) {
    if (f.level == FlagLevel::kHidden || f.name.starts_with("help") || f.name == "print-options") continue;
    std::string value = f.kind == FlagKind::kSwitch ? (tool.has(f.name) ? "true" : "false")
                        : f.kind == FlagKind::kList ? llvm::join(tool.all(f.name), " ")
                                                    : tool.get(f.name).str();
    out += f.name.str() + "=" + value + "\n";
  }
  return out;
}

llvm::Expected<std::string> manFromTemplate(const Tool& tool, llvm::ArrayRef<Flag> flags) {
  llvm::Expected<Input> prose = readInput(tool.get("generate-man"));
  if (!prose) return prose.takeError();
  return manPage(tool.info(), flags, prose->bytes);
}

llvm::Expected<std::string> printTarget(const Tool& tool) {
  llvm::Expected<target::Chip> chip = target::loadChip(tool.get("print-target"));
  if (!chip) return chip.takeError();
  return chip->json;
}

}  // namespace

llvm::Expected<bool> answerBuiltinFlags(const Tool& tool, llvm::ArrayRef<Flag> flags) {
  llvm::Expected<std::string> text = std::string();
  unsigned groups = tool.info().groups;
  if (tool.has("help")) text = helpText(tool.info(), flags, false);
  else if (tool.has("help-all")) text = helpText(tool.info(), flags, true);
  else if (tool.has("version")) text = tool.info().name.str() + " " TPU_VERSION "\n";
  else if (tool.has("completion")) text = completionScript(tool.info(), flags, tool.get("completion"));
  else if (tool.has("generate-man")) text = manFromTemplate(tool, flags);
  else if (tool.has("explain-code")) text = explainCode(tool);
  else if ((groups & kTargetFlags) && tool.has("list-targets")) text = target::listTargets();
  else if ((groups & kTargetFlags) && tool.has("print-target")) text = printTarget(tool);
  else if ((groups & kPassFlags) && tool.has("passes") && tool.get("passes").empty()) text = passList(tool.info());
  else if (tool.has("print-options")) text = effectiveOptions(tool, flags);
  else return false;
  if (!text) return text.takeError();
  if (llvm::Error e = writeOutput("-", *text, OutputKind::kText)) return e;
  return true;
}

}  // namespace tpu
