// Programs of which it is known how little they need to send: values against the whole program, and the wires.
#include <gtest/gtest.h>

#include "program_text_test_util.h"

namespace tpu::partition {
namespace {

struct Sent {
  int64_t bytes = 0;
  hlo::Module program;
};

Sent run(const std::string& mesh, const std::string& args, const std::string& results, const std::string& body) {
  const std::string text = program(mesh, args, results, body);
  Comparison c = compareText(text, "test.mlir", {}, 23);
  EXPECT_EQ(c.problem, "") << text;
  return {c.wire_bytes, std::move(c.partitioned)};
}

TEST(Wires, ADimensionThatMustBeWholeGivesItsAxesToAnother) {
  std::string s = sharded("{}, {\"x\"}");
  // Two exchanges of three quarters of a shard, not three shards.
  EXPECT_EQ(run("\"x\"=4", "%arg0: tensor<8x16xi32> " + s, "tensor<8x16xi32> " + s, R"(
    %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }) : (tensor<8x16xi32>) -> tensor<8x16xi32>
    return %0 : tensor<8x16xi32>
)").bytes, 2 * 96);
  EXPECT_EQ(run("\"x\"=4", "%arg0: tensor<8x16xcomplex<f32>> " + s, "tensor<8x16xcomplex<f32>> " + s, R"(
    %0 = stablehlo.fft %arg0, type = FFT, length = [16] : (tensor<8x16xcomplex<f32>>) -> tensor<8x16xcomplex<f32>>
    return %0 : tensor<8x16xcomplex<f32>>
)").bytes, 2 * 192);
}

TEST(Wires, AResultThatNobodyReadsIsNotMoved) {
  EXPECT_EQ(run("\"x\"=4", "%arg0: tensor<8x16xi32> " + sharded("{}, {\"x\"}"), "tensor<8x16xi32> " + sharded("{}, {\"x\"}"), R"(
    %i = stablehlo.iota dim = 1 : tensor<8x16xi32>
    %0:2 = "stablehlo.sort"(%arg0, %i) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %d: tensor<i32>, %e: tensor<i32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }) : (tensor<8x16xi32>, tensor<8x16xi32>) -> (tensor<8x16xi32>, tensor<8x16xi32>)
    return %0#1 : tensor<8x16xi32>
)").bytes, 2 * 96);
}

// Fives are taken for threes: elements that tie are not the same, so positions must travel along.
TEST(Wires, ASortByAnotherValueStaysStable) {
  EXPECT_GT(run("\"x\"=8", "%arg0: tensor<1024xi32>", "tensor<1024xi32>", R"(
    %i = stablehlo.constant dense<7> : tensor<1024xi32>
    %n = stablehlo.and %arg0, %i : tensor<1024xi32>
    %0 = sdy.sharding_constraint %n <@mesh, [{"x"}]> : tensor<1024xi32>
    %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %five = stablehlo.constant dense<5> : tensor<i32>
      %three = stablehlo.constant dense<3> : tensor<i32>
      %e = stablehlo.compare EQ, %a, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %f = stablehlo.compare EQ, %b, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %x = stablehlo.select %e, %three, %a : tensor<i1>, tensor<i32>
      %y = stablehlo.select %f, %three, %b : tensor<i1>, tensor<i32>
      %c = stablehlo.compare LT, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }) : (tensor<1024xi32>) -> tensor<1024xi32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{"x"}]> : tensor<1024xi32>
    return %2 : tensor<1024xi32>
)").bytes, 0);
}

TEST(Wires, ALongSortMergesShards) {
  // Pairs of shards, both ways; positions of two bytes where the last shard is not full.
  for (auto [shards, size, type, kind, sent_per_device] : {std::tuple(8, 1024, "i32", ", SIGNED", 19 * 2 * 128 * 4 / 8), std::tuple(8, 1024, "f32", ", TOTALORDER", 19 * 2 * 128 * 4 / 8),
                                                          std::tuple(16, 8188, "f32", ", FLOAT", 63 * 2 * 512 * 6 / 16)}) {
    std::string all = "tensor<" + std::to_string(size) + "x" + type + ">", one = std::string("tensor<") + type + ">";
    Sent sent = run("\"x\"=" + std::to_string(shards), "%arg0: " + all, all, "    %0 = sdy.sharding_constraint %arg0 <@mesh, [{\"x\"}]> : " + all + R"(
    %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: )" + one + ", %b: " + one + R"():
      %c = stablehlo.compare GT, %a, %b)" + kind + " : (" + one + ", " + one + R"() -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }) : ()" + all + ") -> " + all + "\n    %2 = sdy.sharding_constraint %1 <@mesh, [{\"x\"}]> : " + all + R"(
    %3 = stablehlo.slice %2 [0:1] : ()" + all + ") -> tensor<1x" + type + ">\n    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<1x" + type + ">) -> " +
                        all + "\n    return %4 : " + all + "\n");
    EXPECT_EQ(count(sent.program, hlo::Opcode::all_gather), 0u) << kind;
    EXPECT_LE(sent.bytes, sent_per_device + 16) << kind;
  }
}

