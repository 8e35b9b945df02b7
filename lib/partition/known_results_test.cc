// Fifteen small programs on which partitioners have gone wrong, with the values that are right, the traffic that
// suffices and what the report must say.
#include <gtest/gtest.h>

#include <cmath>

#include "program_text_test_util.h"

namespace tpu::partition {
namespace {

using Numbers = std::vector<double>;
using hlo::Opcode;

KnownRun known(const std::string& text, const std::vector<Numbers>& inputs, const std::vector<Numbers>& results,
               double tolerance = 0) {
  KnownRun r = runKnown(text, inputs);
  for (const auto* got : {&r.whole, &r.parts}) {
    EXPECT_EQ(got->size(), results.size()) << text;
    for (size_t i = 0; i < got->size() && i < results.size(); ++i) {
      if (tolerance == 0) {
        EXPECT_EQ((*got)[i], results[i]) << (got == &r.parts ? "partitioned " : "whole ") << "result " << i << "\n" << text;
        continue;
      }
      EXPECT_EQ((*got)[i].size(), results[i].size());
      for (size_t k = 0; k < results[i].size(); ++k) EXPECT_NEAR((*got)[i][k], results[i][k], tolerance) << k;
    }
  }
  return r;
}

int64_t summaryField(const std::string& report, const std::string& field) {
  size_t at = report.rfind("\"" + field + "\":");
  return at == std::string::npos ? -1 : std::strtoll(report.c_str() + at + field.size() + 3, nullptr, 10);
}

TEST(KnownResults, ReshapeThatSplitsAShardedDim) {
  std::string body = R"(
    %0 = stablehlo.reshape %arg0 : (tensor<8x16xi32>) -> tensor<2x4x16xi32>
    %r = sdy.sharding_constraint %0 <@mesh, [SPLIT, {}]> : tensor<2x4x16xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.reduce(%r init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x4x16xi32>, tensor<i32>) -> tensor<2x16xi32>
    return %1 : tensor<2x16xi32>
)";
  Numbers right = counting(16, 96, 4), second = counting(16, 352, 4);
  right.insert(right.end(), second.begin(), second.end());
  for (std::string split : {"{\"a\":(1)2}, {\"a\":(2)2}", "{}, {\"a\"}", "{?}, {?}"}) {
    for (std::string result : {"{}, {}", "{\"a\":(1)2}, {}", "{}, {\"b\"}"}) {
      std::string text = body;
      text.replace(text.find("SPLIT"), 5, split);
      KnownRun r = known(program("\"a\"=4, \"b\"=2", "%arg0: tensor<8x16xi32> " + sharded("{\"a\"}, {}"),
                                 "tensor<2x16xi32> " + sharded(result), text),
                         {counting(128)}, {right});
      EXPECT_LT(largestValue(r.partitioned), 128) << split;
    }
  }
}

TEST(KnownResults, ReshardBetweenTwoFullShardings) {
  std::string body = R"(
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{}, {"x", "y"}, {}]> : tensor<16x16x16xi32>
    return %0 : tensor<16x16x16xi32>
)";
  KnownRun r = known(program("\"x\"=4, \"y\"=2", "%arg0: tensor<16x16x16xi32> " + sharded("{\"y\"}, {}, {\"x\"}"),
                             "tensor<16x16x16xi32> " + sharded("{}, {\"x\", \"y\"}, {}"), body),
                     {counting(4096)}, {counting(4096)});
  EXPECT_EQ(largestValue(r.partitioned), 512);
  EXPECT_EQ(count(r.partitioned, Opcode::all_to_all), 2u);
  EXPECT_LE(count(r.partitioned, Opcode::collective_permute), 1u);
  EXPECT_EQ(count(r.partitioned, Opcode::all_gather), 0u);
}

