// Fuzz target: documents of stage bundles.
#include "tpu/asm/object.h"
#include "tpu/asm/program_document.h"
#include "tpu/testing/fuzz.h"
#include "tpu/testing/text_mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto read = tpu::assembly::readProgramDocument(tpu::testing::fuzzBytes(data, size), "fuzz");
  const tpu::isa::Program* program = tpu::testing::orDropError(read);
  if (!program) return 0;
  const std::string document = tpu::assembly::writeProgramDocument(*program);
  auto again = tpu::assembly::readProgramDocument(document, "written");
  if (!again) tpu::testing::mustSucceed(again.takeError(), "a written document reads");
  if (tpu::assembly::writeProgramDocument(*again) != document)
    tpu::testing::fuzzFailure("a document that was read is written alike");
  tpu::testing::mustSucceed(tpu::assembly::writeObject(*program).takeError(), "a program has an object");
  return 0;
}
