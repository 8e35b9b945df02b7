// Addresses of module buffers: HBM by liveness over the driver, VMEM and SMEM one after the other.
#pragma once
#include "context.h"
#include "llvm/Support/Error.h"

namespace tpu::schedule {

/// Fills Context::address and the marks; `limit` bytes of HBM may be used. Too much: exit 4, the largest
/// buffers named.
llvm::Error placeBuffers(Context& ctx, int64_t limit);

/// When a buffer's contents matter: positions of statements of the driver, in program order.
struct LiveRange {
  int64_t begin = -1, end = -1;  // both included; begin < 0: never used
  bool overlaps(const LiveRange& o) const {
    return begin >= 0 && o.begin >= 0 && begin <= o.end && o.begin <= end;
  }
};
/// By module buffer; aliases are counted with the buffer whose storage they take.
std::vector<LiveRange> bufferRanges(const llo::Module& module);
/// The buffer whose storage this one takes, in the end.
int32_t storageOf(const llo::Module& module, int32_t buffer);

}  // namespace tpu::schedule