TEST(KnownResults, DotWantedOnTheOtherMeshOrder) {
  std::string body = R"(
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
    return %0 : tensor<16x16xi32>
)";
  Numbers x, y, d(256);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) x.push_back(i + j), y.push_back(i - j);
  }
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      for (int k = 0; k < 16; ++k) d[16 * i + j] += x[16 * i + k] * y[16 * k + j];
    }
  }
  ASSERT_EQ(d[0], 1240);
  ASSERT_EQ(d[255], -2360);
  std::string args = "%arg0: tensor<16x16xi32> " + sharded("{\"p\"}, {}") + ", %arg1: tensor<16x16xi32> " +
                     sharded("{}, {\"q\"}");
  std::string result = "tensor<16x16xi32> " + sharded("{\"p\":(1)2}, {\"p\":(2)2, \"q\"}");
  KnownRun r = known(program("\"p\"=4, \"q\"=2", args, result, body), {x, y}, {d});
  double sum = 0;
  for (double v : r.parts[0]) sum += v;
  EXPECT_EQ(sum, 87040);
  EXPECT_LE(largestValue(r.partitioned), 128);
  EXPECT_LE(summaryField(r.report, "dot_flops"), 2 * 2 * 16 * 16 * 16 / 8);
  EXPECT_LE(count(r.partitioned, Opcode::all_gather), 1u);
  EXPECT_EQ(summaryField(r.report, "dot_flops_redundant"), 0);
  // Both operands gathered and the result cut afterwards: right in value, and reported as eight times the work.
  std::string wasteful = R"(
    %x = sdy.sharding_constraint %arg0 <@mesh, [{}, {}]> : tensor<16x16xi32>
    %y = sdy.sharding_constraint %arg1 <@mesh, [{}, {}]> : tensor<16x16xi32>
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{}, {}]> : tensor<16x16xi32>
    return %1 : tensor<16x16xi32>
)";
  r = known(program("\"p\"=4, \"q\"=2", args, "tensor<16x16xi32> " + sharded("{}, {}"), wasteful), {x, y}, {d});
  EXPECT_EQ(summaryField(r.report, "dot_flops") - summaryField(r.report, "dot_flops_unpartitioned") / 8,
            summaryField(r.report, "dot_flops_redundant"));
}

TEST(KnownResults, ConcatenateOnOneAxisOfTwo) {
  std::string body = R"(
    %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<4xi32>, tensor<12xi32>) -> tensor<16xi32>
    return %0 : tensor<16xi32>
)";
  Numbers right = counting(4), b = counting(12, 100);
  right.insert(right.end(), b.begin(), b.end());
  for (std::string result : {"{\"data\"}", "{\"data\", \"model\"}", "{}"}) {
    known(program("\"data\"=4, \"model\"=2",
                  "%arg0: tensor<4xi32> " + sharded("{\"data\"}") + ", %arg1: tensor<12xi32> " + sharded("{\"data\"}"),
                  "tensor<16xi32> " + sharded(result), body),
          {counting(4), b}, {right});
  }
}

