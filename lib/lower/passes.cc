#include "tpu/lower/passes.h"

#include "decompose.h"
#include "fold_transposes.h"
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/document.h"
#include "tpu/hlo/print.h"
#include "tpu/hlo/verify.h"
#include "tpu/llo/document.h"
#include "tpu/llo/verify.h"

namespace tpu::lower {
namespace {

llvm::Error import(State& s) {
  auto module = frontend::readProgram(s.input, s.input_name, s.sink);
  if (!module) return module.takeError();
  s.hlo = std::move(*module);
  if (s.hlo.stage == hlo::Stage::kHlo && s.hlo.num_partitions > 1)
    return fail(Code::kLowerStage, s.input_name, "the program asks for " + llvm::Twine(s.hlo.num_partitions) +
                                                     " partitions and is not partitioned; tpu-partition makes the stage that tpu-lower reads");
  std::string text = !s.hlo.target.empty() ? s.hlo.target : !s.target_text.empty() ? s.target_text : "v5e:1x1";
  auto target = target::targetFromDocument(text, s.hlo.target.empty() ? "" : s.hlo.chip_json);
  if (!target) return target.takeError();
  if (!s.target_text.empty() && !s.hlo.target.empty()) {
    auto asked = target::parseTarget(s.target_text);
    if (!asked) return asked.takeError();
    if (asked->text != target->text)
      return fail(Code::kLowerTarget, s.input_name, "the program was partitioned for " + target->text + ", not for " + asked->text);
  }
  s.target = std::move(*target);
  return llvm::Error::success();
}

llvm::Error inlineAll(State& s) {
  if (auto err = hlo::inlineCalls(s.hlo, /*composites=*/true)) return err;
  hlo::eliminateDeadCode(s.hlo);
  return llvm::Error::success();
}

llvm::Error decomposeAll(State& s) {
  decompose(s.hlo);
  hlo::eliminateDeadCode(s.hlo);
  return llvm::Error::success();
}

llvm::Error foldAll(State& s) {
  foldTransposes(s.hlo);
  return llvm::Error::success();
}

llvm::Error lowerAll(State& s) {
  auto llo = lower(std::move(s.hlo), *s.target, s.options, s.sink);
  if (!llo) return llo.takeError();
  s.llo = std::move(*llo);
  s.llo.options.push_back({"precision", s.options.default_passes == 6 ? "highest" : s.options.default_passes == 3 ? "high" : "default"});
  s.lowered = true;
  return llvm::Error::success();
}

constexpr Pass<State> kPasses[] = {
    {"import", "read the program, settle the target", import},
    {"inline", "put called functions and composites in their callers, drop dead code", inlineAll},
    {"decompose", "rewrite ops that have no emitter as ops that have", decomposeAll},
    {"fold-transposes", "make products in the order of dimensions in which they are wanted", foldAll},
    {"lower", "choose buffers, kernels and the driver", lowerAll},
};

}  // namespace

llvm::ArrayRef<Pass<State>> passes() { return kPasses; }

llvm::Error Hooks::verify() { return state_.lowered ? llo::verify(state_.llo, state_.target->chip) : hlo::verify(state_.hlo); }

void Hooks::printText(llvm::raw_ostream& os) {
  if (state_.lowered) llo::printText(state_.llo, os);
  else hlo::print(state_.hlo, os);
}

void Hooks::writeDocument(llvm::raw_ostream& os) {
  llvm::cantFail(state_.lowered ? llo::writeDocument(state_.llo, os) : hlo::writeDocument(state_.hlo, os));
}

}  // namespace tpu::lower
