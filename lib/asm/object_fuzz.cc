// Fuzz target: object files. Size and checksum of the header are put right first, or nothing behind it would
// ever be read; inputs that are too short for a header come as they are.
#include <cstring>

#include "llvm/Support/xxhash.h"
#include "object_format.h"
#include "tpu/asm/assembly.h"
#include "tpu/asm/object.h"
#include "tpu/testing/fuzz.h"

namespace {

constexpr size_t kSizeAt = sizeof tpu::assembly::kObjectMagic + 4, kChecksumAt = kSizeAt + 8;

void repairHeader(std::string& object) {
  if (object.size() < tpu::assembly::kObjectHeaderBytes) return;
  const llvm::StringRef payload = llvm::StringRef(object).drop_front(tpu::assembly::kObjectHeaderBytes);
  const uint64_t size = payload.size(), checksum = llvm::xxh3_64bits(payload);
  std::memcpy(object.data() + kSizeAt, &size, sizeof size);
  std::memcpy(object.data() + kChecksumAt, &checksum, sizeof checksum);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string object = tpu::testing::fuzzBytes(data, size).str();
  auto untouched = tpu::assembly::readObject(object, "fuzz");
  tpu::testing::orDropError(untouched);
  repairHeader(object);
  auto read = tpu::assembly::readObject(object, "fuzz");
  const tpu::isa::Program* program = tpu::testing::orDropError(read);
  if (!program) return 0;
  auto written = tpu::assembly::writeObject(*program);
  if (!written) tpu::testing::mustSucceed(written.takeError(), "a program has an object");
  auto again = tpu::assembly::assemble(tpu::assembly::disassemble(*program), "text");
  if (!again) tpu::testing::mustSucceed(again.takeError(), "disassembled text assembles");
  auto bytes = tpu::assembly::writeObject(*again);
  if (!bytes) tpu::testing::mustSucceed(bytes.takeError(), "a program has an object");
  if (*bytes != *written) tpu::testing::fuzzFailure("disassembled text assembles to the same object");
  return 0;
}
