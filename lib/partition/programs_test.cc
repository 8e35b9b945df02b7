// Small programs with known traps: values against the whole program, traffic and sizes against what is
// possible.
#include <gtest/gtest.h>

#include "program_text_test_util.h"

namespace tpu::partition {
namespace {

Comparison run(const std::string& text, double rtol = 1e-4) {
  Comparison c = compareText(text, "test.mlir", {}, 11, rtol);
  EXPECT_EQ(c.problem, "") << text;
  return c;
}

TEST(Programs, ReshapeSplitsAShardedDim) {
  std::string body = R"(
    %0 = stablehlo.reshape %arg0 : (tensor<8x16xi32>) -> tensor<2x4x16xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x4x16xi32>, tensor<i32>) -> tensor<2x16xi32>
    return %1 : tensor<2x16xi32>
)";
  for (std::string result : {"{}, {}", "{?}, {?}", "{\"a\":(1)2}, {}", "{}, {\"b\"}"}) {
    Comparison c = run(program("\"a\"=4, \"b\"=2", "%arg0: tensor<8x16xi32> " + sharded("{\"a\"}, {}"),
                               "tensor<2x16xi32> " + sharded(result), body));
    EXPECT_LT(largestValue(c.partitioned), 128);
  }
}

TEST(Programs, ReshardBetweenFullShardings) {
  std::string body = R"(
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{}, {"x", "y"}, {}]> : tensor<16x16x16xi32>
    return %0 : tensor<16x16x16xi32>
)";
  Comparison c =
      run(program("\"x\"=4, \"y\"=2", "%arg0: tensor<16x16x16xi32> " + sharded("{\"y\"}, {}, {\"x\"}"),
                  "tensor<16x16x16xi32> " + sharded("{}, {\"x\", \"y\"}, {}"), body));
  EXPECT_EQ(largestValue(c.partitioned), 512);
  EXPECT_EQ(count(c.partitioned, hlo::Opcode::all_gather), 0u);
}

TEST(Programs, DotWantedOnTheOtherMeshOrder) {
  std::string body = R"(
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
    return %0 : tensor<16x16xi32>
)";
  Comparison c = run(program("\"p\"=4, \"q\"=2",
                             "%arg0: tensor<16x16xi32> " + sharded("{\"p\"}, {}") +
                                 ", %arg1: tensor<16x16xi32> " + sharded("{}, {\"q\"}"),
                             "tensor<16x16xi32> " + sharded("{\"p\":(1)2}, {\"p\":(2)2, \"q\"}"), body));
  EXPECT_LE(largestValue(c.partitioned), 128);
}

TEST(Programs, ConcatenateOnOneAxisOfTwo) {
  std::string body = R"(
    %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<4xi32>, tensor<12xi32>) -> tensor<16xi32>
    return %0 : tensor<16xi32>
)";
  for (std::string result : {"{\"data\"}", "{\"data\", \"model\"}", "{}"}) {
    run(program(
        "\"data\"=4, \"model\"=2",
        "%arg0: tensor<4xi32> " + sharded("{\"data\"}") + ", %arg1: tensor<12xi32> " + sharded("{\"data\"}"),
        "tensor<16xi32> " + sharded(result), body));
  }
}

TEST(Programs, ShiftByOneThenSetTheLastRow) {
  std::string body = R"(
    %0 = stablehlo.slice %arg0 [1:16, 0:16] : (tensor<16x16xi32>) -> tensor<15x16xi32>
    %c = stablehlo.constant dense<7> : tensor<i32>
    %1 = stablehlo.pad %0, %c, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<15x16xi32>, tensor<i32>) -> tensor<16x16xi32>
    return %1 : tensor<16x16xi32>
)";
  for (std::string mesh : {"\"r\"=8, \"c\"=1", "\"r\"=2, \"c\"=4", "\"r\"=4, \"c\"=2", "\"r\"=1, \"c\"=8"}) {
    std::string s = sharded("{\"r\"}, {\"c\"}");
    Comparison c = run(program(mesh, "%arg0: tensor<16x16xi32> " + s, "tensor<16x16xi32> " + s, body));
    EXPECT_EQ(count(c.partitioned, hlo::Opcode::all_gather), 0u) << mesh;
  }
}

TEST(Programs, ScatterAddIntoAShardedTable) {
  std::string body = R"(
    %c = stablehlo.constant dense<0> : tensor<8xi32>
    %0 = stablehlo.reshape %arg0 : (tensor<8xi32>) -> tensor<8x1xi32>
    %1 = "stablehlo.scatter"(%c, %0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }) : (tensor<8xi32>, tensor<8x1xi32>, tensor<8xi32>) -> tensor<8xi32>
    return %1 : tensor<8xi32>
)";
  std::string args =
      "%arg0: tensor<8xi32> " + sharded("{\"x\"}") + ", %arg1: tensor<8xi32> " + sharded("{\"x\"}");
  for (std::string result : {"{\"x\"}", "{}"})
    run(program("\"x\"=4", args, "tensor<8xi32> " + sharded(result), body));
  // The table sharded, the updates not: every device takes the rows in its range.
  args = "%arg0: tensor<8xi32> " + sharded("{}") + ", %arg1: tensor<8xi32> " + sharded("{}");
  Comparison c = run(program("\"x\"=4", args, "tensor<8xi32> " + sharded("{\"x\"}"), body));
  EXPECT_EQ(c.wire_bytes, 0);
}

