#include "flag_rules.h"

#include "pieces.h"

namespace tpu::run {
namespace {

llvm::Error refuse(const Tool& tool, llvm::ArrayRef<llvm::StringLiteral> flags, llvm::StringRef why) {
  for (llvm::StringRef flag : flags)
    if (tool.has(flag)) return tool.badFlag(flag, why);
  return llvm::Error::success();
}

constexpr llvm::StringLiteral kOfTheProgram[] = {"trace", "timing-only"};
constexpr llvm::StringLiteral kOfAnyEmulated[] = {"strict", "start-skew", "max-cycles"};
constexpr llvm::StringLiteral kOfTheEvaluator[] = {"entry", "infeed", "outfeed", "receive", "replace-call", "sent"};
constexpr llvm::StringLiteral kOfComparisons[] = {"rtol", "atol", "ulp", "nan-equal"};
constexpr llvm::StringLiteral kOfResults[] = {"output", "expect", "print", "compare-to"};

llvm::StringRef whyNotEmulated(Runner runner) {
  return runner == Runner::kInterpreter
             ? "stage llo has no time; run tpu-schedule and tpu-asm first"
             : "the program is not machine code; compile it with tpu-lower, tpu-schedule and tpu-asm first";
}

llvm::Error checkBisect(const Tool& tool, const Program& program, const Program* other) {
  if (!tool.has("bisect") || (program.module() && other && other->module())) return llvm::Error::success();
  return tool.badFlag("bisect", "both programs must be source programs or documents of stage hlo or spmd");
}

}  // namespace

llvm::Error checkCompanions(const Tool& tool) {
  const bool compares = tool.has("expect") || tool.has("compare-to");
  if (!compares)
    if (llvm::Error e = refuse(tool, kOfComparisons, "it goes with --expect or --compare-to")) return e;
  if (!tool.has("compare-to"))
    if (llvm::Error e = refuse(tool, {"bisect"}, "it goes with --compare-to")) return e;
  if (!runsPieces(tool))
    if (llvm::Error e = refuse(tool, {"probe-output-dir"}, "it goes with --entry='*' or --split-input")) return e;
  if (!tool.has("timing-only")) return llvm::Error::success();
  return refuse(tool, kOfResults, "a timing-only run has no results");
}

llvm::Error checkFlags(const Tool& tool, const Program& program, const Program* other) {
  const auto any = [&](Runner runner) {
    return program.runner() == runner || (other && other->runner() == runner);
  };
  const llvm::StringRef why = whyNotEmulated(program.runner());
  if (program.runner() != Runner::kEmulator)
    if (llvm::Error e = refuse(tool, kOfTheProgram, why)) return e;
  if (!any(Runner::kEmulator))
    if (llvm::Error e = refuse(tool, kOfAnyEmulated, why)) return e;
  if (!any(Runner::kEvaluator))
    if (llvm::Error e = refuse(tool, kOfTheEvaluator, "it speaks of source programs and documents of stage hlo and spmd"))
      return e;
  return checkBisect(tool, program, other);
}

}  // namespace tpu::run
