// Plans between layouts: the sequence of collectives and what it sends.
#include "plan.h"

#include <gtest/gtest.h>

namespace tpu::partition {
namespace {

using sharding::AxisRef;
const AxisRef kX{0, 1, 4}, kY{1, 1, 2};

struct PlanTest : testing::Test {
  PlanTest() {
    mesh.axes = {{"x", 4}, {"y", 2}};
    planner = std::make_unique<Planner>(mesh);
  }
  Layout layout(std::initializer_list<sharding::Axes> dims, sharding::Axes unreduced = {}) {
    Layout l;
    for (const sharding::Axes& d : dims) l.dims.push_back(d);
    l.unreduced = unreduced;
    return l;
  }
  std::string moves(llvm::ArrayRef<int64_t> sizes, const Layout& from, const Layout& to) {
    const Plan& p = planner->plan(sizes, 32, from, to);
    wire = p.wire_bytes;
    full_copy = p.full_copy;
    std::string out;
    for (const Move& m : p.moves) out += (out.empty() ? "" : " ") + moveName(m.kind).str();
    return out;
  }
  hlo::Mesh mesh;
  std::unique_ptr<Planner> planner;
  int64_t wire = 0;
  bool full_copy = false;
};

TEST_F(PlanTest, OneStep) {
  EXPECT_EQ(moves({16, 16}, layout({{}, {}}), layout({{kX}, {kY}})), "slice");
  EXPECT_EQ(wire, 0);
  EXPECT_EQ(moves({16, 16}, layout({{kX}, {}}), layout({{}, {}})), "all_gather");
  EXPECT_EQ(wire, 16 * 16 * 4 * 3 / 4);
  EXPECT_EQ(moves({16, 16}, layout({{kX}, {}}), layout({{}, {kX}})), "all_to_all");
  EXPECT_EQ(wire, 64 * 4 * 3 / 4);
  EXPECT_EQ(moves({16, 16}, layout({{kX, kY}, {}}), layout({{kY, kX}, {}})), "collective_permute");
  EXPECT_FALSE(full_copy);
}

TEST_F(PlanTest, PartialSums) {
  EXPECT_EQ(moves({16, 16}, layout({{}, {}}, {kX}), layout({{}, {}})), "all_reduce");
  EXPECT_EQ(wire, 2 * 1024 * 3 / 4);
  EXPECT_EQ(moves({16, 16}, layout({{}, {}}, {kX}), layout({{}, {kX}})), "reduce_scatter");
  EXPECT_EQ(wire, 256 * 3);
  EXPECT_EQ(moves({16, 16}, layout({{}, {}}, {kX, kY}), layout({{kX}, {}})), "reduce_scatter all_reduce");
  EXPECT_EQ(wire, 256 * 3 + 2 * 256 / 2);
}

TEST_F(PlanTest, MoveThenSlice) {
  EXPECT_EQ(moves({16, 16}, layout({{kX}, {}}), layout({{}, {kX, kY}})), "all_to_all slice");
  EXPECT_EQ(wire, 192);
  EXPECT_FALSE(full_copy);
}

TEST_F(PlanTest, TwoFullShardings) {
  std::string plan = moves({16, 16, 16}, layout({{kY}, {}, {kX}}), layout({{}, {kX, kY}, {}}));
  EXPECT_EQ(plan.find("all_gather"), std::string::npos) << plan;
  EXPECT_FALSE(full_copy);
}

TEST_F(PlanTest, UnevenShardsThatDoNotLineUpAreGathered) {
  EXPECT_EQ(moves({10}, layout({{kX, kY}}), layout({{kX}})), "all_gather slice");
  EXPECT_EQ(moves({16}, layout({{kX, kY}}), layout({{kX}})), "all_gather");
}

TEST_F(PlanTest, MoreShardsThanElements) {
  EXPECT_EQ(moves({4, 3}, layout({{kY}, {kX}}), layout({{kY, kX}, {}})), "all_gather all_gather slice");
  EXPECT_EQ(moves({4, 3}, layout({{}, {}}), layout({{kY, kX}, {}})), "slice");
}

TEST_F(PlanTest, DimensionOfSizeOne) {
  mesh.axes.push_back({"z", 2});
  planner = std::make_unique<Planner>(mesh);
  AxisRef z{2, 1, 2};
  EXPECT_EQ(moves({4, 3, 1}, layout({{kY}, {kX}, {}}), layout({{kY, kX}, {}, {z}})),
            "slice all_gather all_gather slice");
}

TEST_F(PlanTest, PermutePairsAreOneToOne) {
  PermutePairs p = permutePairs(mesh, layout({{kX, kY}}), layout({{kY, kX}}), {kX, kY});
  EXPECT_EQ(p.group, 8);
  std::vector<bool> from(8), to(8);
  for (size_t i = 0; i < p.pairs.size(); i += 2) {
    EXPECT_FALSE(from[p.pairs[i]]);
    EXPECT_FALSE(to[p.pairs[i + 1]]);
    from[p.pairs[i]] = to[p.pairs[i + 1]] = true;
  }
  EXPECT_EQ(p.pairs.size(), 16u);
  EXPECT_EQ(p.moving, 6);  // the first and the last block stay
}

}  // namespace
}  // namespace tpu::partition
