// Fuzz target: assembly text. Chip files that a text may name are read from the working directory.
#include "tpu/asm/assembly.h"

#include "tpu/asm/object.h"
#include "tpu/testing/fuzz.h"
#include "tpu/testing/text_mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto read = tpu::assembly::assemble(tpu::testing::fuzzBytes(data, size), "fuzz");
  const tpu::isa::Program* program = tpu::testing::orDropError(read);
  if (!program) return 0;
  auto object = tpu::assembly::writeObject(*program);
  if (!object) tpu::testing::mustSucceed(object.takeError(), "a program has an object");
  auto again = tpu::assembly::assemble(tpu::assembly::disassemble(*program), "text");
  if (!again) tpu::testing::mustSucceed(again.takeError(), "disassembled text assembles");
  return 0;
}
