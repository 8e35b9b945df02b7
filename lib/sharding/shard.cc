// Boxes of shards, and cutting and assembling whole arrays by them.
#include "tpu/sharding/shard.h"

#include <algorithm>
#include <cstring>

namespace tpu {
namespace {

using hlo::Dims;

// Copies the box of `size` elements from one row-major array to another, innermost runs at once; `visit` sees
// the two runs first.
template <class Visit>
void forEachRun(llvm::ArrayRef<int64_t> size, llvm::ArrayRef<int64_t> a_dims,
                llvm::ArrayRef<int64_t> a_offset, llvm::ArrayRef<int64_t> b_dims,
                llvm::ArrayRef<int64_t> b_offset, Visit visit) {
  const size_t rank = size.size();
  if (std::find(size.begin(), size.end(), 0) != size.end()) return;
  if (rank == 0) return visit(0, 0, 1);
  Dims index(rank, 0);
  while (true) {
    int64_t a = 0, b = 0;
    for (size_t d = 0; d < rank; ++d) {
      a = a * a_dims[d] + a_offset[d] + index[d];
      b = b * b_dims[d] + b_offset[d] + index[d];
    }
    visit(a, b, size[rank - 1]);
    int64_t d = static_cast<int64_t>(rank) - 2;
    while (d >= 0 && ++index[d] == size[d]) index[d--] = 0;
    if (d < 0) return;
  }
}

}  // namespace

int64_t shardCount(const hlo::DimSharding& dim) {
  int64_t count = 1;
  for (const hlo::AxisRef& axis : dim.axes) count *= axis.size;
  return count;
}

int64_t shardIndex(const hlo::Mesh& mesh, llvm::ArrayRef<hlo::AxisRef> axes, int64_t mesh_position) {
  int64_t index = 0;
  for (const hlo::AxisRef& ref : axes) {
    int64_t inner = 1;  // positions that share the coordinate of the axis
    for (size_t a = ref.axis + 1; a < mesh.axes.size(); ++a) inner *= mesh.axes[a].size;
    const int64_t axis_size = mesh.axes[ref.axis].size;
    const int64_t coordinate = mesh_position / inner % axis_size;
    index = index * ref.size + coordinate / (axis_size / (ref.pre * ref.size)) % ref.size;
  }
  return index;
}

Dims localDims(const hlo::Module& module, hlo::TypeId global, hlo::ShardingId sharding) {
  return localDims(module, module.type(global).dims, sharding);
}

Dims localDims(const hlo::Module& module, llvm::ArrayRef<int64_t> global_dims, hlo::ShardingId sharding) {
  if (sharding.valid()) return localDims(module.sharding(sharding), global_dims);
  return Dims(global_dims.begin(), global_dims.end());
}

Dims localDims(const hlo::Sharding& sharding, llvm::ArrayRef<int64_t> global_dims) {
  Dims dims(global_dims.begin(), global_dims.end());
  for (size_t d = 0; d < dims.size() && d < sharding.dims.size(); ++d) {
    const int64_t count = shardCount(sharding.dims[d]);
    dims[d] = (dims[d] + count - 1) / count;
  }
  return dims;
}

ShardExtent shardOf(const hlo::Module& module, llvm::ArrayRef<int64_t> global_dims, hlo::ShardingId sharding,
                    int64_t mesh_position) {
  if (!sharding.valid()) return {Dims(global_dims.size(), 0), Dims(global_dims.begin(), global_dims.end())};
  const hlo::Sharding& s = module.sharding(sharding);
  return shardOf(module.meshes[s.mesh.v], s, global_dims, mesh_position);
}

ShardExtent shardOf(const hlo::Mesh& mesh, const hlo::Sharding& sharding, llvm::ArrayRef<int64_t> global_dims,
                    int64_t mesh_position) {
  ShardExtent extent{Dims(global_dims.size(), 0), Dims(global_dims.begin(), global_dims.end())};
  const Dims local = localDims(sharding, global_dims);
  for (size_t d = 0; d < global_dims.size() && d < sharding.dims.size(); ++d) {
    if (sharding.dims[d].axes.empty()) continue;
    const int64_t index = shardIndex(mesh, sharding.dims[d].axes, mesh_position);
    extent.offset[d] = std::min(index * local[d], global_dims[d]);
    extent.size[d] = std::min(local[d], global_dims[d] - extent.offset[d]);
  }
  return extent;
}

HostTensor cutBox(const HostTensor& global, const ShardExtent& extent, llvm::ArrayRef<int64_t> local_dims) {
  HostTensor out(global.element, local_dims);
  const Dims zero(global.dims.size(), 0);
  const int64_t width = hostBytes(global.element);
  forEachRun(extent.size, out.dims, zero, global.dims, extent.offset,
             [&](int64_t to, int64_t from, int64_t count) {
               std::memcpy(out.bytes.data() + to * width, global.bytes.data() + from * width, count * width);
             });
  return out;
}

void placeBox(const HostTensor& shard, const ShardExtent& extent, HostTensor& global) {
  const Dims zero(global.dims.size(), 0);
  const int64_t width = hostBytes(global.element);
  forEachRun(extent.size, shard.dims, zero, global.dims, extent.offset,
             [&](int64_t from, int64_t to, int64_t count) {
               std::memcpy(global.bytes.data() + to * width, shard.bytes.data() + from * width,
                           count * width);
             });
}

int64_t ownerOf(const hlo::Module& module, llvm::ArrayRef<int64_t> global_dims, hlo::ShardingId sharding, int64_t element) {
  if (!sharding) return 0;
  hlo::Dims index(global_dims.size(), 0);
  for (size_t d = index.size(); d-- > 0; element /= global_dims[d]) index[d] = element % global_dims[d];
  const int64_t positions = module.meshes[module.sharding(sharding).mesh.v].numDevices();
  for (int64_t p = 0; p < positions; ++p) {
    const ShardExtent box = shardOf(module, global_dims, sharding, p);
    bool inside = true;
    for (size_t d = 0; d < index.size(); ++d) inside &= index[d] >= box.offset[d] && index[d] < box.offset[d] + box.size[d];
    if (inside) return p;
  }
  return 0;
}

HostTensor cutShard(const hlo::Module& module, const HostTensor& global, hlo::ShardingId sharding,
                    int64_t mesh_position) {
  return cutBox(global, shardOf(module, global.dims, sharding, mesh_position),
                localDims(module, global.dims, sharding));
}

HostTensor assembleShards(const hlo::Module& module, llvm::ArrayRef<HostTensor> shards,
                          llvm::ArrayRef<int64_t> global_dims, hlo::ShardingId sharding,
                          std::optional<ReplicaMismatch>* mismatch) {
  HostTensor out(shards[0].element, global_dims);
  const int64_t width = hostBytes(out.element);
  const Dims zero(global_dims.size(), 0);
  std::vector<std::pair<Dims, int64_t>> owners;  // offset of a part -> the position it was taken from
  for (size_t p = 0; p < shards.size(); ++p) {
    const ShardExtent extent = shardOf(module, global_dims, sharding, static_cast<int64_t>(p));
    const HostTensor& shard = shards[p];
    assert(llvm::ArrayRef<int64_t>(shard.dims) ==
           llvm::ArrayRef<int64_t>(localDims(module, global_dims, sharding)));
    const auto owner =
        std::find_if(owners.begin(), owners.end(), [&](auto& o) { return o.first == extent.offset; });
    if (owner == owners.end()) {
      owners.emplace_back(extent.offset, p);
      placeBox(shard, extent, out);
      continue;
    }
    if (!mismatch || mismatch->has_value()) continue;
    forEachRun(extent.size, shard.dims, zero, global_dims, extent.offset,
               [&](int64_t from, int64_t to, int64_t n) {
                 const uint8_t* a = shard.bytes.data() + from * width;
                 const uint8_t* b = out.bytes.data() + to * width;
                 if (mismatch->has_value() || std::memcmp(a, b, n * width) == 0) return;
                 int64_t at = to + (std::mismatch(a, a + n * width, b).first - a) / width;
                 ReplicaMismatch found{owner->second, static_cast<int64_t>(p), Dims(global_dims.size(), 0)};
                 for (size_t d = global_dims.size(); d-- > 0; at /= global_dims[d])
                   found.index[d] = at % global_dims[d];
                 *mismatch = found;
               });
  }
  return out;
}

}  // namespace tpu
