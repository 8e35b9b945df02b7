// Ops by value: one small program each, with the cases that implementations get wrong.
#include <cmath>
#include <limits>

#include "test_util.h"

namespace tpu::eval {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// "%r = <body>" on arguments a, b ... of the given types.
std::string program(const std::string& args, const std::string& body, const std::string& result) {
  return "module { func.func public @main(" + args + ") -> (" + result + ") {\n" + body +
         "\n return %r : " + result + "\n} }";
}

TEST(Ops, IntegersWrapAndDivideTotally) {
  auto div = run(program("%a: tensor<5xi32>, %b: tensor<5xi32>",
                         "%r = stablehlo.divide %a, %b : tensor<5xi32>", "tensor<5xi32>"),
                 {s32({5}, {7, -7, INT32_MIN, 5, -8}), s32({5}, {2, 2, -1, 0, 3})});
  EXPECT_EQ(valuesOf<int32_t>(div[0]), (std::vector<int32_t>{3, -3, INT32_MIN, -1, -2}));
  auto rem = run(program("%a: tensor<4xi32>, %b: tensor<4xi32>",
                         "%r = stablehlo.remainder %a, %b : tensor<4xi32>", "tensor<4xi32>"),
                 {s32({4}, {7, -7, INT32_MIN, 5}), s32({4}, {2, 2, -1, 0})});
  EXPECT_EQ(valuesOf<int32_t>(rem[0]), (std::vector<int32_t>{1, -1, 0, 5}));
  auto add = run(program("%a: tensor<2xi32>", "%r = stablehlo.add %a, %a : tensor<2xi32>", "tensor<2xi32>"),
                 {s32({2}, {INT32_MAX, 3})});
  EXPECT_EQ(valuesOf<int32_t>(add[0]), (std::vector<int32_t>{-2, 6}));
  auto shift = run(program("%a: tensor<3xi32>, %b: tensor<3xi32>",
                           "%r = stablehlo.shift_right_arithmetic %a, %b : tensor<3xi32>", "tensor<3xi32>"),
                   {s32({3}, {-8, -8, 8}), s32({3}, {1, 40, 40})});
  EXPECT_EQ(valuesOf<int32_t>(shift[0]), (std::vector<int32_t>{-4, -1, 0}));
}

TEST(Ops, NarrowIntegersWrapAtTheirWidth) {
  HostTensor a = tensorOf<int8_t>(ElementType::kS4, {3}, {7, -8, 5});
  auto r = run(program("%a: tensor<3xi4>", "%r = stablehlo.add %a, %a : tensor<3xi4>", "tensor<3xi4>"), {a});
  EXPECT_EQ(valuesOf<int8_t>(r[0]), (std::vector<int8_t>{-2, 0, -6}));
  auto n =
      run(program("%a: tensor<3xi4>", "%r = stablehlo.count_leading_zeros %a : tensor<3xi4>", "tensor<3xi4>"),
          {a});
  EXPECT_EQ(valuesOf<int8_t>(n[0]), (std::vector<int8_t>{1, 0, 1}));
}

TEST(Ops, MaximumPropagatesNanAndOrdersZeros) {
  auto r = run(program("%a: tensor<4xf32>, %b: tensor<4xf32>",
                       "%r = stablehlo.maximum %a, %b : tensor<4xf32>", "tensor<4xf32>"),
               {f32({4}, {1, kNan, -0.0f, 2}), f32({4}, {kNan, 1, 0.0f, -kInf})});
  const auto v = valuesOf<float>(r[0]);
  EXPECT_TRUE(std::isnan(v[0]));
  EXPECT_TRUE(std::isnan(v[1]));
  EXPECT_FALSE(std::signbit(v[2]));
  EXPECT_EQ(v[3], 2);
}

TEST(Ops, ConversionsSaturateAndRoundOnce) {
  auto to_int = run(program("%a: tensor<5xf32>",
                            "%r = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xi8>", "tensor<5xi8>"),
                    {f32({5}, {1.9f, -1.9f, 300, -300, kNan})});
  EXPECT_EQ(valuesOf<int8_t>(to_int[0]), (std::vector<int8_t>{1, -1, 127, -128, 0}));
  // 1 + 2^-8 + 2^-30 in f64 lies above the tie that f32 would round it to.
  auto once = run(
      program("%a: tensor<f64>", "%r = stablehlo.convert %a : (tensor<f64>) -> tensor<bf16>", "tensor<bf16>"),
      {tensorOf<double>(ElementType::kF64, {}, {1 + 0x1p-8 + 0x1p-30})});
  EXPECT_EQ(valuesOf<uint16_t>(once[0])[0], 0x3f81);
}

TEST(Ops, Bf16SumsAccumulateInF32) {
  const std::string sum = R"(
    %z = stablehlo.constant dense<0.0> : tensor<bf16>
    %o = stablehlo.constant dense<1.0> : tensor<512xbf16>
    %r = stablehlo.reduce(%o init: %z) applies stablehlo.add across dimensions = [0] : (tensor<512xbf16>, tensor<bf16>) -> tensor<bf16>)";
  auto r = run(program("", sum, "tensor<bf16>"));
  EXPECT_EQ(valuesOf<uint16_t>(r[0])[0], 0x4400);  // 512
}

