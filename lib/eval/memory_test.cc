// How much memory programs need, by value.
#include "test_util.h"

namespace tpu::eval {
namespace {

MemoryNeed need(const std::string& text) {
  Collected sink;
  auto module = frontend::readProgram(text, "test.mlir", sink);
  if (!module) {
    ADD_FAILURE() << message(module.takeError());
    return {};
  }
  return memoryNeed(*module);
}

constexpr int64_t kRow = 4096;  // bytes of tensor<1024xf32>

std::string program(const std::string& ops) {
  return "func.func @main(%a: tensor<1024xf32>) -> tensor<1024xf32> {\n" + ops + "}\n";
}

TEST(MemoryNeed, OperandsThatDieAreWrittenOver) {
  EXPECT_EQ(need(program("  return %a : tensor<1024xf32>\n")).bytes, kRow);
  EXPECT_EQ(need(program("  %0 = stablehlo.abs %a : tensor<1024xf32>\n  return %0 : tensor<1024xf32>\n")).bytes, kRow);
  // Here %a lives on.
  EXPECT_EQ(need(program("  %0 = stablehlo.abs %a : tensor<1024xf32>\n  %1 = stablehlo.add %0, %a : tensor<1024xf32>\n"
                         "  return %1 : tensor<1024xf32>\n"))
                .bytes,
            2 * kRow);
}

TEST(MemoryNeed, NamesThePlaceOfTheLargest) {
  const MemoryNeed n = need(
      program("  %0 = stablehlo.abs %a : tensor<1024xf32>\n"
              "  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<1024xf32>) -> tensor<3x1024xf32>\n"
              "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
              "  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0] : "
              "(tensor<3x1024xf32>, tensor<f32>) -> tensor<1024xf32>\n  return %2 : tensor<1024xf32>\n"));
  EXPECT_EQ(n.bytes, 4 * kRow + 4);  // %1, %2 and the constant
  EXPECT_EQ(n.loc, "test.mlir:3:8");
}

TEST(MemoryNeed, ConstantsAreKept) {
  EXPECT_EQ(need(program("  %0 = stablehlo.constant dense<1.0> : tensor<1024xf32>\n"
                         "  %1 = stablehlo.add %a, %0 : tensor<1024xf32>\n  return %1 : tensor<1024xf32>\n"))
                .bytes,
            2 * kRow);
}

TEST(MemoryNeed, LoopsCallsAndBranches) {
  EXPECT_EQ(need("func.func @main(%a: tensor<1024xf32>) -> tensor<1024xf32> {\n"
                 "  %0 = call @f(%a) : (tensor<1024xf32>) -> tensor<1024xf32>\n"
                 "  %1 = call @f(%0) : (tensor<1024xf32>) -> tensor<1024xf32>\n  return %1 : tensor<1024xf32>\n}\n"
                 "func.func private @f(%a: tensor<1024xf32>) -> tensor<1024xf32> {\n"
                 "  %0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<1024xf32>) -> tensor<7x1024xf32>\n"
                 "  %1 = stablehlo.slice %0 [0:1, 0:1024] : (tensor<7x1024xf32>) -> tensor<1x1024xf32>\n"
                 "  %2 = stablehlo.reshape %1 : (tensor<1x1024xf32>) -> tensor<1024xf32>\n"
                 "  return %2 : tensor<1024xf32>\n}\n")
                .bytes,
            8 * kRow);
  // The branch that is taken is not known: the cheaper one counts, the predicate is gone.
  EXPECT_EQ(need("func.func @main(%p: tensor<i1>, %a: tensor<1024xf32>) -> tensor<1024xf32> {\n"
                 "  %r = \"stablehlo.if\"(%p) ({\n"
                 "    %0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<1024xf32>) -> tensor<7x1024xf32>\n"
                 "    %1 = stablehlo.slice %0 [0:1, 0:1024] : (tensor<7x1024xf32>) -> tensor<1x1024xf32>\n"
                 "    %2 = stablehlo.reshape %1 : (tensor<1x1024xf32>) -> tensor<1024xf32>\n"
                 "    stablehlo.return %2 : tensor<1024xf32>\n  }, {\n"
                 "    %0 = stablehlo.negate %a : tensor<1024xf32>\n"
                 "    stablehlo.return %0 : tensor<1024xf32>\n"
                 "  }) : (tensor<i1>) -> tensor<1024xf32>\n  return %r : tensor<1024xf32>\n}\n")
                .bytes,
            2 * kRow);
}

TEST(MemoryNeed, SizesBeyondAnyHostDoNotWrap) {
  const MemoryNeed n = need("func.func @main(%a: tensor<f32>) {\n"
                            "  %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> "
                            "tensor<4611686018427387904xf32>\n  return\n}\n");
  EXPECT_EQ(n.bytes, INT64_MAX);
}

TEST(DynamicShapes, AreCheckedBeforeAnythingIsTaken) {
  const auto complaint = [](const std::string& op, HostTensor shape) {
    Collected sink;
    auto module = frontend::readProgram("func.func @main(%s: tensor<1xi64>) -> tensor<?xf32> {\n  %0 = " + op +
                                            "\n  return %0 : tensor<?xf32>\n}\n",
                                        "test.mlir", sink);
    if (!module) return message(module.takeError());
    auto out = evaluate(*module, {std::move(shape)});
    return out ? std::string() : message(out.takeError());
  };
  const auto shape = [](int64_t d) { return tensorOf<int64_t>(ElementType::kS64, {1}, {d}); };
  const std::string iota = "\"stablehlo.dynamic_iota\"(%s) {iota_dimension = 0 : i64} : (tensor<1xi64>) -> tensor<?xf32>";
  EXPECT_EQ(complaint(iota, shape(3)), "");
  EXPECT_NE(complaint(iota, shape(-1)).find("not the result's"), std::string::npos);
  EXPECT_NE(complaint(iota, shape(int64_t{1} << 40)).find("the result needs at least 4.00 TiB"), std::string::npos);
  EXPECT_NE(complaint(iota, shape(int64_t{1} << 62)).find("the result needs more than 8 EiB"), std::string::npos);
}

}  // namespace
}  // namespace tpu::eval
