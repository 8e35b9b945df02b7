// Each pass on collectives where it has something to do: what it leaves, that values stay, that the wires carry no more.
#include "collectives.h"

#include <gtest/gtest.h>

#include "program_text_test_util.h"

namespace tpu::partition {
namespace {

using hlo::Opcode;

const std::vector<std::string> kPasses = {"share", "reassociate", "reduce-scatter", "hoist", "sink", "combine"};

/// A body of a manual region over x=4: %v is s32[4,8] of s32[16,8], %r is what it yields.
std::string manual(const std::string& body) {
  return R"(module @m {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<16x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%v: tensor<4x8xi32>) {
)" + body + R"(      sdy.return %r : tensor<4x8xi32>
    } : (tensor<16x8xi32>) -> tensor<16x8xi32>
    return %0 : tensor<16x8xi32>
  }
}
)";
}

std::string reduced(const std::string& result, const std::string& operand, const std::string& type = "tensor<4x8xi32>",
                    const std::string& by = "add") {
  return "      " + result + " = \"stablehlo.all_reduce\"(" + operand +
         ") <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, "
         "type = 1>, use_global_device_ids}> ({\n      ^bb0(%a: tensor<i32>, %b: tensor<i32>):\n        %s = stablehlo." + by +
         " %a, %b : tensor<i32>\n        stablehlo.return %s : tensor<i32>\n      }) : (" + type + ") -> " + type + "\n";
}

std::string gathered(const std::string& result, const std::string& operand) {
  return "      " + result + " = \"stablehlo.all_gather\"(" + operand +
         ") <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle = "
         "#stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<4x8xi32>) -> tensor<16x8xi32>\n";
}

/// Three trips of x = body(x) from %v, ending in %r; the body makes %y of %x and may use %i and %k, which is %v forever.
std::string loop(const std::string& body, const std::string& trips = "3", const std::string& carried = "%v",
                 const std::string& type = "tensor<4x8xi32>") {
  return "      %zero = stablehlo.constant dense<0> : tensor<i32>\n      %one = stablehlo.constant dense<1> : tensor<i32>\n"
         "      %n = stablehlo.constant dense<" + trips + "> : tensor<i32>\n"
         "      %w:3 = stablehlo.while(%i = %zero, %x = %v, %k = " + carried + ") : tensor<i32>, tensor<4x8xi32>, " + type + "\n"
         "       cond {\n        %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
         "        stablehlo.return %t : tensor<i1>\n      } do {\n" + body +
         "        %j = stablehlo.add %i, %one : tensor<i32>\n        stablehlo.return %j, %y, %k : tensor<i32>, tensor<4x8xi32>, " + type + "\n      }\n"
         "      %r = stablehlo.negate %w#1 : tensor<4x8xi32>\n";
}

struct Pair {
  Comparison without, with;
  size_t before(Opcode o) const { return count(without.partitioned, o); }
  size_t after(Opcode o) const { return count(with.partitioned, o); }
};

Pair run(const std::string& body, const std::string& pass) {
  PartitionOptions none, alone;
  none.without = alone.without = kPasses;
  llvm::erase(alone.without, pass);
  Pair p{compareText(manual(body), "t.mlir", none, 3), compareText(manual(body), "t.mlir", alone, 3)};
  EXPECT_EQ(p.without.problem, "");
  EXPECT_EQ(p.with.problem, "");
  EXPECT_LE(p.with.wire_bytes, p.without.wire_bytes);
  return p;
}

TEST(Collectives, EqualOnesAreShared) {
  Pair p = run(reduced("%p", "%v") + reduced("%q", "%v") + "      %r = stablehlo.multiply %p, %q : tensor<4x8xi32>\n", "share");
  EXPECT_EQ(p.before(Opcode::all_reduce), 2u);
  EXPECT_EQ(p.after(Opcode::all_reduce), 1u);
  EXPECT_EQ(p.with.wire_bytes * 2, p.without.wire_bytes);
}