TEST(Ops, ReduceWithAnyRegion) {
  // argmax: two operands, neighbours folded in order, the first of equals wins.
  const std::string argmax = R"(
    %i = stablehlo.iota dim = 1 : tensor<2x5xi32>
    %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %v:2 = stablehlo.reduce(%a init: %m), (%i init: %z) across dimensions = [1] : (tensor<2x5xf32>, tensor<2x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
     reducer(%x: tensor<f32>, %y: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>)  {
      %gt = stablehlo.compare GT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %eq = stablehlo.compare EQ, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %lt = stablehlo.compare LT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %both = stablehlo.and %eq, %lt : tensor<i1>
      %keep = stablehlo.or %gt, %both : tensor<i1>
      %s = stablehlo.select %gt, %x, %y : tensor<i1>, tensor<f32>
      %t = stablehlo.select %keep, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %s, %t : tensor<f32>, tensor<i32>
    }
    %r = stablehlo.reshape %v#1 : (tensor<2xi32>) -> tensor<2xi32>)";
  auto r = run(program("%a: tensor<2x5xf32>", argmax, "tensor<2xi32>"),
               {f32({2, 5}, {1, 9, 3, 9, 2, 5, 4, 3, 2, 5})});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{1, 0}));
}

// As JAX prints the reducer of a psum over one axis of a mesh whose other axes are left to the compiler.
TEST(Ops, ShardingsInARegionChangeNothing) {
  const auto out = run(R"(
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%x: tensor<2x2xf32>) -> tensor<2xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      %c = sdy.sharding_constraint %s <@mesh, []> : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
    return %r : tensor<2xf32>
  }
})",
                       {f32({2, 2}, {1, 2, 3, 4})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(valuesOf<float>(out[0]), (std::vector<float>{4, 6}));
}

TEST(Ops, ReduceOverSeparatedDims) {
  std::vector<int32_t> values(24);
  for (int i = 0; i < 24; ++i) values[i] = i;
  const std::string sum = R"(
    %z = stablehlo.constant dense<100> : tensor<i32>
    %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0, 2] : (tensor<2x3x4xi32>, tensor<i32>) -> tensor<3xi32>)";
  auto r = run(program("%a: tensor<2x3x4xi32>", sum, "tensor<3xi32>"), {s32({2, 3, 4}, values)});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{160, 192, 224}));
}

TEST(Ops, LongSumsKeepTheirDigits) {
  const std::string sum = R"(
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %o = stablehlo.constant dense<0.1> : tensor<1000000xf32>
    %r = stablehlo.reduce(%o init: %z) applies stablehlo.add across dimensions = [0] : (tensor<1000000xf32>, tensor<f32>) -> tensor<f32>)";
  auto r = run(program("", sum, "tensor<f32>"));
  EXPECT_NEAR(valuesOf<float>(r[0])[0], 100000.0015, 0.1);
}

TEST(Ops, SliceBoundsAreClamped) {
  const auto slice = [](int32_t at) {
    return valuesOf<int32_t>(
        run(program("%a: tensor<16xi32>, %i: tensor<i32>",
                    "%r = stablehlo.dynamic_slice %a, %i, sizes = [4] : (tensor<16xi32>, tensor<i32>) -> "
                    "tensor<4xi32>",
                    "tensor<4xi32>"),
            {s32({16}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}), s32({}, {at})})[0]);
  };
  EXPECT_EQ(slice(6), (std::vector<int32_t>{6, 7, 8, 9}));
  EXPECT_EQ(slice(14), (std::vector<int32_t>{12, 13, 14, 15}));
  EXPECT_EQ(slice(-3), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(Ops, PadWithNegativeEdgesAndInterior) {
  const std::string pad = R"(
    %z = stablehlo.constant dense<9> : tensor<i32>
    %r = stablehlo.pad %a, %z, low = [-1], high = [2], interior = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<8xi32>)";
  auto r = run(program("%a: tensor<4xi32>", pad, "tensor<8xi32>"), {s32({4}, {1, 2, 3, 4})});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{9, 2, 9, 3, 9, 4, 9, 9}));
}