TEST(Programs, LookUpInAShardedTable) {
  std::string body = R"(
    %0 = stablehlo.reshape %arg1 : (tensor<6xi32>) -> tensor<6x1xi32>
    %1 = "stablehlo.gather"(%arg0, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 64>}> : (tensor<10x64xi32>, tensor<6x1xi32>) -> tensor<6x64xi32>
    return %1 : tensor<6x64xi32>
)";
  run(program(
      "\"x\"=4",
      "%arg0: tensor<10x64xi32> " + sharded("{\"x\"}, {}") + ", %arg1: tensor<6xi32> " + sharded("{}"),
      "tensor<6x64xi32> " + sharded("{}, {}"), body));
  Comparison c = run(program(
      "\"x\"=4",
      "%arg0: tensor<10x64xi32> " + sharded("{}, {\"x\"}") + ", %arg1: tensor<6xi32> " + sharded("{}"),
      "tensor<6x64xi32> " + sharded("{}, {\"x\"}"), body));
  EXPECT_EQ(c.wire_bytes, 0);
}

TEST(Programs, TopKAlongAShardedDim) {
  for (int k : {1, 4, 6}) {
    std::string shape = "2x" + std::to_string(k);
    std::string body = "    %v, %i = chlo.top_k(%arg0, k = " + std::to_string(k) +
                       ") : tensor<2x32xi32> -> (tensor<" + shape + "xi32>, tensor<" + shape +
                       "xi32>)\n    return %v, %i : tensor<" + shape + "xi32>, tensor<" + shape + "xi32>\n";
    Comparison c = run(program(
        "\"x\"=8", "%arg0: tensor<2x32xi32> " + sharded("{}, {\"x\"}"),
        "tensor<" + shape + "xi32> " + sharded("{}, {}") + ", tensor<" + shape + "xi32> " + sharded("{}, {}"),
        body));
    EXPECT_LE(c.wire_bytes, 2 * 2 * 4 * std::min(k, 4) * 7);
  }
}

TEST(Programs, PrefixSumAlongAShardedDim) {
  std::string body = R"(
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = "stablehlo.reduce_window"(%arg0, %c) <{padding = dense<[[0, 0], [15, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 16>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }) : (tensor<2x16xi32>, tensor<i32>) -> tensor<2x16xi32>
    return %0 : tensor<2x16xi32>
)";
  std::string s = sharded("{\"y\"}, {\"x\"}");
  run(program("\"x\"=4, \"y\"=2", "%arg0: tensor<2x16xi32> " + s, "tensor<2x16xi32> " + s, body));
}

TEST(Programs, GroupedConvolutionBatchSharded) {
  std::string body = R"(
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<8x4x4x4xf32>, tensor<3x3x2x4xf32>) -> tensor<8x4x4x4xf32>
    return %0 : tensor<8x4x4x4xf32>
)";
  std::string kernel = ", %arg1: tensor<3x3x2x4xf32> ";
  Comparison c = run(program(
      "\"x\"=8",
      "%arg0: tensor<8x4x4x4xf32> " + sharded("{\"x\"}, {}, {}, {}") + kernel + sharded("{}, {}, {}, {}"),
      "tensor<8x4x4x4xf32> " + sharded("{\"x\"}, {}, {}, {}"), body));
  EXPECT_EQ(c.collectives, 0u);
  // Groups over devices.
  c = run(program("\"x\"=2",
                  "%arg0: tensor<8x4x4x4xf32> " + sharded("{}, {}, {}, {\"x\"}") + kernel +
                      sharded("{}, {}, {}, {\"x\"}"),
                  "tensor<8x4x4x4xf32> " + sharded("{}, {}, {}, {\"x\"}"), body));
  EXPECT_EQ(c.collectives, 0u);
}

TEST(Programs, ConstraintThatDoesNotDivide) {
  std::string body = R"(
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}]> : tensor<17x16xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<17x16xi32>, tensor<i32>) -> tensor<16xi32>
    %n = stablehlo.negate %0 : tensor<17x16xi32>
    %l = stablehlo.constant dense<-2147483648> : tensor<i32>
    %2 = stablehlo.reduce(%n init: %l) applies stablehlo.maximum across dimensions = [0] : (tensor<17x16xi32>, tensor<i32>) -> tensor<16xi32>
    return %1, %2 : tensor<16xi32>, tensor<16xi32>
)";
  run(program("\"x\"=8", "%arg0: tensor<17x16xi32>",
              "tensor<16xi32> " + sharded("{}") + ", tensor<16xi32> " + sharded("{}"), body));
}

std::string conv1d(const std::string& window, int out) {
  std::string y = "tensor<1x" + std::to_string(out) + "x1xf32>";
  return "    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window "
         "= {" +
         window +
         "} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x12x1xf32>, "
         "tensor<5x1x1xf32>) -> " +
         y + "\n    return %0 : " + y + "\n";
}

