// Which device holds which part of an argument or result.
#include "tpu/isa/program.h"

namespace tpu::isa {

llvm::SmallVector<int64_t, 6> shardOf(const SignaturePort& port, int64_t device) {
  llvm::SmallVector<int64_t, 6> index(port.local_dims.size(), 0);
  for (size_t d = 0; d < port.shards.size() && d < index.size(); ++d)
    for (const ShardFactor& f : port.shards[d]) index[d] = index[d] * f.size + device / f.stride % f.size;
  return index;
}

int64_t ownerOf(const SignaturePort& port, int64_t devices, int64_t element) {
  llvm::SmallVector<int64_t, 6> wanted(port.local_dims.size(), 0);
  for (size_t d = wanted.size(); d-- > 0; element /= port.global_dims[d])
    wanted[d] = element % port.global_dims[d] / port.local_dims[d];
  for (int64_t device = 0; device < devices; ++device)
    if (shardOf(port, device) == wanted) return device;
  return 0;
}

}  // namespace tpu::isa
