// How a sharding cuts an array: which box of the whole array each position of the mesh holds. A dimension of
// n elements over s shards gives every device ceil(n / s) elements; the last shards may hold fewer valid
// ones, or none, and are padded at their high end.
//
// Mesh positions are row-major over the mesh's axes, first axis slowest.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"
#include "tpu/support/host_tensor.h"

namespace tpu {

/// Number of shards along one dimension: the product of the sizes of its axes.
int64_t shardCount(const hlo::DimSharding& dim);
/// Which of the axis product's shards the mesh position holds, axes major to minor (sub-axes included).
int64_t shardIndex(const hlo::Mesh& mesh, llvm::ArrayRef<hlo::AxisRef> axes, int64_t mesh_position);

/// Per-device dims of a global type: ceil division per dimension. No sharding: the global dims.
hlo::Dims localDims(const hlo::Module& module, hlo::TypeId global, hlo::ShardingId sharding);
hlo::Dims localDims(const hlo::Module& module, llvm::ArrayRef<int64_t> global_dims, hlo::ShardingId sharding);

/// The valid box of a shard; a size may be 0.
struct ShardExtent {
  hlo::Dims offset, size;
};
ShardExtent shardOf(const hlo::Module& module, llvm::ArrayRef<int64_t> global_dims, hlo::ShardingId sharding,
                    int64_t mesh_position);
/// The same for a sharding that is not interned.
hlo::Dims localDims(const hlo::Sharding& sharding, llvm::ArrayRef<int64_t> global_dims);
ShardExtent shardOf(const hlo::Mesh& mesh, const hlo::Sharding& sharding, llvm::ArrayRef<int64_t> global_dims,
                    int64_t mesh_position);

/// The lowest mesh position that holds an element of the whole array (row-major position).
int64_t ownerOf(const hlo::Module& module, llvm::ArrayRef<int64_t> global_dims, hlo::ShardingId sharding, int64_t element);

/// The part of `global` at a mesh position, of local dims, padding zero.
HostTensor cutShard(const hlo::Module& module, const HostTensor& global, hlo::ShardingId sharding,
                    int64_t mesh_position);
HostTensor cutBox(const HostTensor& global, const ShardExtent& extent, llvm::ArrayRef<int64_t> local_dims);
/// Puts the valid part of a shard at its place in the whole array.
void placeBox(const HostTensor& shard, const ShardExtent& extent, HostTensor& global);

/// Two devices that hold the same part of an array with different contents.
struct ReplicaMismatch {
  int64_t first_position = 0, second_position = 0;
  hlo::Dims index;  // global index of the first differing element
};
/// The whole array from the shards of all mesh positions. Where several hold the same part, the lowest
/// position's is taken; a difference is noted in `mismatch` where that is given. `shards[p]` must have local
/// dims.
HostTensor assembleShards(const hlo::Module& module, llvm::ArrayRef<HostTensor> shards,
                          llvm::ArrayRef<int64_t> global_dims, hlo::ShardingId sharding,
                          std::optional<ReplicaMismatch>* mismatch);

}  // namespace tpu