TEST(Ops, ScatterAddDropsWhatFallsOutside) {
  const std::string scatter = R"(
    %r = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8xf32>, tensor<10x1xi32>, tensor<10xf32>) -> tensor<8xf32>)";
  auto r =
      run(program("%a: tensor<8xf32>, %i: tensor<10x1xi32>, %u: tensor<10xf32>", scatter, "tensor<8xf32>"),
          {f32({8}, {0, 0, 0, 0, 0, 0, 0, 0}), s32({10, 1}, {0, 5, 2, 7, 0, 1, 6, 5, 8, -1}),
           f32({10}, {1, 2, 3, 4, 5, 6, 7, 8, 100, 100})});
  EXPECT_EQ(valuesOf<float>(r[0]), (std::vector<float>{6, 6, 3, 0, 0, 10, 7, 4}));
}

TEST(Ops, GroupedConvolution) {
  const std::string conv = R"(
    %r = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x4x4x4xf32>, tensor<3x3x2x4xf32>) -> tensor<2x4x4x4xf32>)";
  std::vector<float> x(128, 1);
  std::fill(x.begin() + 64, x.end(), 2);
  auto r = run(program("%a: tensor<2x4x4x4xf32>, %k: tensor<3x3x2x4xf32>", conv, "tensor<2x4x4x4xf32>"),
               {f32({2, 4, 4, 4}, x), f32({3, 3, 2, 4}, std::vector<float>(72, 1))});
  const auto v = valuesOf<float>(r[0]);
  EXPECT_EQ(v[0], 8);             // corner
  EXPECT_EQ(v[4], 12);            // edge
  EXPECT_EQ(v[(4 + 1) * 4], 18);  // inside
  EXPECT_EQ(v[64 + (4 + 1) * 4], 36);
}

TEST(Ops, ConvolutionWithStrideAndDilation) {
  std::vector<float> x;
  for (int i = 1; i <= 12; ++i) x.push_back(static_cast<float>(i));
  const auto conv = [&](const std::string& window, const std::string& n) {
    return valuesOf<float>(run(
        program(
            "%a: tensor<1x12x1xf32>, %k: tensor<5x1x1xf32>",
            "%r = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {" +
                window +
                "} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x12x1xf32>, "
                "tensor<5x1x1xf32>) -> tensor<1x" +
                n + "x1xf32>",
            "tensor<1x" + n + "x1xf32>"),
        {f32({1, 12, 1}, x), f32({5, 1, 1}, {1, 2, 3, 4, 5})})[0]);
  };
  EXPECT_EQ(conv("stride = [2], pad = [[1, 3]]", "6"), (std::vector<float>{40, 70, 100, 130, 160, 68}));
  EXPECT_EQ(conv("pad = [[4, 4]], rhs_dilate = [2]", "12"),
            (std::vector<float>{40, 52, 66, 80, 95, 110, 125, 140, 90, 100, 58, 64}));
}

TEST(Ops, SortIsStableAndTakesAnyComparator) {
  const std::string sort = R"(
    %i = stablehlo.iota dim = 0 : tensor<7xi32>
    %s:2 = "stablehlo.sort"(%a, %i) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>, %p: tensor<i32>, %q: tensor<i32>):
      %c = stablehlo.compare GT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }) : (tensor<7xi32>, tensor<7xi32>) -> (tensor<7xi32>, tensor<7xi32>)
    %r = stablehlo.concatenate %s#0, %s#1, dim = 0 : (tensor<7xi32>, tensor<7xi32>) -> tensor<14xi32>)";
  auto r = run(program("%a: tensor<7xi32>", sort, "tensor<14xi32>"), {s32({7}, {3, 1, 3, 2, 9, 1, 3})});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{9, 3, 3, 3, 2, 1, 1, 4, 0, 2, 6, 3, 1, 5}));
}

TEST(Ops, TopKBreaksTiesByIndex) {
  const std::string body = R"(
    %v, %i = chlo.top_k(%a, k = 4) : tensor<2x6xi32> -> (tensor<2x4xi32>, tensor<2x4xi32>)
    %r = stablehlo.concatenate %v, %i, dim = 1 : (tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x8xi32>)";
  auto r = run(program("%a: tensor<2x6xi32>", body, "tensor<2x8xi32>"),
               {s32({2, 6}, {5, -1, 5, 7, -2, 5, 0, 0, 0, 0, 0, 0})});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{7, 5, 5, 5, 3, 0, 2, 5, 0, 0, 0, 0, 0, 1, 2, 3}));
}

TEST(Ops, DotOfIntegersIsExact) {
  const std::string dot = R"(
    %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xi8>, tensor<3x2xi8>) -> tensor<2x2xi32>)";
  auto r = run(program("%a: tensor<2x3xi8>, %b: tensor<3x2xi8>", dot, "tensor<2x2xi32>"),
               {tensorOf<int8_t>(ElementType::kS8, {2, 3}, {127, 127, 127, -128, -128, -128}),
                tensorOf<int8_t>(ElementType::kS8, {3, 2}, {127, -128, 127, -128, 127, -128})});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{48387, -48768, -48768, 49152}));
}