TEST(KnownResults, ShiftByOneThenSetTheLastRow) {
  std::string padded = R"(
    %0 = stablehlo.slice %arg0 [1:16, 0:16] : (tensor<16x16xi32>) -> tensor<15x16xi32>
    %c = stablehlo.constant dense<7> : tensor<i32>
    %1 = stablehlo.pad %0, %c, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<15x16xi32>, tensor<i32>) -> tensor<16x16xi32>
    return %1 : tensor<16x16xi32>
)";
  std::string updated = R"(
    %0 = stablehlo.slice %arg0 [1:16, 0:16] : (tensor<16x16xi32>) -> tensor<15x16xi32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %z, %z : (tensor<16x16xi32>, tensor<15x16xi32>, tensor<i32>, tensor<i32>) -> tensor<16x16xi32>
    %last = stablehlo.constant dense<15> : tensor<i32>
    %row = stablehlo.constant dense<7> : tensor<1x16xi32>
    %2 = stablehlo.dynamic_update_slice %1, %row, %last, %z : (tensor<16x16xi32>, tensor<1x16xi32>, tensor<i32>, tensor<i32>) -> tensor<16x16xi32>
    return %2 : tensor<16x16xi32>
)";
  Numbers right;
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 16; ++c) right.push_back(r < 15 ? 16 * (r + 1) + c : 7);
  }
  for (auto [rows, columns] : {std::pair{8, 1}, {2, 4}, {4, 2}, {1, 8}}) {
    std::string mesh = "\"r\"=" + std::to_string(rows) + ", \"c\"=" + std::to_string(columns);
    for (const std::string& body : {padded, updated}) {
      std::string s = sharded("{\"r\"}, {\"c\"}");
      KnownRun r = known(program(mesh, "%arg0: tensor<16x16xi32> " + s, "tensor<16x16xi32> " + s, body),
                         {counting(256)}, {right});
      EXPECT_EQ(count(r.partitioned, Opcode::all_gather), 0u) << mesh;
      EXPECT_EQ(count(r.partitioned, Opcode::all_reduce), 0u) << mesh;
      // One row of a border, but for the last device: 16 / columns elements.
      EXPECT_LE(summaryField(r.report, "wire_bytes"), 2 * 4 * 16 / columns * (rows - 1) / rows + 1) << mesh << body;
    }
  }
}

TEST(KnownResults, ScatterAddIntoAShardedTable) {
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
  for (std::string ids : {"{\"x\"}", "{}"}) {
    for (std::string table : {"{\"x\"}", "{}"}) {
      known(program("\"x\"=4", "%arg0: tensor<8xi32> " + sharded(ids) + ", %arg1: tensor<8xi32> " + sharded(ids),
                    "tensor<8xi32> " + sharded(table), body),
            {{0, 5, 2, 7, 0, 1, 6, 5}, counting(8, 1)}, {{6, 6, 3, 0, 0, 10, 7, 4}});
    }
  }
}

TEST(KnownResults, TopKAlongAShardedDim) {
  Numbers x;
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < 32; ++c) x.push_back((7 * c + 5 * r) % 32);
  }
  Numbers best = {31, 30, 29, 28, 27, 26}, first = {9, 18, 27, 4, 13, 22}, second = {22, 31, 8, 17, 26, 3};
  for (int k : {1, 4, 6}) {
    std::string shape = "2x" + std::to_string(k);
    std::string body = "    %v, %i = chlo.top_k(%arg0, k = " + std::to_string(k) + ") : tensor<2x32xi32> -> (tensor<" +
                       shape + "xi32>, tensor<" + shape + "xi32>)\n    return %v, %i : tensor<" + shape +
                       "xi32>, tensor<" + shape + "xi32>\n";
    std::string results = "tensor<" + shape + "xi32> " + sharded("{}, {}") + ", tensor<" + shape + "xi32> " +
                          sharded("{}, {}");
    std::string text = program("\"x\"=8", "%arg0: tensor<2x32xi32> " + sharded("{}, {\"x\"}"), results, body);
    Numbers values(best.begin(), best.begin() + k), places(first.begin(), first.begin() + k);
    values.insert(values.end(), best.begin(), best.begin() + k);
    places.insert(places.end(), second.begin(), second.begin() + k);
    KnownRun r = known(text, {x}, {values, places});
    EXPECT_LE(summaryField(r.report, "wire_bytes"), 2 * 2 * 4 * std::min(k, 4) * 7);
    Numbers same = counting(k), twice = same;
    twice.insert(twice.end(), same.begin(), same.end());
    known(text, {Numbers(64, 5)}, {Numbers(2 * k, 5), twice});
  }
}

