// Windows that move at another pace than the shards: every device receives exactly the blocks that it needs.
#include "localise.h"

namespace tpu::partition {

using hlo::ValueId;
using sharding::AxesRef;

ValueId Localiser::numberAt(llvm::ArrayRef<int64_t> numbers, AxesRef axes) {
  // a + b * position where that says it.
  int64_t first = -1, second = -1;
  for (int64_t p = 0; p < static_cast<int64_t>(numbers.size()) && second < 0; ++p) {
    if (numbers[p] >= 0) (first < 0 ? first : second) = p;
  }
  if (first < 0) return s32(0);
  const int64_t run = second < 0 ? 1 : second - first, rise = second < 0 ? 0 : numbers[second] - numbers[first];
  bool affine_too = rise % run == 0;
  for (int64_t p = 0; p < static_cast<int64_t>(numbers.size()); ++p)
    affine_too &= numbers[p] < 0 || numbers[p] == numbers[first] + (p - first) * (rise / run);
  if (affine_too) return affine(axes, rise / run, numbers[first] - first * (rise / run));
  llvm::SmallVector<int64_t, 8> table(numbers);
  for (int64_t& n : table) n = std::max<int64_t>(n, 0);
  return entryAt(table, axes);
}

ValueId Localiser::entryAt(llvm::ArrayRef<int64_t> table, AxesRef axes) {
  return b_.reshape(b_.dynamicSlice(b_.ints(ElementType::kS32, table), {coordinate(axes)}, {1}), {});
}

ValueId Localiser::fetchBlocks(ValueId v, int64_t dim, const Window& w, const Blocks& blocks, AxesRef axes, ValueId fill) {
  hlo::Dims dims = m_.typeOf(v).dims;
  const int64_t c = dims[dim];
  dims[dim] = w.count();
  ValueId out = b_.broadcastScalar(fill, dims);
  needs(v, dim, w.count());
  llvm::SmallVector<ValueId, 6> at(dims.size(), s32(0));
  for (const BlockRound& round : blocks.rounds) {
    ValueId block = v;
    if (round.length < c) {
      llvm::SmallVector<int64_t, 6> sizes(dims.begin(), dims.end());
      sizes[dim] = round.length;
      at[dim] = numberAt(round.begin, axes);
      block = b_.dynamicSlice(v, at, sizes);
    }
    bool all = true, leaves = false;
    llvm::SmallVector<int64_t, 8> receives;
    for (bool r : round.receives) {
      receives.push_back(r);
      all &= r;
    }
    for (size_t i = 0; i < round.pairs.size(); i += 2) leaves |= round.pairs[i] != round.pairs[i + 1];
    if (leaves) {
      block = permute(block, axes, round.pairs);
      noteWhy(m_.value(block).def, "halo");
    }
    if (round.length < w.count()) {
      at[dim] = numberAt(round.place, axes);
      block = b_.dynamicUpdateSlice(out, block, at);
    }
    if (!all) {
      ValueId here = b_.compare(hlo::Comparison::kNe, numberAt(receives, axes), s32(0));
      block = b_.select(b_.broadcastScalar(here, dims), block, out);
    }
    out = block;
  }
  return out;
}

}  // namespace tpu::partition
