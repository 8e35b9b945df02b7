// Why an instruction waits: which resource of the scoreboard counts as which stall, and what reports call it.
#include "code.h"
#include "tpu/emulate/emulate.h"

namespace tpu::emulate {

Stall stallOf(int resource) {
  if (resource < kMasks) return Stall::kScalar;
  if (resource < kVectors) return Stall::kMask;
  if (resource < kEupUnit) return Stall::kVector;
  if (resource == kEupUnit) return Stall::kEup;
  if (resource < kPushPath) return Stall::kXlu;
  if (resource >= kMatmulPath && resource < kLatchPath) return Stall::kMxu;
  if (resource < kVectorStores) return Stall::kWeights;
  if (resource == kVectorStores || resource == kScalarStores) return Stall::kStore;
  if (resource == kLoadPort || resource == kStorePort) return Stall::kBank;
  return Stall::kUnit;
}

llvm::StringRef stallName(Stall stall) {
  static constexpr const char* kNames[kNumStalls] = {"scalar", "vector", "mask",    "unit",      "eup",
                                                     "xlu",    "mxu",    "weights", "v2s",       "branch",
                                                     "bank",   "imem",   "store",   "dma_queue", "semaphore"};
  return kNames[static_cast<int>(stall)];
}

}  // namespace tpu::emulate
