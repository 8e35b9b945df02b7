// Tile assignments survive the way to mesh axes and back.
#include "tpu/sharding/gspmd.h"

#include <gtest/gtest.h>

namespace tpu::sharding {
namespace {

Mesh mesh(std::initializer_list<int64_t> sizes) {
  Mesh m;
  for (int64_t n : sizes) m.axes.push_back({std::string(1, static_cast<char>('x' + m.axes.size())), n});
  return m;
}

std::string again(const Mesh& m, const std::string& text) {
  auto g = parseGspmd(m, text, "");
  if (!g) return "refused: " + llvm::toString(g.takeError());
  return printGspmd(m, g->dims);
}

TEST(Gspmd, RoundTrips) {
  for (const Mesh& m : {mesh({8}), mesh({4, 2}), mesh({2, 2, 2})}) {
    for (std::string text :
         {"{devices=[8,1]<=[8]}", "{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "{devices=[2,4]<=[4,2]T(1,0)}",
          "{devices=[1,2,4]<=[8] last_tile_dim_replicate}", "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
          "{devices=[2,2,2]<=[2,2,2]T(0,2,1)}", "{replicated}"}) {
      EXPECT_EQ(again(m, text), text);
    }
  }
}

TEST(Gspmd, ListsAreWrittenAsIotas) {
  EXPECT_EQ(again(mesh({4}), "{devices=[2,2]0,1,2,3}"), "{devices=[2,2]<=[4]}");
  EXPECT_EQ(again(mesh({4}), "{devices=[2,2]0,2,1,3}"), "{devices=[2,2]<=[2,2]T(1,0)}");
}

}  // namespace
}  // namespace tpu::sharding
