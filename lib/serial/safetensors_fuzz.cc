// Fuzz target: safetensors files.
#include "tpu/serial/array_file.h"
#include "tpu/testing/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto read = tpu::readSafetensors(tpu::testing::fuzzBytes(data, size), "fuzz");
  if (!tpu::testing::orDropError(read)) return 0;
  std::vector<tpu::HostTensor> tensors;
  for (tpu::FileArray& array : *read) {
    const tpu::ElementType element = *array.element;
    auto tensor = tpu::toTensor(array, element, false, "fuzz");
    if (!tensor) tpu::testing::mustSucceed(tensor.takeError(), "an array is of the type that its file names");
    tensors.push_back(std::move(*tensor));
  }
  std::vector<tpu::NamedTensor> named;
  for (size_t i = 0; i < tensors.size(); ++i) named.push_back({(*read)[i].name, &tensors[i]});
  auto again = tpu::readSafetensors(tpu::writeSafetensors(named), "written");
  if (!again) tpu::testing::mustSucceed(again.takeError(), "written safetensors read");
  return 0;
}
