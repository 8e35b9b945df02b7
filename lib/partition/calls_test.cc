// Custom calls whose sharding the user describes, and random bits drawn part by part.
#include <gtest/gtest.h>

#include "program_text_test_util.h"
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/print.h"

namespace tpu::partition {
namespace {

using hlo::Opcode;

std::string callText(const std::string& rule, const std::string& a, const std::string& b, const std::string& result) {
  return program("\"x\"=4, \"y\"=2", "%arg0: tensor<16x32xf32> " + sharded(a) + ", %arg1: tensor<32x8xf32> " + sharded(b),
                 "tensor<16x8xf32> " + sharded(result),
                 "    %0 = stablehlo.custom_call @my_matmul(%arg0, %arg1) {sdy.sharding_rule = " + rule +
                     "} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>\n    return %0 : tensor<16x8xf32>\n");
}

/// The partitioned program, or the error with its place.
std::string partitionedText(const std::string& text) {
  Collected sink;
  auto m = frontend::readProgram(text, "t.mlir", sink);
  if (!m) return errorText(m.takeError());
  if (llvm::Error e = partitionModule(*m, {}, sink)) {
    Diagnostic d = takeDiagnostics(std::move(e)).front();
    return d.loc + ": " + d.text;
  }
  return hlo::toText(*m);
}

const char* const kMatmul = "#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=16, j=32, k=8} reduction={j}>";

TEST(Calls, ARuleDividesTheCall) {
  std::string text = partitionedText(callText(kMatmul, "{\"x\"}, {\"y\"}", "{\"y\"}, {}", "{\"x\"}, {}"));
  EXPECT_NE(text.find("custom_call %a0, %a1 {call_target_name=my_matmul} : f32[4,8]"), std::string::npos) << text;
  EXPECT_NE(text.find("all_reduce %0 {axes={y}} : f32[4,8]"), std::string::npos) << text;
  EXPECT_EQ(text.find("all_gather"), std::string::npos) << text;
}

TEST(Calls, WhatMustBeWholeIsGathered) {
  std::string rule = "#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=16, j=32, k=8} need_replication={j}, custom>";
  std::string text = partitionedText(callText(rule, "{\"x\"}, {\"y\"}", "{}, {}", "{\"x\"}, {}"));
  EXPECT_NE(text.find(": f32[4,8] [{x}, {}]"), std::string::npos) << text;
  EXPECT_NE(text.find("all_gather"), std::string::npos) << text;
  EXPECT_EQ(text.find("all_reduce"), std::string::npos) << text;
}

TEST(Calls, DimensionsOfSeveralFactors) {
  std::string text = partitionedText(program(
      "\"x\"=4", "%arg0: tensor<4x6xf32> " + sharded("{\"x\"}, {}"), "tensor<24xf32> " + sharded("{\"x\"}"),
      "    %0 = stablehlo.custom_call @flat(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([ij]) {i=4, j=6}>} : "
      "(tensor<4x6xf32>) -> tensor<24xf32>\n    return %0 : tensor<24xf32>\n"));
  EXPECT_NE(text.find(": f32[6] [{x}]"), std::string::npos) << text;
  EXPECT_EQ(text.find("all_gather"), std::string::npos) << text;
}

TEST(Calls, RulesThatDoNotFitAreRefusedAtTheCall) {
  auto wrong = [](const std::string& rule) { return partitionedText(callText(rule, "{}, {}", "{}, {}", "{}, {}")); };
  EXPECT_EQ(wrong("#sdy.op_sharding_rule<([i, j])->([i, j]) {i=16, j=32}>"), "t.mlir:4:10: sdy.sharding_rule: 1 operands, the call has 2");
  EXPECT_EQ(wrong("#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=16, j=32, k=9}>"),
            "t.mlir:4:10: sdy.sharding_rule: dimension 1 of operand 1 f32[32,8] is given 9 elements");
  EXPECT_EQ(wrong("#sdy.op_sharding_rule<([i, j], [j])->([i, j]) {i=16, j=32}>"),
            "t.mlir:4:10: sdy.sharding_rule: operand 1 f32[32,8] is given 1 dimensions");
  EXPECT_EQ(wrong("#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=16, k=8}>"), "t.mlir:4:10: sdy.sharding_rule: factor 'j' has no size");
  EXPECT_EQ(wrong("#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=16, j=32, k=8} reduction={k}>"),
            "t.mlir:4:10: sdy.sharding_rule: reduction factor 'k' stands in result 0 f32[16,8]");
}

/// Random bits of this shape, sharded as asked for, and the state behind them.
Comparison drawn(const std::string& algorithm, const std::string& state, const std::string& shape, const std::string& dims) {
  std::string words = "tensor<" + state + "xui64>", type = "tensor<" + shape + ">";
  return compareText(program("\"x\"=4, \"y\"=2", "%arg0: " + words, words + ", " + type + " " + sharded(dims),
                             "    %0, %1 = stablehlo.rng_bit_generator %arg0, algorithm = " + algorithm + " : (" + words + ") -> (" + words +
                                 ", " + type + ")\n    return %0, %1 : " + words + ", " + type + "\n"),
                     "t.mlir", {}, 11);
}

TEST(Calls, RandomBitsAreDrawnPartByPart) {
  for (auto [algorithm, state] : {std::pair{"THREE_FRY", "2"}, {"PHILOX", "2"}, {"PHILOX", "3"}, {"DEFAULT", "3"}, {"DEFAULT", "2"}}) {
    for (const char* shape : {"16x32xui32", "16x3xui64", "64xui32", "1x32x5xui32", "16x4xui16", "8x8xui8"}) {
      bool line = std::string(shape) == "64xui32", lead = std::string(shape)[0] == '1' && std::string(shape)[1] == 'x';
      std::string dims = line ? "{\"x\"}" : lead ? "{}, {\"x\"}, {}" : "{\"x\"}, {}";
      Comparison c = drawn(algorithm, state, shape, dims);
      EXPECT_EQ(c.problem, "") << algorithm << ' ' << shape;
      EXPECT_EQ(c.collectives, 0u) << algorithm << ' ' << shape;
      int64_t largest = largestValue(c.partitioned);
      EXPECT_LE(largest, 16 * 32 / 4) << algorithm << ' ' << shape << hlo::toText(c.partitioned);
    }
    // Rows that share a counter, or another dimension than the first: whole, and cut.
    for (auto [shape, dims] : {std::pair{"12x3xui32", "{\"x\"}, {}"}, {"16x32xui32", "{}, {\"x\"}"}, {"9x4xui32", "{\"y\"}, {}"}, {"7x5xui32", "{\"x\"}, {}"}}) {
      EXPECT_EQ(drawn(algorithm, state, shape, dims).problem, "") << algorithm << ' ' << shape;
    }
  }
}

}  // namespace
}  // namespace tpu::partition
