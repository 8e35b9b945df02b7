// Fuzz target: documents of stages hlo and spmd.
#include "tpu/hlo/document.h"

#include "tpu/hlo/stablehlo.h"
#include "tpu/hlo/verify.h"
#include "tpu/serial/document.h"
#include "tpu/testing/fuzz.h"
#include "tpu/testing/text_mutator.h"

namespace {

std::string written(const tpu::hlo::Module& module) {
  std::string document;
  llvm::raw_string_ostream os(document);
  llvm::cantFail(tpu::hlo::writeDocument(module, os));
  return document;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const llvm::StringRef text = tpu::testing::fuzzBytes(data, size);
  tpu::stageOf(text);
  if (llvm::Error e = tpu::expectDocument(text, "fuzz", {"hlo", "spmd"})) tpu::takeDiagnostics(std::move(e));
  auto read = tpu::hlo::readDocument(text, "fuzz");
  const tpu::hlo::Module* module = tpu::testing::orDropError(read);
  if (!module) return 0;
  if (llvm::Error e = tpu::hlo::verify(*module)) {
    tpu::takeDiagnostics(std::move(e));
    return 0;
  }
  const std::string document = written(*module);
  auto again = tpu::hlo::readDocument(document, "written");
  if (!again) tpu::testing::mustSucceed(again.takeError(), "a written document reads");
  if (written(*again) != document) tpu::testing::fuzzFailure("a document that was read is written alike");
  tpu::hlo::writeStableHlo(*module, llvm::nulls());
  return 0;
}