TEST(KnownResults, PrefixSumAlongAShardedDim) {
  auto window = [](const std::string& low, const std::string& high) {
    return "    %c = stablehlo.constant dense<0> : tensor<i32>\n    %0 = \"stablehlo.reduce_window\"(%arg0, %c) "
           "<{padding = dense<[[0, 0], [" + low + ", " + high + "]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, "
           "16>}> ({\n    ^bb0(%a: tensor<i32>, %b: tensor<i32>):\n      %s = stablehlo.add %a, %b : tensor<i32>\n      "
           "stablehlo.return %s : tensor<i32>\n    }) : (tensor<2x16xi32>, tensor<i32>) -> tensor<2x16xi32>\n";
  };
  std::string loop = R"(
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<16> : tensor<i32>
    %acc0 = stablehlo.constant dense<0> : tensor<2x1xi32>
    %y0 = stablehlo.constant dense<0> : tensor<2x16xi32>
    %w:3 = stablehlo.while(%i = %i0, %acc = %acc0, %y = %y0) : tensor<i32>, tensor<2x1xi32>, tensor<2x16xi32>
    cond {
      %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %e = stablehlo.dynamic_slice %arg0, %i0, %i, sizes = [2, 1] : (tensor<2x16xi32>, tensor<i32>, tensor<i32>) -> tensor<2x1xi32>
      %a = stablehlo.add %acc, %e : tensor<2x1xi32>
      %u = stablehlo.dynamic_update_slice %y, %a, %i0, %i : (tensor<2x16xi32>, tensor<2x1xi32>, tensor<i32>, tensor<i32>) -> tensor<2x16xi32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %a, %u : tensor<i32>, tensor<2x1xi32>, tensor<2x16xi32>
    }
    return %w#2 : tensor<2x16xi32>
)";
  std::string plain = "    return %0 : tensor<2x16xi32>\n";
  std::string shifted =
      "    %t = stablehlo.slice %0 [0:2, 0:15] : (tensor<2x16xi32>) -> tensor<2x15xi32>\n    %e = stablehlo.pad %t, %c, "
      "low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<2x15xi32>, tensor<i32>) -> tensor<2x16xi32>\n    return "
      "%e : tensor<2x16xi32>\n";
  auto rows = [](Numbers row) {
    Numbers both = row;
    both.insert(both.end(), row.begin(), row.end());
    return both;
  };
  struct Form {
    std::string body;
    Numbers right;
    int64_t most;  // bytes sent per device
  };
  for (std::string s : {"{\"y\"}, {\"x\"}", "{}, {\"x\", \"y\"}", "{\"y\"}, {}"}) {
    for (const Form& f : {Form{window("15", "0") + plain, rows(counting(16, 1)), 2 * 4 * 7},
                          Form{window("0", "15") + plain, rows(counting(16, 16, -1)), 2 * 4 * 7},
                          Form{window("15", "0") + shifted, rows(counting(16, 0)), 2 * 4 * 9},
                          Form{loop, rows(counting(16, 1)), 1 << 20}}) {
      KnownRun r = known(program("\"x\"=4, \"y\"=2", "%arg0: tensor<2x16xi32> " + sharded(s),
                                 "tensor<2x16xi32> " + sharded(s), f.body),
                         {{1}}, {f.right});
      EXPECT_LE(summaryField(r.report, "wire_bytes"), f.most) << s << f.body;
      EXPECT_LE(largestValue(r.partitioned), 16);
    }
  }
}

