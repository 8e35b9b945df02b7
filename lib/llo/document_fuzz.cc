// Fuzz target: documents of stage llo, and their verifier. What verifies can be printed.
#include "tpu/llo/document.h"

#include "tpu/llo/verify.h"
#include "tpu/target/chip.h"
#include "tpu/testing/fuzz.h"
#include "tpu/testing/text_mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto read = tpu::llo::readDocument(tpu::testing::fuzzBytes(data, size).str(), "fuzz");
  const tpu::llo::Module* module = tpu::testing::orDropError(read);
  if (!module) return 0;
  auto target = tpu::target::targetFromDocument(module->target, module->chip_json);
  if (const tpu::target::Target* t = tpu::testing::orDropError(target)) {
    if (llvm::Error e = tpu::llo::verify(*module, t->chip))
      tpu::takeDiagnostics(std::move(e));
    else
      tpu::llo::printText(*module, llvm::nulls());
  }
  const std::string document = tpu::llo::writeDocument(*module);
  auto again = tpu::llo::readDocument(document, "written");
  if (!again) tpu::testing::mustSucceed(again.takeError(), "a written document reads");
  if (tpu::llo::writeDocument(*again) != document)
    tpu::testing::fuzzFailure("a document that was read is written alike");
  return 0;
}