// As JAX writes it: the init value is a broadcast of a scalar to a scalar.
TEST(Wires, ARunningTotalSendsTotals) {
  std::string s = sharded("{\"x\"}, {}");
  EXPECT_EQ(run("\"x\"=4", "%arg0: tensor<64x8xi32> " + s, "tensor<64x8xi32> " + s, R"(
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[63, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 64, 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %2 = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }) : (tensor<64x8xi32>, tensor<i32>) -> tensor<64x8xi32>
    return %1 : tensor<64x8xi32>
)").bytes, 3 * 8 * 4);
}

TEST(Wires, APaddedValueOfOddSizeStaysSharded) {
  std::string s = sharded("{\"x\"}");
  Sent sent = run("\"x\"=4", "%arg0: tensor<64xi32> " + s, "tensor<64xi32> " + s, R"(
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.pad %arg0, %c, low = [1], high = [1], interior = [0] : (tensor<64xi32>, tensor<i32>) -> tensor<66xi32>
    %1 = "stablehlo.reduce_window"(%0, %c) <{window_dimensions = array<i64: 3>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %2 = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }) : (tensor<66xi32>, tensor<i32>) -> tensor<64xi32>
    return %1 : tensor<64xi32>
)");
  EXPECT_LE(sent.bytes, 32);
  EXPECT_EQ(count(sent.program, hlo::Opcode::all_gather), 0u);
}

TEST(Wires, ARollSendsWhatCrossesBorders) {
  for (auto [shards, size, by] : {std::tuple(4, 16, 1), std::tuple(4, 16, 8), std::tuple(2, 16, 3), std::tuple(4, 13, 4)}) {
    std::string all = "tensor<" + std::to_string(size) + "xi32>", s = sharded("{\"x\"}");
    auto n = [](int64_t i) { return std::to_string(i); };
    auto piece = [&](int64_t from, int64_t to) { return " = stablehlo.slice %0 [" + n(from) + ":" + n(to) + "] : (" + all + ") -> tensor<" + n(to - from) + "xi32>\n"; };
    Sent sent = run("\"x\"=" + n(shards), "%arg0: " + all, all,
                    "    %0 = sdy.sharding_constraint %arg0 <@mesh, [{\"x\"}]> : " + all + "\n    %1" + piece(size - by, size) + "    %2" +
                        piece(0, size - by) + "    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<" + n(by) + "xi32>, tensor<" + n(size - by) +
                        "xi32>) -> " + all + "\n    %4 = sdy.sharding_constraint %3 <@mesh, [{\"x\"}]> : " + all + "\n    %5 = stablehlo.negate %4 : " +
                        all + "\n    %6 = sdy.sharding_constraint %5 <@mesh, [{\"x\"}]> : " + all + "\n    return %6 : " + all + "\n");
    // The result is wanted whole at the end; all else is one border.
    const int64_t shard = (size + shards - 1) / shards;
    EXPECT_LE(sent.bytes, 4 * (by + shard * (shards - 1))) << shards << ' ' << by;
  }
}

TEST(Wires, ASpreadOperandSendsWhatItsWindowsTouch) {
  // The window begins between two elements: only the left neighbour has one that is needed.
  EXPECT_EQ(run("\"x\"=4", "%arg0: tensor<1x16x1xf32> " + sharded("{}, {\"x\"}, {}") + ", %arg1: tensor<3x1x1xf32>",
                "tensor<1x32x1xf32> " + sharded("{}, {\"x\"}, {}"), R"(
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[2, 1]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x1xf32>, tensor<3x1x1xf32>) -> tensor<1x32x1xf32>
    return %0 : tensor<1x32x1xf32>
)").bytes, 4 * 3 / 4);
}

