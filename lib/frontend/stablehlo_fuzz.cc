// Fuzz target: StableHLO text.
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/document.h"
#include "tpu/hlo/stablehlo.h"
#include "tpu/hlo/verify.h"
#include "tpu/testing/fuzz.h"
#include "tpu/testing/text_mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tpu::testing::QuietSink quiet;
  auto read = tpu::frontend::parseStableHlo(tpu::testing::fuzzBytes(data, size), "fuzz", quiet);
  const tpu::hlo::Module* module = tpu::testing::orDropError(read);
  if (!module) return 0;
  if (llvm::Error e = tpu::hlo::verify(*module)) {
    tpu::takeDiagnostics(std::move(e));
    return 0;
  }
  std::string document;
  llvm::raw_string_ostream os(document);
  llvm::cantFail(tpu::hlo::writeDocument(*module, os));
  auto again = tpu::hlo::readDocument(document, "written");
  tpu::testing::mustSucceed(again.takeError(), "a written document reads");
  tpu::hlo::writeStableHlo(*module, llvm::nulls());
  return 0;
}
