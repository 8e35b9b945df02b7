// Fuzz target: chip files, and the topologies of a chip that was read.
#include "tpu/target/chip.h"
#include "tpu/testing/fuzz.h"
#include "tpu/testing/text_mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto read = tpu::target::parseChip(tpu::testing::fuzzBytes(data, size), "fuzz");
  const tpu::target::Chip* chip = tpu::testing::orDropError(read);
  if (!chip) return 0;
  auto again = tpu::target::parseChip(chip->json, "written");
  if (!again) tpu::testing::mustSucceed(again.takeError(), "a written chip reads");
  if (again->json != chip->json) tpu::testing::fuzzFailure("a chip that was read is written alike");
  for (const char* box : {"2", "4x4", "2xfuzz:2x2x2"}) {
    auto target = tpu::target::targetOfChip(box, *chip);
    tpu::testing::orDropError(target);
  }
  return 0;
}