TEST(KnownResults, GroupedConvolutionBatchSharded) {
  std::string body = R"(
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<8x4x4x4xf32>, tensor<3x3x2x4xf32>) -> tensor<8x4x4x4xf32>
    return %0 : tensor<8x4x4x4xf32>
)";
  Numbers x, right;
  for (int n = 0; n < 8; ++n) {
    for (int i = 0; i < 64; ++i) {
      int h = i / 16, w = i / 4 % 4, borders = (h == 0 || h == 3) + (w == 0 || w == 3);
      x.push_back(n);
      right.push_back((borders == 0 ? 18 : borders == 1 ? 12 : 8) * n);
    }
  }
  for (std::string s : {"{\"x\"}, {}, {}, {}", "{\"x\":(1)4}, {}, {}, {\"x\":(4)2}"}) {
    KnownRun r = known(program("\"x\"=8", "%arg0: tensor<8x4x4x4xf32> " + sharded(s) + ", %arg1: tensor<3x3x2x4xf32> " +
                                              sharded("{}, {}, {}, {}"),
                               "tensor<8x4x4x4xf32> " + sharded(s), body),
                       {x, {1}}, {right});
    EXPECT_EQ(summaryField(r.report, "collectives"), 0) << s;
    EXPECT_EQ(summaryField(r.report, "dot_flops") * 8, summaryField(r.report, "dot_flops_unpartitioned")) << s;
  }
}

TEST(KnownResults, ConstraintThatDoesNotDivide) {
  std::string body = R"(
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}]> : tensor<17x16xf32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<17x16xf32>, tensor<f32>) -> tensor<16xf32>
    %n = stablehlo.constant dense<17.0> : tensor<16xf32>
    %2 = stablehlo.divide %1, %n : tensor<16xf32>
    %m = stablehlo.negate %0 : tensor<17x16xf32>
    %l = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %3 = stablehlo.reduce(%m init: %l) applies stablehlo.maximum across dimensions = [0] : (tensor<17x16xf32>, tensor<f32>) -> tensor<16xf32>
    %b = stablehlo.broadcast_in_dim %3, dims = [1] : (tensor<16xf32>) -> tensor<17x16xf32>
    %d = stablehlo.subtract %m, %b : tensor<17x16xf32>
    %e = stablehlo.exponential %d : tensor<17x16xf32>
    %s = stablehlo.reduce(%e init: %c) applies stablehlo.add across dimensions = [0] : (tensor<17x16xf32>, tensor<f32>) -> tensor<16xf32>
    %t = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<16xf32>) -> tensor<17x16xf32>
    %4 = stablehlo.divide %e, %t : tensor<17x16xf32>
    %5 = stablehlo.reduce(%4 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<17x16xf32>, tensor<f32>) -> tensor<16xf32>
    return %1, %2, %3, %5 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
)";
  std::string whole = "tensor<16xf32> " + sharded("{}");
  KnownRun r = known(program("\"x\"=8", "%arg0: tensor<17x16xf32>", whole + ", " + whole + ", " + whole + ", " + whole, body),
                     {counting(272)},
                     {counting(16, 2176, 17), counting(16, 128, 1), counting(16, 0, -1), Numbers(16, 1)}, 1e-5);
  bool verdict = false;
  for (const Diagnostic& d : r.sink.all) {
    verdict |= d.code == Code::kPadded && d.loc == "test.mlir:5:10" &&
               d.text.find("3,3,3,3,3,2,0,0") != std::string::npos && d.text.find("16 and 24") != std::string::npos;
  }
  EXPECT_TRUE(verdict);
}

TEST(KnownResults, SpatiallyShardedConvolution) {
  auto conv = [](const std::string& window, int out) {
    std::string y = "tensor<1x" + std::to_string(out) + "x1xf32>";
    return "    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {" + window +
           "} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x12x1xf32>, tensor<5x1x1xf32>) -> " + y +
           "\n    return %0 : " + y + "\n";
  };
  for (std::string s : {"{}, {\"x\"}, {}", "{}, {\"x\":(1)2}, {}"}) {
    std::string args = "%arg0: tensor<1x12x1xf32> " + sharded(s) + ", %arg1: tensor<5x1x1xf32> " + sharded("{}, {}, {}");
    KnownRun r = known(program("\"x\"=4", args, "tensor<1x6x1xf32> " + sharded(s),
                               conv("stride = [2], pad = [[1, 3]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]", 6)),
                       {counting(12, 1), counting(5, 1)}, {{40, 70, 100, 130, 160, 68}});
    EXPECT_EQ(count(r.partitioned, Opcode::all_gather), 0u);
    r = known(program("\"x\"=4", args, "tensor<1x12x1xf32> " + sharded(s),
                      conv("stride = [1], pad = [[4, 4]], lhs_dilate = [1], rhs_dilate = [2], reverse = [false]", 12)),
              {counting(12, 1), counting(5, 1)}, {{40, 52, 66, 80, 95, 110, 125, 140, 90, 100, 58, 64}});
    EXPECT_EQ(count(r.partitioned, Opcode::all_gather), 0u);
  }
}