TEST(Wires, APartOfAnAxisTakesThePlaceOfASmallerOne) {
  // Every device keeps an eighth at least: half a shard is exchanged in pairs, then half of the devices swap.
  EXPECT_EQ(run("\"x\"=4, \"y\"=2", "%arg0: tensor<16x32xi32> " + sharded("{\"x\"}, {\"y\"}"), "tensor<32x16xi32> " + sharded("{\"x\"}, {\"y\"}"), R"(
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<16x32xi32>) -> tensor<32x16xi32>
    return %0 : tensor<32x16xi32>
)").bytes, 128 + 128);
}

// The gradient of a kernel contracts over rows: each device sums over its own ones, with the borders of the other operand.
TEST(Wires, KernelGradientsSumOverOwnRows) {
  std::string s = sharded("{}, {\"x\"}, {}");
  for (auto [size, window] : {std::pair(16, "pad = [[1, 1]]"), std::pair(8, "pad = [[0, 1]], rhs_dilate = [2]")}) {
    std::string cotangent = "tensor<2x" + std::to_string(size) + "x3xi32>";
    Sent sent = run("\"x\"=4", "%arg0: tensor<2x16x2xi32> " + s + ", %arg1: " + cotangent + " " + s, "tensor<3x2x3xi32>", R"(
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f], window = {)" + std::string(window) +
                    R"(} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x16x2xi32>, )" + cotangent + R"() -> tensor<3x2x3xi32>
    return %0 : tensor<3x2x3xi32>
)");
    EXPECT_EQ(count(sent.program, hlo::Opcode::all_gather), 0u) << window;
    EXPECT_LE(sent.bytes, 2 * 72 * 3 / 4 + 2 * 16 * 3 / 4) << window;
  }
}

// Rows of a cache written and read at a place of their own each; the sizes leave padding in the last shard, windows stick
// out of shards and (scatter) of the array.
std::string windowIndices(const std::string& type) {
  return "\n    %i = stablehlo.constant dense<[[0], [1], [5], [11], [9], [3], [12], [7]]> : tensor<8x1x" + type + ">\n";
}

TEST(Wires, WindowsAreWrittenWhereTheyBelong) {
  std::string s = sharded("{}, {\"x\"}");
  for (std::string type : {"i32", "ui8", "i64"}) {
    EXPECT_EQ(run("\"x\"=4", "%arg0: tensor<8x13xi32> " + s + ", %arg1: tensor<8x3xi32>", "tensor<8x13xi32> " + s, windowIndices(type) + R"(
    %0 = "stablehlo.scatter"(%arg0, %i, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      stablehlo.return %b : tensor<i32>
    }) : (tensor<8x13xi32>, tensor<8x1x)" + type + R"(>, tensor<8x3xi32>) -> tensor<8x13xi32>
    return %0 : tensor<8x13xi32>
)").bytes, 0) << type;
  }
}

TEST(Wires, WindowsAreReadByTheirOwners) {
  for (std::string type : {"i32", "ui8"}) {
    Sent sent = run("\"x\"=4", "%arg0: tensor<8x130xi32> " + sharded("{}, {\"x\"}"), "tensor<8x3xi32>", windowIndices(type) + R"(
    %0 = "stablehlo.gather"(%arg0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<8x130xi32>, tensor<8x1x)" + type + R"(>) -> tensor<8x3xi32>
    return %0 : tensor<8x3xi32>
)");
    EXPECT_LE(sent.bytes, 2 * 96) << type;
    EXPECT_LE(largestValue(sent.program), 8 * (33 + 4)) << type;
  }
}

