// Plans of copies between layouts, executed word by word.
#include "copy_plan.h"

#include <gtest/gtest.h>

#include <map>

namespace tpu::lower {
namespace {

// Expands the nests word by word: destination address -> source address.
std::map<int64_t, int64_t> expand(const std::vector<CopyNest>& nests) {
  std::map<int64_t, int64_t> words;
  for (const CopyNest& nest : nests) {
    std::vector<std::pair<int64_t, int64_t>> at = {{nest.src_offset, nest.dst_offset}};
    for (const CopyLevel& l : nest.levels) {
      std::vector<std::pair<int64_t, int64_t>> next;
      for (auto [s, d] : at)
        for (int64_t i = 0; i < l.count; ++i) next.push_back({s + i * l.src_stride, d + i * l.dst_stride});
      at = std::move(next);
    }
    for (auto [s, d] : at)
      for (int64_t b = 0; b < nest.run; b += 4) EXPECT_TRUE(words.emplace(d + b, s + b).second) << "written twice";
  }
  return words;
}

void checkShift(int64_t rows, int64_t cols, int64_t row0, int64_t col0, int64_t n_rows, int64_t n_cols, bool dense_dst) {
  isa::Layout tiled = isa::defaultLayout(ElementType::kF32, {rows, cols});
  isa::Layout out = isa::defaultLayout(ElementType::kF32, {n_rows, n_cols});
  out.dense = dense_dst;
  auto src = axisAddresses(tiled, {rows, cols});
  auto dst = axisAddresses(out, {n_rows, n_cols});
  std::vector<IterDim> dims = {{n_rows, src[0], dst[0], row0, 1, 0, 1}, {n_cols, src[1], dst[1], col0, 1, 0, 1}};
  auto words = expand(planCopy(dims));
  ASSERT_EQ(words.size(), static_cast<size_t>(n_rows * n_cols));
  for (int64_t r = 0; r < n_rows; ++r)
    for (int64_t c = 0; c < n_cols; ++c) {
      int sub = 0;
      int64_t from = isa::elementOffset(tiled, {rows, cols}, {row0 + r, col0 + c}, &sub);
      int64_t to = dense_dst ? (r * n_cols + c) * 4 : isa::elementOffset(out, {n_rows, n_cols}, {r, c}, &sub);
      ASSERT_EQ(words[to], from) << r << "," << c;
    }
}

TEST(CopyPlan, ShiftedSlices) {
  checkShift(40, 300, 3, 5, 21, 290, false);
  checkShift(40, 300, 8, 128, 16, 128, false);
  checkShift(5, 700, 1, 130, 3, 500, false);
  checkShift(64, 64, 0, 0, 64, 64, true);
  checkShift(33, 257, 2, 1, 30, 255, true);
  checkShift(1, 1000, 0, 77, 1, 900, false);
}

TEST(CopyPlan, AlignedBoxIsOneTransfer) {
  isa::Layout tiled = isa::defaultLayout(ElementType::kF32, {1024, 1024});
  auto src = axisAddresses(tiled, {1024, 1024});
  auto dst = axisAddresses(tiled, {512, 1024});
  std::vector<IterDim> dims = {{512, src[0], dst[0], 512, 1, 0, 1}, {1024, src[1], dst[1], 0, 1, 0, 1}};
  auto nests = planCopy(dims);
  ASSERT_EQ(nests.size(), 1u);
  EXPECT_EQ(nests[0].run, 512 * 1024 * 4);
  EXPECT_TRUE(nests[0].levels.empty());
}

TEST(CopyPlan, TransposeAndReverse) {
  isa::Layout a = isa::defaultLayout(ElementType::kF32, {10, 150}), b = isa::defaultLayout(ElementType::kF32, {150, 10});
  auto src = axisAddresses(a, {10, 150});
  auto dst = axisAddresses(b, {150, 10});
  std::vector<IterDim> dims = {{10, src[0], dst[1], 9, -1, 0, 1}, {150, src[1], dst[0], 0, 1, 0, 1}};
  auto words = expand(planCopy(dims));
  int sub = 0;
  for (int64_t r = 0; r < 150; ++r)
    for (int64_t c = 0; c < 10; ++c)
      ASSERT_EQ(words[isa::elementOffset(b, {150, 10}, {r, c}, &sub)], isa::elementOffset(a, {10, 150}, {9 - c, r}, &sub));
}

}  // namespace
}  // namespace tpu::lower
