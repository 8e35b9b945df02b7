// Fuzz target: .npz archives.
#include "tpu/serial/array_file.h"
#include "tpu/testing/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto read = tpu::readNpz(tpu::testing::fuzzBytes(data, size), "fuzz");
  if (tpu::testing::orDropError(read))
    for (const tpu::FileArray& array : *read) tpu::describe(array);
  return 0;
}
