// Cutting and assembling: even, uneven, sub-axes, replicas that disagree.
#include "tpu/sharding/shard.h"

#include "gtest/gtest.h"

namespace tpu {
namespace {

using hlo::AxisRef;

struct Fixture {
  hlo::Module module;
  hlo::ShardingId shard(std::vector<std::vector<AxisRef>> dims) {
    hlo::Sharding s;
    s.mesh = hlo::MeshId(0);
    for (auto& axes : dims) {
      hlo::DimSharding d;
      d.axes.assign(axes.begin(), axes.end());
      s.dims.push_back(d);
    }
    return module.internSharding(s);
  }
  Fixture() { module.meshes.push_back(hlo::Mesh{"mesh", {{"x", 4}, {"y", 2}}, {}, -1}); }
};

HostTensor counting(llvm::ArrayRef<int64_t> dims) {
  HostTensor t(ElementType::kS32, dims);
  for (int64_t i = 0; i < t.numElements(); ++i) t.data<int32_t>()[i] = static_cast<int32_t>(i + 1);
  return t;
}

TEST(Shard, IndexOfSubAxes) {
  Fixture f;
  const hlo::Mesh& mesh = f.module.meshes[0];
  for (int64_t p = 0; p < 8; ++p) {
    EXPECT_EQ(shardIndex(mesh, {AxisRef{0, 1, 4}}, p), p / 2);
    EXPECT_EQ(shardIndex(mesh, {AxisRef{1, 1, 2}, AxisRef{0, 1, 4}}, p), p % 2 * 4 + p / 2);
    EXPECT_EQ(shardIndex(mesh, {AxisRef{0, 1, 2}}, p), p / 4);      // "x":(1)2, the major half
    EXPECT_EQ(shardIndex(mesh, {AxisRef{0, 2, 2}}, p), p / 2 % 2);  // "x":(2)2, the minor half
  }
}

TEST(Shard, UnevenPartsArePaddedAtTheEnd) {
  Fixture f;
  const hlo::ShardingId s = f.shard({{AxisRef{0, 1, 4}}, {AxisRef{1, 1, 2}}});
  const HostTensor whole = counting({9, 2});  // rows 3, 3, 3, 0
  EXPECT_EQ(localDims(f.module, whole.dims, s), (hlo::Dims{3, 1}));
  const ShardExtent last = shardOf(f.module, whole.dims, s, 7);
  EXPECT_EQ(last.size[0], 0);
  const HostTensor part = cutShard(f.module, whole, s, 3);  // x 1, y 1
  EXPECT_EQ(part.data<int32_t>()[0], 8);
  EXPECT_EQ(part.data<int32_t>()[2], 12);
  std::vector<HostTensor> parts;
  for (int64_t p = 0; p < 8; ++p) parts.push_back(cutShard(f.module, whole, s, p));
  std::optional<ReplicaMismatch> mismatch;
  EXPECT_EQ(assembleShards(f.module, parts, whole.dims, s, &mismatch), whole);
  EXPECT_FALSE(mismatch.has_value());
}

TEST(Shard, ReplicasMustAgree) {
  Fixture f;
  const hlo::ShardingId s = f.shard({{AxisRef{0, 1, 4}}, {}});
  const HostTensor whole = counting({8, 3});
  std::vector<HostTensor> parts;
  for (int64_t p = 0; p < 8; ++p) parts.push_back(cutShard(f.module, whole, s, p));
  parts[5].data<int32_t>()[4] = -1;  // x 2: rows 4 and 5
  std::optional<ReplicaMismatch> mismatch;
  EXPECT_EQ(assembleShards(f.module, parts, whole.dims, s, &mismatch), whole);
  ASSERT_TRUE(mismatch.has_value());
  EXPECT_EQ(mismatch->first_position, 4);
  EXPECT_EQ(mismatch->second_position, 5);
  EXPECT_EQ(mismatch->index, (hlo::Dims{5, 1}));
}

TEST(Shard, ScalarsAndNoSharding) {
  Fixture f;
  HostTensor scalar = counting({});
  EXPECT_EQ(cutShard(f.module, scalar, hlo::ShardingId(), 3), scalar);
  EXPECT_EQ(cutShard(f.module, scalar, f.shard({}), 3), scalar);
}

}  // namespace
}  // namespace tpu
