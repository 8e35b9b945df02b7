// Shardings of GSPMD survive the way to mesh axes and back.
#include "tpu/sharding/gspmd.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tpu/sharding/text.h"
#include "tpu/support/diagnostics.h"

namespace tpu::sharding {
namespace {

Mesh mesh(std::initializer_list<int64_t> sizes) {
  Mesh m;
  for (int64_t n : sizes) m.axes.push_back({std::string(1, static_cast<char>('x' + m.axes.size())), n});
  return m;
}

/// Read, written, read and written again: what comes out, or what went wrong.
std::string again(const Mesh& m, const std::string& text) {
  auto first = parseGspmd(m, text, "");
  if (!first) return "refused: " + takeDiagnostics(first.takeError()).front().text;
  std::string out = printGspmd(m, *first);
  auto second = parseGspmd(m, out, "");
  if (!second) return out + " refused: " + takeDiagnostics(second.takeError()).front().text;
  if (!(*first == *second)) return out + " means something else";
  return out;
}

TEST(Gspmd, RoundTrips) {
  for (const Mesh& m : {mesh({8}), mesh({4, 2}), mesh({2, 2, 2})}) {
    for (std::string text :
         {"{devices=[8,1]<=[8]}", "{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "{devices=[2,4]<=[4,2]T(1,0)}",
          "{devices=[1,2,4]<=[8] last_tile_dim_replicate}", "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
          "{devices=[2,2,2]<=[2,2,2]T(0,2,1)}", "{replicated}", "{manual}", "{unknown}", "{maximal device=5}",
          "{devices=[2,1,4]<=[8] last_tile_dims={manual}}", "{devices=[1,2,2,2]<=[8] last_tile_dims={manual, replicated}}",
          "{devices=[2,2,2]<=[4,2]T(1,0) last_tile_dims={unreduced}}",
          "{devices=[2,1,2,2]<=[2,2,2]T(1,0,2) last_tile_dims={manual, unreduced}}", "{unknown shard_as 3}",
          "{devices=[8,1]<=[8] shard_like 2}", "{replicated shard_as 0}"}) {
      EXPECT_EQ(again(m, text), text);
    }
  }
}

TEST(Gspmd, ListsAreWrittenAsIotas) {
  EXPECT_EQ(again(mesh({4}), "{devices=[2,2]0,1,2,3}"), "{devices=[2,2]<=[4]}");
  EXPECT_EQ(again(mesh({4}), "{devices=[2,2]0,2,1,3}"), "{devices=[2,2]<=[2,2]T(1,0)}");
  EXPECT_EQ(again(mesh({2}), "{devices=[2,1]0,1}"), "{devices=[2,1]<=[2]}");
  EXPECT_EQ(again(mesh({1}), "{devices=[1,1]0}"), "{replicated}");
  // The order inside of a group that replicates means nothing.
  EXPECT_EQ(again(mesh({4}), "{devices=[2,1,2]1,0,3,2 last_tile_dim_replicate}"),
            "{devices=[2,1,2]<=[4] last_tile_dim_replicate}");
  EXPECT_EQ(again(mesh({4}), "{devices=[2,1,2]0,1,2,3 last_tile_dims={replicated} metadata={op_name=\"a\"}}"),
            "{devices=[2,1,2]<=[4] last_tile_dim_replicate}");
  EXPECT_EQ(again(mesh({8}), "{devices=[1,1,8]<=[8] last_tile_dim_replicate}"), "{replicated}");
}

TEST(Gspmd, NamedShardingsAreTilesOfTheirMesh) {
  const Mesh m = mesh({2, 4});
  for (auto [text, tiles] : std::initializer_list<std::pair<const char*, const char*>>{
           {"{mesh['a'=2,'b'=4], [{'a'}, {'b'}]}", "{devices=[2,4]<=[8]}"},
           {"{mesh['a'=2,'b'=4], [{'b'}, {}]}", "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"},
           {"{mesh[a=2,b=4], [{b:(2)2, a}, {}]}", "{devices=[4,1,2]<=[4,2]T(1,0) last_tile_dim_replicate}"},
           {"{mesh['a'=8], [{'a':(1)2}, {'a':(2)4}], metadata={op_name=\"f\"}}", "{devices=[2,4]<=[8]}"},
           {"{mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)), [{'b'}, {'a'}]}", "{devices=[2,4]<=[8]}"},
           {"{mesh['a'=2,'b'=4], device_ids=(0,2,4,6,1,3,5,7), [{'b'}, {'a'}]}", "{devices=[4,2]<=[8]}"},
           {"{mesh['a'=2,'b'=4], [{'a'}], replicated={'b':(1)2}, unreduced={'b':(2)2}}",
            "{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={unreduced, replicated}}"},
           {"{mesh['a'=2,'b'=4], [{'a'}], manual={'b'}}", "{devices=[2,4]<=[8] last_tile_dims={manual}}"},
           {"{mesh['a'=2,'b'=4], replicated}", "{replicated}"},
           {"{mesh[], replicated}", "{replicated}"},
           {"{mesh['a'=2,'b'=4], [{}, {}], manual={'a', 'b'}}", "{manual}"},
           {"{mesh['a'=2,'b'=4], manual}", "{manual}"},
           {"{single_device[device_id=5]}", "{maximal device=5}"},
           {"{maximal_mesh[device_id=5]}", "{maximal device=5}"}}) {
    EXPECT_EQ(again(m, text), tiles) << text;
  }
}

TEST(Gspmd, ANamedShardingMayLeaveDimensionsOpen) {
  auto g = parseGspmd(mesh({2, 4}), "{mesh['a'=2,'b'=4], [{'a'}, {'b', ?}, {?}]}", "");
  ASSERT_TRUE(bool(g));
  EXPECT_EQ(g->open, (llvm::SmallVector<int64_t, 2>{1, 2}));
  EXPECT_EQ(product(g->dims[1]), 4);
}

TEST(Gspmd, NamedShardingsRefused) {
  const Mesh m = mesh({2, 4});
  for (auto [text, why] : std::initializer_list<std::pair<const char*, const char*>>{
           {"{mesh['a'=2,'a'=4], replicated}", "axis 'a' stands twice in it"},
           {"{mesh['a'=2,'b'], replicated}", "expected 'name'=size"},
           {"{mesh['a'=2,'b'=0], replicated}", "expected 'name'=size"},
           {"{mesh['a'=4294967296,'b'=4294967296], replicated}", "more than 2^24 devices"},
           {"{mesh['a'=2 'b'=4], replicated}", "expected ',' or ']'"},
           {"{mesh['a'=2,'b'=4], device_ids=([4,2]T(1,1)), replicated}", "does not permute the iota shape"},
           {"{mesh['a'=2,'b'=4], device_ids=(0,1,2), replicated}", "devices are listed for"},
           {"{mesh['a'=2,'b'=4], device_ids=(0,1,2,3,4,5,6,7, replicated}", "expected ')'"},
           {"{mesh['a'=2,'b'=4], [{'c'}]}", "has no axis 'c'"},
           {"{mesh['a'=2,'b'=4], [{'a'}, {'a'}]}", "uses axis 'a' twice"},
           {"{mesh['a'=2,'b'=4], [{'a'}], manual={'a'}}", "uses axis 'a' twice"},
           {"{mesh['a'=2,'b'=4], [{'b':(1)3}]}", "does not divide"},
           {"{mesh['a'=2,'b'=4], [{'a'}], unreduced=max{'b'}}", "expected"},
           {"{mesh['a'=2,'b'=4], [{'a'}", "expected"},
           {"{mesh['a'=2,'b'=4], shared}", "expected"},
           {"{mesh['a'=2,'b'=2], [{'a'}]}", "4 devices, the mesh has 8"}}) {
    EXPECT_NE(again(m, text).find(why), std::string::npos) << text << "\n" << again(m, text);
  }
}

TEST(Gspmd, TheMeshOfNamedShardingsKeepsItsNames) {
  EXPECT_EQ(printMesh(meshOfGspmd({"{mesh['a'=2,'b'=4], [{'b'}]}", "{replicated}", "{devices=[2,4]<=[8]}"})), "a=2,b=4");
  EXPECT_EQ(printMesh(meshOfGspmd({"{mesh['a'=2,'b'=4], [{'b':(1)2}]}"})), "d0=2,d1=2,d2=2");
  EXPECT_EQ(meshOfGspmd({"{mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)), [{'b'}]}"}).device_ids,
            (std::vector<int64_t>{0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST(Gspmd, EveryTilingOfSmallMeshesRoundTrips) {
  // All orders of the atoms of eight devices, cut into two dimensions and a rest, for lists and iotas alike.
  int tried = 0;
  for (const Mesh& m : {mesh({8}), mesh({4, 2}), mesh({2, 2, 2})}) {
    int order[] = {0, 1, 2};
    do {
      for (int a = 0; a <= 3; ++a) {
        for (int b = a; b <= 3; ++b) {
          Gspmd g;
          g.kind = GspmdKind::kTiled;
          g.dims.resize(2);
          for (int k = 0; k < b; ++k) {
            Axes part;
            ASSERT_TRUE(axesOfStride(m, int64_t{4} >> order[k], 2, part));
            append(g.dims[k < a ? 0 : 1], part);
          }
          if (b == 0) continue;
          std::string text = printGspmd(m, g);
          auto back = parseGspmd(m, text, "");
          ASSERT_TRUE(bool(back)) << text;
          EXPECT_EQ(g, *back) << text;
          ++tried;
        }
      }
    } while (std::next_permutation(order, order + 3));
  }
  EXPECT_EQ(tried, 3 * 6 * 9);
}

TEST(Gspmd, AnOrderOfDevices) {
  Mesh m = meshOfGspmd({"{devices=[2,2]0,1,3,2}", "{devices=[4,1]0,1,3,2}"});
  ASSERT_EQ(m.numDevices(), 4);
  EXPECT_EQ(m.device_ids, (std::vector<int64_t>{0, 1, 3, 2}));
  EXPECT_EQ(again(m, "{devices=[2,2]0,1,3,2}"), "{devices=[2,2]0,1,3,2}");
  EXPECT_EQ(again(m, "{devices=[1,2,2]0,1,3,2 last_tile_dim_replicate}"),
            "{devices=[1,2,2]0,1,3,2 last_tile_dim_replicate}");
  EXPECT_EQ(again(m, "{devices=[2,2]0,3,1,2}"), "{devices=[2,2]0,3,1,2}");  // transposed over that order
  EXPECT_NE(again(m, "{devices=[4]<=[4]}").find("no iota of any shape"), std::string::npos);
}

TEST(Gspmd, TheMeshFollowsTheCuts) {
  EXPECT_EQ(printMesh(meshOfGspmd({"{devices=[8,1]<=[8]}", "{replicated}"})), "device=8");
  EXPECT_EQ(printMesh(meshOfGspmd({"{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "{devices=[2,4]<=[4,2]T(1,0)}"})),
            "d0=4,d1=2");
  EXPECT_EQ(printMesh(meshOfGspmd({"{{devices=[2,4]<=[8]}, {devices=[4,2]<=[8]}}"})), "d0=2,d1=2,d2=2");
  EXPECT_EQ(printMesh(meshOfGspmd({"{devices=[2,3]<=[6]}", "{devices=[3,2]<=[6]}"})), "device=6");
}

TEST(Gspmd, BadStringsAreRefused) {
  for (std::string text : {"devices=[2]<=[2]", "{devices=[2,2]<=[2,2]T(0,0)}", "{devices=[4]0,1,2,2}", "{devices=[4]0,1,2}",
                           "{devices=[4]<=[3]}", "{devices=[0,4]<=[4]}", "{devices=[4]<=[2,2]T(1)}", "{maximal}", "{tiled}",
                           "{devices=[4]<=[4] last_tile_dims={other}}", "{devices=[2]<=[2]}", "{unknown shard_as}",
                           "{devices=[4]<=[4] more}", "{devices=[2,1,2]<=[4] last_tile_dims={manual}", "{devices=[4]0,1,2,9}"}) {
    EXPECT_NE(again(mesh({4}), text).find("refused: mhlo.sharding"), std::string::npos) << text << again(mesh({4}), text);
  }
}

TEST(Gspmd, TuplesAreSplit) {
  auto parts = splitTuple("{{devices=[2,2]<=[4]}, {replicated}, {devices=[2,1,2]<=[4] last_tile_dims={manual}}}");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1], "{replicated}");
  EXPECT_EQ(parts[2], "{devices=[2,1,2]<=[4] last_tile_dims={manual}}");
  EXPECT_EQ(splitTuple("{manual}").size(), 1u);
}

}  // namespace
}  // namespace tpu::sharding