TEST(KnownResults, SumsInsideALoop) {
  std::string sum = R"(<{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<i32>, %q: tensor<i32>):
          %t = stablehlo.add %p, %q : tensor<i32>
          stablehlo.return %t : tensor<i32>
        }) : (tensor<1xi32>) -> tensor<1xi32>
)";
  std::string body = R"(
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{}, {"x"}]>, <@mesh, [{}, {"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%g: tensor<2x1xi32>, %s: tensor<2x1xi32>) {
      %i0 = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %n = stablehlo.constant dense<2> : tensor<i32>
      %z = stablehlo.constant dense<0> : tensor<1xi32>
      %w:2 = stablehlo.while(%i = %i0, %acc = %z) : tensor<i32>, tensor<1xi32>
      cond {
        %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %g1 = stablehlo.dynamic_slice %g, %i, %i0, sizes = [1, 1] : (tensor<2x1xi32>, tensor<i32>, tensor<i32>) -> tensor<1x1xi32>
        %g2 = stablehlo.reshape %g1 : (tensor<1x1xi32>) -> tensor<1xi32>
        %s1 = stablehlo.dynamic_slice %s, %i, %i0, sizes = [1, 1] : (tensor<2x1xi32>, tensor<i32>, tensor<i32>) -> tensor<1x1xi32>
        %s2 = stablehlo.reshape %s1 : (tensor<1x1xi32>) -> tensor<1xi32>
        %ar = "stablehlo.all_reduce"(%g2) )" + sum + R"(        %as = "stablehlo.all_reduce"(%s2) )" + sum + R"(        %m = stablehlo.multiply %ar, %as : tensor<1xi32>
        %a = stablehlo.add %acc, %m : tensor<1xi32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %a : tensor<i32>, tensor<1xi32>
      }
      sdy.return %w#1 : tensor<1xi32>
    } : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<1xi32>
    return %0 : tensor<1xi32>
)";
  // Rows are steps, columns devices.
  known(program("\"x\"=2", "%arg0: tensor<2x2xi32>, %arg1: tensor<2x2xi32>", "tensor<1xi32>", body),
        {{1, 2, 3, 4}, {1, 1, 2, 3}}, {{41}});
}

TEST(KnownResults, DonatedInputOfAnotherSharding) {
  auto text = [](const std::string& x) {
    return "module @m {\n  sdy.mesh @mesh = <[\"d\"=2]>\n  func.func public @main(%arg0: tensor<16xi32> "
           "{tf.aliasing_output = 0 : i32, sdy.sharding = #sdy.sharding<@mesh, [" + x + "]>}, %arg1: tensor<16xi32> " +
           sharded("{}") + ") -> (tensor<16xi32> " + sharded("{\"d\"}") + ", tensor<16xi32> " + sharded("{\"d\"}") +
           ") {\n    %c = stablehlo.constant dense<1> : tensor<16xi32>\n    %0 = stablehlo.add %arg0, %c : tensor<16xi32>\n"
           "    return %0, %arg1 : tensor<16xi32>, tensor<16xi32>\n  }\n}\n";
  };
  KnownRun r = known(text("{}"), {counting(16), counting(16)}, {counting(16, 1), counting(16)});
  EXPECT_EQ(r.partitioned.func(r.partitioned.entry).arg_ports[0].alias, -1);
  bool said = false;
  for (const Diagnostic& d : r.sink.all) {
    said |= d.code == Code::kDroppedAlias && d.text.find("argument 0 is donated to result 0") != std::string::npos &&
            d.text.find("64 bytes") != std::string::npos && d.text.find("32 of the other") != std::string::npos;
  }
  EXPECT_TRUE(said);
  r = known(text("{\"d\"}"), {counting(16), counting(16)}, {counting(16, 1), counting(16)});
  EXPECT_EQ(r.partitioned.func(r.partitioned.entry).arg_ports[0].alias, 0);
  EXPECT_FALSE(r.sink.has(Code::kDroppedAlias));
}