TEST(Programs, SpatiallyShardedConvolution) {
  std::string args = "%arg0: tensor<1x12x1xf32> " + sharded("{}, {\"x\"}, {}") +
                     ", %arg1: tensor<5x1x1xf32> " + sharded("{}, {}, {}");
  run(program(
      "\"x\"=4", args, "tensor<1x6x1xf32> " + sharded("{}, {\"x\"}, {}"),
      conv1d("stride = [2], pad = [[1, 3]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]", 6)));
  run(program(
      "\"x\"=4", args, "tensor<1x12x1xf32> " + sharded("{}, {\"x\"}, {}"),
      conv1d("stride = [1], pad = [[4, 4]], lhs_dilate = [1], rhs_dilate = [2], reverse = [false]", 12)));
}

TEST(Programs, DonatedInputOfAnotherSharding) {
  std::string text =
      "module @m {\n  sdy.mesh @mesh = <[\"x\"=2]>\n  func.func public @main(%arg0: tensor<16xi32> "
      "{tf.aliasing_output = 0 : i32, sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> "
      "(tensor<16xi32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) {\n    %c = stablehlo.constant "
      "dense<1> : tensor<16xi32>\n"
      "    %0 = stablehlo.add %arg0, %c : tensor<16xi32>\n    return %0 : tensor<16xi32>\n  }\n}\n";
  Comparison c = run(text);
  EXPECT_EQ(c.partitioned.func(c.partitioned.entry).arg_ports[0].alias, -1);
}

TEST(Programs, DynamicSliceAndUpdateOnAShardedDim) {
  std::string body = R"(
    %0 = stablehlo.multiply %arg1, %k : tensor<i32>
    %s = stablehlo.subtract %0, %five : tensor<i32>
    %1 = stablehlo.dynamic_slice %arg0, %s, sizes = [4] : (tensor<16xi32>, tensor<i32>) -> tensor<4xi32>
    %2 = stablehlo.dynamic_update_slice %arg0, %arg2, %s : (tensor<16xi32>, tensor<4xi32>, tensor<i32>) -> tensor<16xi32>
    return %1, %2 : tensor<4xi32>, tensor<16xi32>
)";
  for (int k : {0, 1, 2, 3, 5}) {
    std::string consts = "    %k = stablehlo.constant dense<" + std::to_string(k) +
                         "> : tensor<i32>\n    %five = stablehlo.constant dense<5> : tensor<i32>\n";
    for (int seed = 0; seed < 3; ++seed) {
      std::string text =
          program("\"x\"=4",
                  "%arg0: tensor<16xi32> " + sharded("{\"x\"}") + ", %arg1: tensor<i32> " + sharded("") +
                      ", %arg2: tensor<4xi32> " + sharded("{}"),
                  "tensor<4xi32> " + sharded("{}") + ", tensor<16xi32> " + sharded("{\"x\"}"), consts + body);
      Comparison c = compareText(text, "test.mlir", {}, seed);
      EXPECT_EQ(c.problem, "");
      EXPECT_EQ(count(c.partitioned, hlo::Opcode::all_gather), 0u);
    }
  }
}

TEST(Programs, LoopCarriesAShardedValue) {
  std::string body = R"(
    %c = stablehlo.constant dense<0> : tensor<i32>
    %z = stablehlo.constant dense<0.0> : tensor<8x8xf32>
    %0:3 = stablehlo.while(%i = %c, %acc = %z, %x = %arg0) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    cond {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %d = stablehlo.dot_general %x, %arg1, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %a = stablehlo.add %acc, %d : tensor<8x8xf32>
      stablehlo.return %j, %a, %d : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    }
    return %0#1 : tensor<8x8xf32>
)";
  std::string args = "%arg0: tensor<8x8xf32> " + sharded("{\"x\"}, {}") + ", %arg1: tensor<8x8xf32> ";
  Comparison c =
      run(program("\"x\"=4", args + sharded("{}, {}"), "tensor<8x8xf32> " + sharded("{\"x\"}, {}"), body));
  EXPECT_EQ(c.collectives, 0u);
  run(program("\"x\"=2, \"y\"=2", args + sharded("{}, {\"y\"}"),
              "tensor<8x8xf32> " + sharded("{\"x\"}, {\"y\"}"), body));
}

TEST(Programs, BorderCallsOfTheOlderForm) {
  std::string text = R"(module @m {
  func.func public @main(%arg0: tensor<4x4xf32> {mhlo.sharding = "{replicated}"}) -> (tensor<4x4xf32>) {
    %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[2,1]0,1}"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %2 = stablehlo.negate %1 : tensor<2x4xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{manual}"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[2,1]0,1}"} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    return %4 : tensor<4x4xf32>
  }
}
)";
  Collected sink;
  Comparison c = compareText(text, "test.mlir", {}, 3);
  // The evaluator does not run the borders themselves; the partitioned form has none.
  EXPECT_EQ(count(c.partitioned, hlo::Opcode::custom_call), 0u) << c.problem;
}

}  // namespace
}  // namespace tpu::partition
