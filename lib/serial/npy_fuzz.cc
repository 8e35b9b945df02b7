// Fuzz target: .npy files.
#include "tpu/serial/array_file.h"
#include "tpu/testing/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto read = tpu::readNpy(tpu::testing::fuzzBytes(data, size), "fuzz");
  const tpu::FileArray* array = tpu::testing::orDropError(read);
  if (!array) return 0;
  tpu::describe(*array);
  for (tpu::ElementType element : {tpu::ElementType::kF32, tpu::ElementType::kBF16, tpu::ElementType::kS4,
                                   tpu::ElementType::kU8, tpu::ElementType::kC64}) {
    auto tensor = tpu::toTensor(*array, element, size % 2 == 0, "fuzz");
    if (tpu::testing::orDropError(tensor)) {
      auto again = tpu::readNpy(tpu::writeNpy(*tensor), "written");
      if (!again) tpu::testing::mustSucceed(again.takeError(), "a written array reads");
      if (again->bytes != array->bytes) tpu::testing::fuzzFailure("an array that was read is written alike");
    }
  }
  return 0;
}
