// Operations that shift data along a dimension (slice, pad, concatenate, reverse, windows) keep it sharded by
// fetching a window: device p needs the elements [start + p * step, + length) of an array whose device q
// holds [q * shard, + shard). What lies outside its own shard comes from neighbours by permutes; what lies
// outside the array is filled.
#pragma once
#include "tpu/sharding/rules.h"

namespace tpu::partition {

struct Window {
  int64_t size = 0;  // elements of the whole dimension
  int64_t shards = 1;
  int64_t start = 0, step = 0, length = 0;
  int64_t shard() const { return sharding::shardSize(size, shards); }
};

/// What the exchange of a window needs: elements from the left and from the right of the own shard, the range
/// of offsets of the window in left + own + right, and whether any device reads outside the array.
struct Halo {
  int64_t left = 0, right = 0;
  int64_t min_offset = 0, max_offset = 0;
  bool outside = false;
  double sent = 0;  // elements sent per device along the dimension, mean
};
Halo haloOf(const Window& w);

/// The windows of the operands of a shifting op along `dim` of the operand; empty where the op has none
/// (unsupported). For a reverse the window is taken before the mirror permute.
llvm::SmallVector<Window, 2> windowsOf(const hlo::Module& m, hlo::OpId op, int64_t operand_dim,
                                       int64_t result_dim, llvm::ArrayRef<int64_t> operand_sizes,
                                       int64_t result_size, int64_t shards);

bool neighbourSupported(const hlo::Module& m, hlo::OpId op, const sharding::OpRule& rule, int factor,
                        int64_t shards);
/// Wire bytes per device of the exchange along `factor` when the factors are sharded by `axes`.
double neighbourBytes(const hlo::Module& m, hlo::OpId op, const sharding::OpRule& rule, int factor,
                      const sharding::FactorAxes& axes);

}  // namespace tpu::partition
