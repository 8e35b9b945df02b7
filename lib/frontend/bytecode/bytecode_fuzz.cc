// Fuzz target: portable artifacts (MLIR bytecode).
#include "../fuzz.h"
#include "bytecode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tpu::testing::QuietSink quiet;
  tpu::frontend::checkRead(tpu::frontend::readBytecode(tpu::testing::fuzzBytes(data, size), "fuzz", quiet));
  return 0;
}