TEST(Collectives, SumsOfSumsAreAddedFirst) {
  std::string two = "      %d = stablehlo.add %v, %v : tensor<4x8xi32>\n" + reduced("%p", "%v") + reduced("%q", "%d");
  Pair p = run(two + "      %r = stablehlo.add %p, %q : tensor<4x8xi32>\n", "reassociate");
  EXPECT_EQ(p.after(Opcode::all_reduce), 1u);
  EXPECT_EQ(p.with.wire_bytes * 2, p.without.wire_bytes);
  // A difference is one, a chain is one, a maximum of sums is none, and a sum used elsewhere stays.
  EXPECT_EQ(run(two + "      %r = stablehlo.subtract %p, %q : tensor<4x8xi32>\n", "reassociate").after(Opcode::all_reduce), 1u);
  EXPECT_EQ(run(two + reduced("%u", "%d") + "      %z = stablehlo.add %p, %q : tensor<4x8xi32>\n      %r = stablehlo.add %u, %z : tensor<4x8xi32>\n", "reassociate")
                .after(Opcode::all_reduce), 1u);
  EXPECT_EQ(run(two + "      %r = stablehlo.maximum %p, %q : tensor<4x8xi32>\n", "reassociate").after(Opcode::all_reduce), 2u);
  EXPECT_EQ(run(two + "      %z = stablehlo.add %p, %q : tensor<4x8xi32>\n      %r = stablehlo.multiply %z, %q : tensor<4x8xi32>\n", "reassociate")
                .after(Opcode::all_reduce), 2u);
  std::string most = reduced("%p", "%v", "tensor<4x8xi32>", "maximum") + reduced("%q", "%d", "tensor<4x8xi32>", "maximum");
  EXPECT_EQ(run("      %d = stablehlo.negate %v : tensor<4x8xi32>\n" + most + "      %r = stablehlo.maximum %p, %q : tensor<4x8xi32>\n", "reassociate")
                .after(Opcode::all_reduce), 1u);
}

std::string ownPart(const std::string& start) {
  return gathered("%g", "%v") + reduced("%p", "%g", "tensor<16x8xi32>") +
         "      %pid = stablehlo.partition_id : tensor<ui32>\n      %id = stablehlo.convert %pid : (tensor<ui32>) -> tensor<i32>\n"
         "      %c = stablehlo.constant dense<" + start + "> : tensor<i32>\n      %at = stablehlo.multiply %id, %c : tensor<i32>\n"
         "      %z = stablehlo.constant dense<0> : tensor<i32>\n"
         "      %r = stablehlo.dynamic_slice %p, %at, %z, sizes = [4, 8] : (tensor<16x8xi32>, tensor<i32>, tensor<i32>) -> tensor<4x8xi32>\n";
}

TEST(Collectives, OwnPartsOfSumsAreScattered) {
  Pair p = run(ownPart("4"), "reduce-scatter");
  EXPECT_EQ(p.after(Opcode::all_reduce), 0u);
  EXPECT_EQ(p.after(Opcode::reduce_scatter), 1u);
  EXPECT_LT(p.with.wire_bytes, p.without.wire_bytes);
  // Another stride is another part.
  EXPECT_EQ(run(ownPart("3"), "reduce-scatter").after(Opcode::reduce_scatter), 0u);
}

TEST(Collectives, PartsThatAllKeepAreCutFirst) {
  Pair p = run(gathered("%g", "%v") + reduced("%p", "%g", "tensor<16x8xi32>") +
                   "      %r = stablehlo.slice %p [0:4, 0:8] : (tensor<16x8xi32>) -> tensor<4x8xi32>\n", "reduce-scatter");
  EXPECT_EQ(p.after(Opcode::all_reduce), 1u);
  EXPECT_LT(p.with.wire_bytes, p.without.wire_bytes);
}

TEST(Collectives, WhatALoopDoesNotChangeIsMetOnce) {
  for (const char* operand : {"%v", "%k"}) {
    Pair p = run(loop(reduced("%p", operand) + "        %y = stablehlo.add %x, %p : tensor<4x8xi32>\n"), "hoist");
    EXPECT_EQ(p.with.wire_bytes * 3, p.without.wire_bytes) << operand;
  }
  // Through a cheap step; not what changes; not out of a loop that may not run.
  EXPECT_LT(run(loop("        %m = stablehlo.negate %k : tensor<4x8xi32>\n" + reduced("%p", "%m") + "        %y = stablehlo.add %x, %p : tensor<4x8xi32>\n"), "hoist").with.wire_bytes,
            run(loop("        %m = stablehlo.negate %x : tensor<4x8xi32>\n" + reduced("%p", "%m") + "        %y = stablehlo.add %x, %p : tensor<4x8xi32>\n"), "hoist").with.wire_bytes);
  Pair never = run(loop(reduced("%p", "%k") + "        %y = stablehlo.add %x, %p : tensor<4x8xi32>\n", "0"), "hoist");
  EXPECT_EQ(never.with.wire_bytes, never.without.wire_bytes);
}

