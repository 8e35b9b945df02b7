// Plans a copy of a box of 32-bit words between two arrays of any layout as few strided DMAs.
//
// Each iteration dimension drives at most one array dimension on either side. In a tiled layout an array dimension's
// address is not linear in its index: it is (i / T) * tile_stride + (i % T) * in_stride. The planner scans both addresses
// along each iteration dimension, cuts it into runs on which both are linear, and folds runs that repeat with the tiles
// into two-level nests. The copy is the product of the nests of all dimensions.
#pragma once
#include <cstdint>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "tpu/isa/layout.h"

namespace tpu::lower {

/// Byte address of index i along one array dimension.
struct AxisAddress {
  int64_t tile = INT64_MAX;  // INT64_MAX: linear
  int64_t tile_stride = 0, in_stride = 0;
  int64_t at(int64_t i) const { return tile == INT64_MAX ? i * in_stride : (i / tile) * tile_stride + (i % tile) * in_stride; }
};
/// The axes of a 32-bit array (or of the word rows of a packed one: pass dims with the second-minor divided by packing and
/// a layout of packing 1). Rank 0 has no axes.
std::vector<AxisAddress> axisAddresses(const isa::Layout& layout, llvm::ArrayRef<int64_t> dims);

struct IterDim {
  int64_t count = 1;
  AxisAddress src, dst;
  int64_t src_start = 0, src_step = 1;
  int64_t dst_start = 0, dst_step = 1;
};

struct CopyLevel {
  int64_t count, src_stride, dst_stride;  // bytes
};
struct CopyNest {
  int64_t src_offset = 0, dst_offset = 0;  // bytes
  int64_t run = 4;                         // contiguous bytes on both sides
  std::vector<CopyLevel> levels;           // outermost first, no count of 1
  int64_t totalBytes() const;
};
/// The nests whose union is the copy; empty where a count is 0.
std::vector<CopyNest> planCopy(llvm::ArrayRef<IterDim> dims);

}  // namespace tpu::lower