TEST(Ops, BatchedDotIsOneFmaChain) {
  const std::string dot = R"(
    %r = stablehlo.dot_general %a, %b, batching_dims = [1] x [0], contracting_dims = [2] x [2] : (tensor<2x3x4xf32>, tensor<3x5x4xf32>) -> tensor<3x2x5xf32>)";
  std::vector<float> a(24), b(60);
  for (size_t i = 0; i < a.size(); ++i) a[i] = 1.0f / static_cast<float>(i + 3);
  for (size_t i = 0; i < b.size(); ++i) b[i] = 1.0f / static_cast<float>(2 * i + 1) - 0.1f;
  auto r = run(program("%a: tensor<2x3x4xf32>, %b: tensor<3x5x4xf32>", dot, "tensor<3x2x5xf32>"),
               {f32({2, 3, 4}, a), f32({3, 5, 4}, b)});
  for (int g = 0; g < 3; ++g)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 5; ++j) {
        float want = 0;
        for (int k = 0; k < 4; ++k) want = std::fma(a[(i * 3 + g) * 4 + k], b[(g * 5 + j) * 4 + k], want);
        EXPECT_EQ(valuesOf<float>(r[0])[(g * 2 + i) * 5 + j], want);
      }
}

TEST(Ops, WhileUpdatesItsStateInPlace) {
  const std::string loop = R"(
    %z = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<5> : tensor<i32>
    %o = stablehlo.constant dense<1> : tensor<i32>
    %w:2 = stablehlo.while(%i = %z, %x = %a) : tensor<i32>, tensor<8xi32>
     cond {
      %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %u = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
      %y = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<8xi32>, tensor<1xi32>, tensor<i32>) -> tensor<8xi32>
      %j = stablehlo.add %i, %o : tensor<i32>
      stablehlo.return %j, %y : tensor<i32>, tensor<8xi32>
    }
    %r = stablehlo.add %w#1, %a : tensor<8xi32>)";
  auto r = run(program("%a: tensor<8xi32>", loop, "tensor<8xi32>"), {s32({8}, {9, 9, 9, 9, 9, 9, 9, 9})});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{9, 10, 11, 12, 13, 18, 18, 18}));
}

TEST(Ops, CaseTakesTheLastBranchOutOfRange) {
  const auto branch = [](int32_t index) {
    return valuesOf<int32_t>(run(program("%i: tensor<i32>", R"(
      %r = "stablehlo.case"(%i) ({
        %x = stablehlo.constant dense<10> : tensor<i32>
        stablehlo.return %x : tensor<i32>
      }, {
        %y = stablehlo.constant dense<20> : tensor<i32>
        stablehlo.return %y : tensor<i32>
      }) : (tensor<i32>) -> tensor<i32>)",
                                         "tensor<i32>"),
                                 {s32({}, {index})})[0])[0];
  };
  EXPECT_EQ(branch(0), 10);
  EXPECT_EQ(branch(1), 20);
  EXPECT_EQ(branch(7), 20);
  EXPECT_EQ(branch(-1), 20);
}

TEST(Ops, FftOfAnyLengthAndBack) {
  std::vector<float> x(30);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i % 11);
  const std::string body = R"(
    %f = stablehlo.fft %a, type =  RFFT, length = [15] : (tensor<2x15xf32>) -> tensor<2x8xcomplex<f32>>
    %r = stablehlo.fft %f, type =  IRFFT, length = [15] : (tensor<2x8xcomplex<f32>>) -> tensor<2x15xf32>)";
  auto r = run(program("%a: tensor<2x15xf32>", body, "tensor<2x15xf32>"), {f32({2, 15}, x)});
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(valuesOf<float>(r[0])[i], x[i], 1e-5);
}

TEST(Ops, UnsupportedIsRefusedAtItsLine) {
  Collected sink;
  auto module = frontend::readProgram(
      program("%a: tensor<f32>", "%r = stablehlo.custom_call @mystery(%a) : (tensor<f32>) -> tensor<f32>",
              "tensor<f32>"),
      "test.mlir", sink);
  ASSERT_TRUE(static_cast<bool>(module));
  auto out = evaluate(*module, {f32({}, {1})});
  ASSERT_FALSE(static_cast<bool>(out));
  EXPECT_EQ(message(out.takeError()), "test.mlir:2:6: the evaluator does not know custom_call 'mystery'; "
            "--replace-call=mystery=FILE runs a program in its place\n");
}

}  // namespace
}  // namespace tpu::eval