TEST(Collectives, LayersAreGatheredOneByOne) {
  std::string body =
      "        %l = stablehlo.dynamic_slice %k, %zero, %i, sizes = [16, 1] : (tensor<16x8xi32>, tensor<i32>, tensor<i32>) -> tensor<16x1xi32>\n"
      "        %h = stablehlo.slice %l [0:4, 0:1] : (tensor<16x1xi32>) -> tensor<4x1xi32>\n"
      "        %q = stablehlo.broadcast_in_dim %h, dims = [0, 1] : (tensor<4x1xi32>) -> tensor<4x8xi32>\n"
      "        %y = stablehlo.add %x, %q : tensor<4x8xi32>\n";
  Pair p = run(gathered("%g", "%v") + loop(body, "8", "%g", "tensor<16x8xi32>"), "sink");
  EXPECT_EQ(p.with.wire_bytes, p.without.wire_bytes);
  EXPECT_EQ(largestValue(p.without.partitioned), 16 * 8);
  EXPECT_EQ(largestValue(p.with.partitioned), 4 * 8);
  // Nine trips would gather more than there is.
  Pair more = run(gathered("%g", "%v") + loop(body, "9", "%g", "tensor<16x8xi32>"), "sink");
  EXPECT_EQ(largestValue(more.with.partitioned), 16 * 8);
}

TEST(Collectives, SmallOnesOverTheSameDevicesAreOne) {
  std::string two = "      %d = stablehlo.negate %v : tensor<4x8xi32>\n" + reduced("%p", "%v") + reduced("%q", "%d");
  Pair p = run(two + "      %r = stablehlo.multiply %p, %q : tensor<4x8xi32>\n", "combine");
  EXPECT_EQ(p.before(Opcode::all_reduce), 2u);
  EXPECT_EQ(p.after(Opcode::all_reduce), 1u);
  EXPECT_EQ(p.with.wire_bytes, p.without.wire_bytes);
  // One that needs the other is not.
  EXPECT_EQ(run(reduced("%p", "%v") + reduced("%q", "%p") + "      %r = stablehlo.multiply %p, %q : tensor<4x8xi32>\n", "combine")
                .after(Opcode::all_reduce), 2u);
  EXPECT_EQ(run(two + reduced("%u", "%v", "tensor<4x8xi32>", "maximum") +
                    "      %z = stablehlo.multiply %p, %q : tensor<4x8xi32>\n      %r = stablehlo.multiply %z, %u : tensor<4x8xi32>\n", "combine")
                .after(Opcode::all_reduce), 2u);
}

/// Two large sums: their load counts, not their way.
TEST(Collectives, LargeOnesStayApart) {
  auto text = [](int64_t rows) {
    std::string type = "tensor<" + std::to_string(rows) + "x512xf32>", args, body;
    for (int i = 0; i < 2; ++i) {
      std::string k = std::to_string(i);
      args += (i ? ", %arg" : "%arg") + k + ": tensor<8x" + std::to_string(rows) + "x512xf32> " + sharded("{\"x\"}, {}, {}");
      body += "    %" + k + " = stablehlo.reduce(%arg" + k + " init: %c) applies stablehlo.add across dimensions = [0] : (tensor<8x" +
              std::to_string(rows) + "x512xf32>, tensor<f32>) -> " + type + "\n";
    }
    return program("\"x\"=8", args, type + " " + sharded("{}, {}") + ", " + type + " " + sharded("{}, {}"),
                   "    %c = stablehlo.constant dense<0.0> : tensor<f32>\n" + body + "    return %0, %1 : " + type + ", " + type + "\n");
  };
  EXPECT_EQ(count(compareText(text(1), "t.mlir", {}, 1).partitioned, Opcode::all_reduce), 1u);
  EXPECT_EQ(count(compareText(text(512), "t.mlir", {}, 1).partitioned, Opcode::all_reduce), 2u);
}

}  // namespace
}  // namespace tpu::partition
