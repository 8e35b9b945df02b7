// Bad input: each mistake at its line and column, and no input that brings the reader down.
#include <cstdlib>

#include "testing.h"

namespace tpu::frontend {
namespace {

std::string body(llvm::StringRef ops) {
  return refusal(("func.func @main(%a: tensor<4xf32>) {\n" + ops + "\n}").str());
}

TEST(Refusal, NamesThePlace) {
  EXPECT_EQ(body("  %0 = tosa.add %a, %a : tensor<4xf32>"), "2:8: unknown operation 'tosa.add'");
  EXPECT_EQ(body("  %0 = \"stablehlo.frobnicate\"(%a) : (tensor<4xf32>) -> tensor<4xf32>"),
            "2:8: unknown operation 'stablehlo.frobnicate'");
  EXPECT_EQ(body("  %0 = stablehlo.abs %b : tensor<4xf32>"), "2:22: use of undefined value '%b'");
  EXPECT_EQ(body("  %0 = stablehlo.abs %a#1 : tensor<4xf32>"), "2:22: '%a' has 1 results, asked for #1");
  EXPECT_EQ(body("  %0 = stablehlo.abs %a : tensor<4xq7>"), "2:36: unknown element type 'q7'");
  EXPECT_EQ(body("  %0 = stablehlo.abs %a : memref<4xf32>"), "2:27: unknown type 'memref'");
  EXPECT_EQ(body("  %0 = stablehlo.tanh %a : tensor<5xf32>"),
            "2:28: operand 0 has another type than the one stated");
  EXPECT_EQ(body("  %0 = stablehlo.abs %a : tensor<4xf32>\n  %0 = stablehlo.abs %a : tensor<4xf32>"),
            "3:3: value '%0' is defined twice");
  EXPECT_EQ(body("  %0:2 = stablehlo.abs %a : tensor<4xf32>"), "2:10: operation has 1 results, 2 are named");
  EXPECT_EQ(body("  %0 = stablehlo.abs %a"), "3:1: expected ':', found '}'");
  EXPECT_EQ(body("  %0 = stablehlo.iota dim = 0 : tensor<4xf32"), "3:1: expected '>', found '}'");
  EXPECT_EQ(body("  %0 = stablehlo.compare XX, %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>"),
            "2:26: unknown comparison_direction 'XX'");
}

TEST(Refusal, TheVerifierSpeaksInTheSamePlaces) {
  EXPECT_EQ(body("  %0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<5xf32>\n  return"),
            "2:8: reshape: changes the number of elements from f32[4] to f32[5] [reshape C2]");
  EXPECT_EQ(body("  %0 = stablehlo.negate %a : tensor<4xf32>"),
            "2:8: region ends in negate, expected return");
  EXPECT_EQ(body("  %0 = call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>\n  return"),
            "2:8: call of unknown function @f");
}

TEST(Refusal, RegionsThatMayNotCapture) {
  const char* const kBody = "(%b: tensor<4xf32>) {\n  %1 = stablehlo.add %b, %a : tensor<4xf32>\n  sdy.return %1 : "
                            "tensor<4xf32>\n} : (tensor<4xf32>) -> tensor<4xf32>\nreturn";
  const char* const kWhy = "3:8: add: operand is defined outside of a region that may use nothing from around it; "
                           "pass it as an operand";
  EXPECT_EQ(body("%0 = sdy.named_computation<\"f\">(%a) " + std::string(kBody)), kWhy);
  EXPECT_EQ(refusal("module { sdy.mesh @m = <[\"x\"=2]>\nfunc.func @main(%a: tensor<4xf32>) {%0 = sdy.manual_computation(%a) "
                    "in_shardings=[<@m, [{}]>] out_shardings=[<@m, [{}]>] manual_axes={\"x\"} " +
                    std::string(kBody) + "}}"),
            kWhy);
  // These may.
  EXPECT_EQ(body("  %z = stablehlo.constant dense<1.0> : tensor<f32>\n"
                 "  %0 = \"stablehlo.reduce\"(%a, %z) ({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
                 "    %s = stablehlo.add %x, %z : tensor<f32>\n    stablehlo.return %s : tensor<f32>\n"
                 "  }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>\n  return"),
            "accepted");
}

TEST(Refusal, Recursion) {
  EXPECT_EQ(refusal("func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
                    "  %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n"
                    "func.func private @f(%a: tensor<f32>) -> tensor<f32> {\n"
                    "  %0 = call @g(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n"
                    "func.func private @g(%a: tensor<f32>) -> tensor<f32> {\n"
                    "  %0 = stablehlo.composite \"x.y\" %a {decomposition = @f} : (tensor<f32>) -> tensor<f32>\n"
                    "  return %0 : tensor<f32>\n}"),
            "10:8: recursive call of @f");
}

TEST(Refusal, ACheckOfNothing) {
  EXPECT_EQ(refusal("func.func @main() {\n  check.expect_eq : tensor<3xui16>\n  return\n}"),
            "2:19: a type without an operand");
}

TEST(Refusal, FormatsThatAreNotReadAreNamed) {
  EXPECT_EQ(refusal("HloModule m\n"), "2:1: the module has no computation, found the end of the text");
  EXPECT_EQ(refusal(llvm::StringRef("ML\xefR\x0dMLIR", 10)),
            "this is MLIR bytecode written by 'MLIR', not a portable artifact of StableHLO, as jax.export and "
            "stablehlo.serialize_portable_artifact write (byte 5)");
  EXPECT_EQ(refusal("hello"), "this is neither StableHLO, HLO text nor an IR document");
  EXPECT_EQ(refusal(" \n"), "the input is empty");
  EXPECT_EQ(refusal("func.func @a() {\nreturn\n}\nfunc.func @b() {\nreturn\n}"),
            "1:1: several public functions and none is called @main");
}

const char kProgram[] = R"(#loc1 = loc("a.py":1:2)
module @m attributes {mhlo.num_partitions = 8 : i32, x = "y"} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}p1, {}]>, tf.aliasing_output = 0 : i32} loc("p['w']")) -> (tensor<8x8xf32> {jax.result_info = "r"}) {
    %c = stablehlo.constant dense<[[1, -2], [0x3, 4]]> : tensor<2x2xi32> loc(#loc1)
    %cst = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>> loc(callsite(#loc1 at "b.py":3:4 to :5))
    %z = stablehlo.constant dense<"0x0000803F"> : tensor<f32> loc(fused["n", #loc1])
    %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
    %2:2 = stablehlo.while(%i = %1, %j = %c) : tensor<8xf32>, tensor<2x2xi32>
    cond {
      %p = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %k = stablehlo.slice %j [0:2:1, 0:2] : (tensor<2x2xi32>) -> tensor<2x2xi32>
      stablehlo.return %i, %k : tensor<8xf32>, tensor<2x2xi32>
    }
    %3 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {u.v = {a = [1]}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %4 = sdy.manual_computation(%3) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<2x8xf32>) {
      sdy.return %b : tensor<2x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %4 : tensor<8x8xf32>
  }
}
#loc2 = loc(unknown)
)";

TEST(Refusal, EveryTruncationIsRefusedOrRead) {
  ASSERT_NE(opsText(accept(kProgram)), "");
  llvm::StringRef text = kProgram;
  Collect sink;
  for (size_t n = 0; n < text.size(); ++n) {
    auto module = readProgram(text.take_front(n), "t.mlir", sink);
    if (!module) llvm::consumeError(module.takeError());
  }
}

TEST(Refusal, NoMutationBringsItDown) {
  std::string text = kProgram;
  const std::string kBytes = "\"'(){}[]<>%#@!:=,-x0123456789?\n\t\\^ae\x01\x7f\xff";
  uint64_t state = 12345;
  auto next = [&](uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
  };
  Collect sink;
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = text;
    for (uint64_t edits = 1 + next(4); edits > 0; --edits) {
      size_t at = next(damaged.size());
      switch (next(4)) {
        case 0:
          damaged[at] = kBytes[next(kBytes.size())];
          break;
        case 1:
          damaged.erase(at, 1 + next(20));
          break;
        case 2:
          damaged.insert(at, damaged, next(damaged.size()), 1 + next(30));
          break;
        case 3:
          damaged.insert(at, 1, kBytes[next(kBytes.size())]);
          break;
      }
    }
    auto module = readProgram(damaged, "t.mlir", sink);
    if (!module) llvm::consumeError(module.takeError());
    sink.all.clear();
  }
}

TEST(Refusal, DeepNestingIsRefused) {
  auto repeat = [](const char* piece, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += piece;
    return all;
  };
  const int kTimes = 100000;
  std::string loc = "func.func @main() {\nreturn loc(" + repeat("callsite(", kTimes);
  EXPECT_NE(refusal(loc).find("nest too deeply"), std::string::npos);
  std::string types = "func.func @main(%a: " + repeat("tuple<", kTimes);
  EXPECT_NE(refusal(types).find("nest too deeply"), std::string::npos);
  std::string regions = "func.func @main() {\n" + repeat("\"stablehlo.case\"() ({\n", kTimes);
  EXPECT_NE(refusal(regions).find("nest too deeply"), std::string::npos);
  std::string lists = "func.func @main() {\n\"stablehlo.iota\"() {dimensions = " + repeat("[", kTimes);
  EXPECT_NE(refusal(lists).find("nest too deeply"), std::string::npos);
  std::string structs = "func.func @main() {\n\"stablehlo.iota\"() {dimension_numbers = " +
                        repeat("#s<dimension_numbers = ", kTimes);
  EXPECT_NE(refusal(structs).find("nest too deeply"), std::string::npos);
  std::string rank = "func.func @main(%a: tensor<" + repeat("1x", kTimes) + "f32>) {\nreturn\n}";
  EXPECT_NE(refusal(rank).find("too many dimensions"), std::string::npos);
  std::string aliases;
  for (int i = 0; i < 5000; ++i)
    aliases += "#loc" + std::to_string(i) + " = loc(\"n\"(#loc" + std::to_string(i + 1) + "))\n";
  EXPECT_NE(refusal(aliases + "#loc5000 = loc(unknown)\nmodule {}").find("nest too deeply"),
            std::string::npos);
}

}  // namespace
}  // namespace tpu::frontend
