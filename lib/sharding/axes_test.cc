// Axis lists, their text, tile assignments and factor projection, by value.
#include "tpu/sharding/axes.h"

#include <gtest/gtest.h>

#include "tpu/hlo/builder.h"
#include "tpu/sharding/gspmd.h"
#include "tpu/sharding/rules.h"
#include "tpu/sharding/text.h"
#include "tpu/support/diagnostics.h"

namespace tpu::sharding {
namespace {

Mesh mesh() {
  Mesh m;
  m.name = "mesh";
  m.axes = {{"x", 4}, {"y", 2}, {"z", 8}};
  return m;
}
const AxisRef kX{0, 1, 4}, kX1{0, 1, 2}, kX2{0, 2, 2}, kY{1, 1, 2}, kZ{2, 1, 8};

Code codeOf(llvm::Error e) { return takeDiagnostics(std::move(e))[0].code; }

TEST(Axes, JoinNeighboursAndCutPrefixes) {
  Axes list;
  append(list, kX1);
  append(list, kX2);
  EXPECT_EQ(list, Axes{kX});
  EXPECT_TRUE(isPrefix({kX1}, {kX, kY}));
  EXPECT_FALSE(isPrefix({kX2}, {kX, kY}));
  EXPECT_EQ(dropPrefix({kX, kY}, {kX1}), (Axes{kX2, kY}));
  EXPECT_EQ(product({kX, kY, kZ}), 64);
  EXPECT_TRUE(overlaps(kX, kX2));
  EXPECT_FALSE(overlaps(kX1, kX2));
}

TEST(Axes, TakeByCountAndLeaveOutWhatIsUsed) {
  Axes taken, rest;
  ASSERT_TRUE(takeProduct({kX, kZ}, 8, taken, rest));
  EXPECT_EQ(taken, (Axes{kX, {2, 1, 2}}));
  EXPECT_EQ(rest, (Axes{{2, 2, 4}}));
  EXPECT_FALSE(takeProduct({kX}, 3, taken, rest));
  EXPECT_EQ(prefixWithout({kY, kX}, {kX2}), (Axes{kY, kX1}));
  EXPECT_EQ(prefixWithout({kX, kY}, {kX1}), Axes{});
  EXPECT_EQ(unused(mesh(), {kX1, kY}), (Axes{kX2, kZ}));
}

TEST(Axes, AtomsAreEqualOrDisjoint) {
  Axes lists[] = {{kX, kY}, {kX2}, {kZ, kX1}};
  splitToAtoms(lists);
  EXPECT_EQ(lists[0], (Axes{kX1, kX2, kY}));
  EXPECT_EQ(lists[1], Axes{kX2});
}

TEST(Axes, CoordinatesAreRowMajor) {
  Mesh m = mesh();
  EXPECT_EQ(stride(m, kX), 16);
  EXPECT_EQ(stride(m, kX1), 32);
  EXPECT_EQ(stride(m, kX2), 16);
  EXPECT_EQ(coordinate(m, AxesRef{kZ, kX}, 37), 5 * 4 + 2);  // 37 = 2*16 + 0*8 + 5
}

TEST(Axes, GroupsBecomeAxes) {
  Mesh m;
  m.axes = {{"x", 4}, {"y", 2}};
  Axes axes;
  EXPECT_TRUE(axesOfGroups(m, {4, 2, {0, 1, 2, 3, 4, 5, 6, 7}}, axes));
  EXPECT_EQ(axes, (Axes{{1, 1, 2}}));
  EXPECT_TRUE(axesOfGroups(m, {2, 4, {0, 2, 4, 6, 1, 3, 5, 7}}, axes));
  EXPECT_EQ(axes, (Axes{{0, 1, 4}}));
  EXPECT_TRUE(axesOfGroups(m, {1, 8, {0, 2, 4, 6, 1, 3, 5, 7}}, axes));
  EXPECT_EQ(axes, (Axes{{1, 1, 2}, {0, 1, 4}}));
  EXPECT_TRUE(axesOfGroups(m, {4, 2, {0, 4, 1, 5, 2, 6, 3, 7}}, axes));
  EXPECT_EQ(axes, (Axes{{0, 1, 2}}));
  EXPECT_FALSE(axesOfGroups(m, {4, 2, {0, 1, 2, 3, 4, 6, 5, 7}}, axes));
  EXPECT_FALSE(axesOfGroups(m, {2, 2, {0, 1, 2, 3}}, axes));
}

TEST(ShardingText, ReadsWhatItPrints) {
  hlo::Module m;
  m.meshes.push_back(mesh());
  for (const char* text : {"[{\"x\", \"y\"}, {}]", "[{?}, {\"z\":(2)4, ?}p1]",
                           "[{}, {}], replicated={\"x\":(1)2}, unreduced={\"y\"}"}) {
    auto s = parse(m, hlo::MeshId(0), text, 2, "f.py:1:1");
    ASSERT_TRUE(bool(s)) << text;
    EXPECT_EQ(print(m.meshes[0], *s), text);
  }
  auto bare = parse(m, hlo::MeshId(0), "{\"x\"}, {?}", 2, "");
  ASSERT_TRUE(bool(bare));
  EXPECT_EQ(print(m.meshes[0], *bare), "[{\"x\"}, {?}]");
}

TEST(ShardingText, RefusesByName) {
  hlo::Module m;
  m.meshes.push_back(mesh());
  auto code = [&](const char* text, int64_t rank = 2) {
    return codeOf(parse(m, hlo::MeshId(0), text, rank, "").takeError());
  };
  EXPECT_EQ(code("[{\"q\"}, {}]"), Code::kUnknownAxis);
  EXPECT_EQ(code("[{\"x\"}, {\"x\":(2)2}]"), Code::kAxisTwice);
  EXPECT_EQ(code("[{\"x\":(1)3}, {}]"), Code::kShardingText);
  EXPECT_EQ(code("[{\"x\"}]"), Code::kShardingText);
  EXPECT_EQ(code("[{\"x\""), Code::kShardingText);
  EXPECT_EQ(codeOf(parseMesh("x=4,y").takeError()), Code::kBadMesh);
  EXPECT_EQ(codeOf(parseMesh("x=4,x=2").takeError()), Code::kBadMesh);
}

TEST(Gspmd, TileAssignmentsBecomeAxes) {
  Mesh m;
  m.axes = {{"d", 8}};
  auto dims = [&](const char* text) {
    auto g = parseGspmd(m, text, "");
    std::string out;
    if (!g) return "refused " + std::to_string(static_cast<int>(codeOf(g.takeError())));
    for (const Axes& a : g->dims) out += print(m, AxesRef(a));
    return out;
  };
  EXPECT_EQ(dims("{devices=[8,1]<=[8]}"), "{\"d\"}{}");
  EXPECT_EQ(dims("{devices=[2,4]<=[8]}"), "{\"d\":(1)2}{\"d\":(2)4}");
  EXPECT_EQ(dims("{devices=[2,4]<=[4,2]T(1,0)}"), "{\"d\":(4)2}{\"d\":(1)4}");
  EXPECT_EQ(dims("{devices=[4,1,2]<=[8] last_tile_dim_replicate}"), "{\"d\":(1)4}{}");
  EXPECT_EQ(dims("{devices=[4,1]0,2,4,6}"), "refused 407");
  EXPECT_EQ(dims("{devices=[4,2]0,4,1,5,2,6,3,7}"), "{\"d\":(2)4}{\"d\":(1)2}");
  EXPECT_EQ(dims("{devices=[8]0,1,2,3,4,5,7,6}"), "refused 407");
  m.device_ids = {0, 1, 2, 3, 4, 5, 7, 6};
  EXPECT_EQ(dims("{devices=[8]0,1,2,3,4,5,7,6}"), "{\"d\"}");
  EXPECT_EQ(gspmdDevices("{devices=[4,1,2]<=[8] last_tile_dim_replicate}"), 8);
}

/// The factor lists of a reshape as text: operand dims | result dims, sizes of factors.
std::string reshapeFactors(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  hlo::Module m;
  hlo::FuncId f = m.addFunc("main", false);
  hlo::ValueId x = m.addArg(m.func(f).body, m.tensorType(ElementType::kF32, from), hlo::LocId());
  hlo::Builder b(m, m.func(f).body);
  hlo::OpId op = b.create(hlo::Opcode::reshape, {x}, {m.tensorType(ElementType::kF32, to)});
  OpRule rule = ruleFor(m, op);
  std::string out;
  auto put = [&](const TensorFactors& t) {
    for (const DimFactors& d : t) {
      out += "(";
      for (size_t i = 0; i < d.size(); ++i) out += (i ? "," : "") + std::to_string(rule.factors[d[i]].size);
      out += ")";
    }
  };
  put(rule.operands[0]);
  out += "|";
  put(rule.results[0]);
  return out;
}

TEST(Rules, ReshapesSplitMergeAndMix) {
  EXPECT_EQ(reshapeFactors({8, 16}, {2, 4, 16}), "(2,4)(16)|(2)(4)(16)");
  EXPECT_EQ(reshapeFactors({2, 4, 16}, {8, 16}), "(2)(4)(16)|(2,4)(16)");
  EXPECT_EQ(reshapeFactors({4, 6}, {8, 3}), "(4)(2,3)|(4,2)(3)");
  EXPECT_EQ(reshapeFactors({1, 5, 1}, {5}), "()(5)()|(5)");
  EXPECT_EQ(reshapeFactors({6, 4}, {4, 6}),
            "(2)()|(2)()");  // halves of six and of four, then nothing in common
}

}  // namespace
}  // namespace tpu::sharding
