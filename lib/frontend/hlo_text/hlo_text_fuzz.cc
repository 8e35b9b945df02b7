// Fuzz target: HLO text.
#include "../fuzz.h"
#include "../hlo_text.h"
#include "tpu/testing/text_mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tpu::testing::QuietSink quiet;
  tpu::frontend::checkRead(tpu::frontend::parseHloText(tpu::testing::fuzzBytes(data, size), "fuzz", quiet));
  return 0;
}
