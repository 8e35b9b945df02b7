// Operations that shift data along a dimension (slice, pad, concatenate, reverse, windows) keep it sharded by
// fetching a window: device p needs the elements [start + p * step, + length) of an array whose device q
// holds [q * shard, + shard). What lies outside its own shard comes from neighbours by permutes; what lies
// outside the array is filled. Where the operation spreads its operand (interior padding, base dilation) start,
// step and length count in the spread array, of which only every dilation-th element exists.
//
// Two operations work across shards in another way: a cumulative window takes the totals of the shards before,
// and a sort merges sorted shards pairwise.
#pragma once
#include <optional>
#include <vector>

#include "tpu/sharding/rules.h"

namespace tpu::partition {

struct Window {
  int64_t size = 0;  // elements of the whole dimension
  int64_t shards = 1;
  int64_t start = 0, step = 0, length = 0;
  int64_t dilation = 1;
  int64_t shard() const { return sharding::shardSize(size, shards); }
  /// First element of device p's window, and how many a window touches at most.
  int64_t first(int64_t p) const;
  int64_t count() const;
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

/// A window that moves at another pace than the shards (the half of a dimension, a concatenation), reaches far to one side, or
/// lies beyond the array for most devices, is put together from blocks instead: in each round some devices send a block of one length to one device each.
struct BlockRound {
  int64_t length = 0;
  std::vector<int64_t> pairs;                 // source, target, source, target ...
  std::vector<int64_t> begin, place;          // by position along the axes: in the sender's shard, in the receiver's window
  std::vector<bool> receives;
};
struct Blocks {
  std::vector<BlockRound> rounds;
  double sent = 0;  // elements sent per device along the dimension, mean
};
/// None where borders are exchanged.
std::optional<Blocks> blocksOf(const Window& w);

/// The windows of the operands of a shifting op along `dim` of the operand; empty where the op has none
/// (unsupported). For a reverse the window is taken before the mirror permute.
llvm::SmallVector<Window, 2> windowsOf(const hlo::Module& m, hlo::OpId op, int64_t operand_dim,
                                       int64_t result_dim, llvm::ArrayRef<int64_t> operand_sizes,
                                       int64_t result_size, int64_t shards);

/// What a device needs of a convolution's input of `size` along `dim` for its own part of the window of `taps`, for all of
/// the result.
Window tapsWindow(const hlo::Module& m, hlo::OpId convolution, int64_t dim, int64_t size, int64_t taps, int64_t shards);

/// 1 where a reduce_window is a running total from the low end along `dim` of whole size `n` (window and padding
/// reach over all of it), -1 from the high end, 0 otherwise.
int cumulativeDirection(const hlo::Module& m, hlo::OpId op, int64_t dim, int64_t n);

/// Batcher's merge-exchange network over `n` sorted shards: in each round the pairs (low, high) merge, the low
/// one keeps the smaller half.
std::vector<std::vector<std::pair<int64_t, int64_t>>> sortRounds(int64_t n);

bool neighbourSupported(const hlo::Module& m, hlo::OpId op, const sharding::OpRule& rule, int factor,
                        int64_t shards);
/// Wire bytes per device of the exchange along `factor` when the factors are sharded by `axes`.
double neighbourBytes(const hlo::Module& m, hlo::OpId op, const sharding::OpRule& rule, int factor,
                      const sharding::FactorAxes& axes);

}  // namespace tpu::partition