// Offsets of other shards do not fit into the type of the indices.
TEST(Wires, NarrowIndicesIntoAWideTable) {
  EXPECT_GT(run("\"x\"=4", "%arg0: tensor<1000xi32> " + sharded("{\"x\"}"), "tensor<4xi32>", R"(
    %i = stablehlo.constant dense<[[250], [249], [0], [255]]> : tensor<4x1xui8>
    %0 = "stablehlo.gather"(%arg0, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<1000xi32>, tensor<4x1xui8>) -> tensor<4xi32>
    return %0 : tensor<4xi32>
)").bytes, 0);
}

// Windows without elements along a sharded dimension.
TEST(Wires, EmptyWindowsIntoAShardedDimension) {
  const std::string table = "%arg0: tensor<8x6xi32> " + sharded("{\"x\"}, {}");
  run("\"x\"=4", table, "tensor<3x0x6xi32>", R"(
    %i = stablehlo.constant dense<[[1], [9], [-2]]> : tensor<3x1xi32>
    %0 = "stablehlo.gather"(%arg0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 0, 6>}> : (tensor<8x6xi32>, tensor<3x1xi32>) -> tensor<3x0x6xi32>
    return %0 : tensor<3x0x6xi32>
)");
  run("\"x\"=4", table, "tensor<8x6xi32> " + sharded("{\"x\"}, {}"), R"(
    %i = stablehlo.constant dense<[[1], [9], [-2]]> : tensor<3x1xi32>
    %u = stablehlo.constant dense<4> : tensor<3x0x6xi32>
    %0 = "stablehlo.scatter"(%arg0, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %1 = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }) : (tensor<8x6xi32>, tensor<3x1xi32>, tensor<3x0x6xi32>) -> tensor<8x6xi32>
    return %0 : tensor<8x6xi32>
)");
}

// The gradient of pooling: windows overlap, stick out of the array and look over borders of shards. Padding is not selected,
// not even where every element is as small as can be.
TEST(Wires, PoolingGradientsFetchBorders) {
  auto body = [](const std::string& better, const std::string& pad, int windows, bool least) {
    const std::string source = "tensor<" + std::to_string(windows) + "xi32>";
    return R"(
    %c = stablehlo.constant dense<)" + std::to_string(least ? 7 : 0) + R"(> : tensor<i32>
    %k = stablehlo.constant dense<)" + (least ? "-2147483648" : "0") + R"(> : tensor<30xi32>
    %x = stablehlo.)" + (least ? "minimum" : "add") + R"( %arg0, %k : tensor<30xi32>
    %1 = "stablehlo.select_and_scatter"(%x, %arg1, %c) <{padding = dense<)" + pad + R"(> : tensor<1x2xi64>, window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %2 = stablehlo.compare )" + better + R"(, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }, {
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %2 = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }) : (tensor<30xi32>, )" + source + R"(, tensor<i32>) -> tensor<30xi32>
    return %1 : tensor<30xi32>
)";
  };
  std::string s = sharded("{\"x\"}");
  for (auto [better, pad, windows, least] :
       {std::tuple("GE", "[[0, 1]]", 15, false), std::tuple("LT", "[[1, 0]]", 15, false), std::tuple("GT", "[[0, 0]]", 14, false),
        std::tuple("NE", "[[1, 0]]", 15, false), std::tuple("GE", "[[1, 0]]", 15, true), std::tuple("GT", "[[0, 1]]", 15, true)}) {
    Sent sent = run("\"x\"=4", "%arg0: tensor<30xi32> " + s + ", %arg1: tensor<" + std::to_string(windows) + "xi32> " + s,
                    "tensor<30xi32> " + s, body(better, pad, windows, least));
    EXPECT_LE(sent.bytes, 4 * 4) << better << pad;
  }
}

// Read slice by slice in a loop: the whole once where all of it is read, single slices where only few are.
TEST(Wires, ALoopOverAShardedDimensionGetsItWhole) {
  auto sum = [](int trips) {
    return R"(
    %i = stablehlo.constant dense<0> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<1x6xi32>
    %r:3 = stablehlo.while(%k = %i, %x = %arg0, %s = %z) : tensor<i32>, tensor<32x6xi32>, tensor<1x6xi32>
    cond {
      %n = stablehlo.constant dense<)" + std::to_string(trips) + R"(> : tensor<i32>
      %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %row = stablehlo.dynamic_slice %x, %k, %zero, sizes = [1, 6] : (tensor<32x6xi32>, tensor<i32>, tensor<i32>) -> tensor<1x6xi32>
      %t = stablehlo.add %s, %row : tensor<1x6xi32>
      %next = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %next, %x, %t : tensor<i32>, tensor<32x6xi32>, tensor<1x6xi32>
    }
    return %r#2 : tensor<1x6xi32>
)";
  };
  const std::string arg = "%arg0: tensor<32x6xi32> " + sharded("{\"x\"}, {}");
  EXPECT_EQ(run("\"x\"=4", arg, "tensor<1x6xi32>", sum(32)).bytes, 3 * 8 * 6 * 4);
  EXPECT_EQ(run("\"x\"=4", arg, "tensor<1x6xi32>", sum(4)).bytes, 4 * 2 * 3 * 6);
}

}  // namespace
}  // namespace tpu::partition