TEST(KnownResults, NarrowFloatSums) {
  std::string body = R"(
    %z = stablehlo.constant dense<0.0> : tensor<bf16>
    %0 = stablehlo.reduce(%arg0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<512xbf16>, tensor<bf16>) -> tensor<bf16>
    %1 = stablehlo.reduce(%arg1 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<256xbf16>, tensor<bf16>) -> tensor<bf16>
    %l = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %m = stablehlo.reduce(%arg0 init: %l) applies stablehlo.maximum across dimensions = [0] : (tensor<512xbf16>, tensor<bf16>) -> tensor<bf16>
    %b = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<bf16>) -> tensor<512xbf16>
    %d = stablehlo.subtract %arg0, %b : tensor<512xbf16>
    %e = stablehlo.exponential %d : tensor<512xbf16>
    %s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [0] : (tensor<512xbf16>, tensor<bf16>) -> tensor<bf16>
    %t = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<bf16>) -> tensor<512xbf16>
    %2 = stablehlo.divide %e, %t : tensor<512xbf16>
    return %0, %1, %2 : tensor<bf16>, tensor<bf16>, tensor<512xbf16>
)";
  Numbers last(256, 1);
  last[0] = 256;
  for (std::string s : {"{}", "{\"x\"}"}) {
    known(program("\"x\"=4", "%arg0: tensor<512xbf16> " + sharded(s) + ", %arg1: tensor<256xbf16> " + sharded(s),
                  "tensor<bf16> " + sharded("") + ", tensor<bf16> " + sharded("") + ", tensor<512xbf16> " + sharded(s), body),
          {{1}, last}, {{512}, {512}, Numbers(512, 1.0 / 512)});
  }
}

TEST(KnownResults, DynamicSliceAndUpdateOnAShardedDim) {
  for (std::string type : {"i32", "f64"}) {
    std::string t = type;
    std::string body =
        "    %1 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [4] : (tensor<16x" + t + ">, tensor<i32>) -> tensor<4x" + t +
        ">\n    %2 = stablehlo.dynamic_update_slice %arg0, %arg2, %arg1 : (tensor<16x" + t + ">, tensor<4x" + t +
        ">, tensor<i32>) -> tensor<16x" + t + ">\n    return %1, %2 : tensor<4x" + t + ">, tensor<16x" + t + ">\n";
    for (auto [start, at] : {std::pair{6, 6}, {14, 12}, {-3, 0}, {15, 12}}) {
      for (std::string s : {"{\"x\"}", "{\"x\":(1)2}"}) {
        Numbers updated = counting(16);
        for (int i = 0; i < 4; ++i) updated[at + i] = 100 + i;
        KnownRun r = known(program("\"x\"=4", "%arg0: tensor<16x" + t + "> " + sharded(s) + ", %arg1: tensor<i32> " +
                                                  sharded("") + ", %arg2: tensor<4x" + t + "> " + sharded("{}"),
                                   "tensor<4x" + t + "> " + sharded("{}") + ", tensor<16x" + t + "> " + sharded(s), body),
                           {counting(16), {static_cast<double>(start)}, counting(4, 100)}, {counting(4, at), updated});
        EXPECT_EQ(count(r.partitioned, Opcode::all_gather), 0u);
      }
    }
  }
}

}  // namespace
}  // namespace tpu::partition
