// Chains of elementwise ops against the same ops one by one, and vector loops against the plain ones, bit for
// bit.
#include <bit>
#include <limits>

#include "loops.h"
#include "test_util.h"
#include "tpu/eval/math.h"

namespace tpu::eval {
namespace {

// Asks for every op, so that no op runs inside of another's chain.
struct EveryOp : Observer {
  std::optional<hlo::Dims> wants(hlo::OpId) override { return std::nullopt; }
  void see(hlo::OpId, const HostTensor&) override {}
};

std::vector<HostTensor> oneByOne(const std::string& text, std::vector<HostTensor> inputs) {
  Collected sink;
  EveryOp all;
  auto module = llvm::cantFail(frontend::readProgram(text, "test.mlir", sink));
  return llvm::cantFail(evaluate(module, std::move(inputs), &sink, {.observer = &all}));
}

void expectSame(const std::string& text, const std::vector<HostTensor>& inputs) {
  EXPECT_TRUE(run(text, inputs) == oneByOne(text, inputs));
}

std::vector<float> ramp(int64_t n) {
  std::vector<float> v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = static_cast<float>((i * 37) % 1001 - 500) / 64;
  return v;
}

TEST(Fused, BroadcastsOfEveryPlaceAndTypes) {
  const std::string text =
      R"(func.func @main(%a: tensor<7x30x11xf32>, %rows: tensor<7x30xf32>, %last: tensor<11xf32>,
      %middle: tensor<30xf32>, %s: tensor<f32>) -> (tensor<7x30x11xbf16>, tensor<7x30x11xf32>) {
    %zero = stablehlo.constant dense<0.5> : tensor<7x30x11xf32>
    %0 = stablehlo.broadcast_in_dim %rows, dims = [0, 1] : (tensor<7x30xf32>) -> tensor<7x30x11xf32>
    %1 = stablehlo.broadcast_in_dim %last, dims = [2] : (tensor<11xf32>) -> tensor<7x30x11xf32>
    %2 = stablehlo.broadcast_in_dim %middle, dims = [1] : (tensor<30xf32>) -> tensor<7x30x11xf32>
    %3 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<7x30x11xf32>
    %4 = stablehlo.subtract %a, %0 : tensor<7x30x11xf32>
    %5 = stablehlo.multiply %4, %1 : tensor<7x30x11xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<7x30x11xf32>
    %7 = stablehlo.add %6, %2 : tensor<7x30x11xf32>
    %8 = stablehlo.compare GT, %7, %3, FLOAT : (tensor<7x30x11xf32>, tensor<7x30x11xf32>) -> tensor<7x30x11xi1>
    %9 = stablehlo.select %8, %7, %zero : tensor<7x30x11xi1>, tensor<7x30x11xf32>
    %10 = stablehlo.convert %9 : (tensor<7x30x11xf32>) -> tensor<7x30x11xbf16>
    %11 = stablehlo.multiply %10, %10 : tensor<7x30x11xbf16>
    %12 = stablehlo.add %11, %10 : tensor<7x30x11xbf16>
    %13 = stablehlo.exponential %5 : tensor<7x30x11xf32>
    %14 = stablehlo.divide %13, %1 : tensor<7x30x11xf32>
    return %12, %14 : tensor<7x30x11xbf16>, tensor<7x30x11xf32>
  })";
  expectSame(text, {f32({7, 30, 11}, ramp(2310)), f32({7, 30}, ramp(210)), f32({11}, ramp(11)),
                    f32({30}, ramp(30)), f32({}, {1.5f})});
}

TEST(Fused, IntegersToNarrowFloatsRoundOnce) {
  const std::string text =
      R"(func.func @main(%a: tensor<3000xi32>, %b: tensor<3000xi32>) -> tensor<3000xf16> {
    %0 = stablehlo.multiply %a, %b : tensor<3000xi32>
    %1 = stablehlo.convert %0 : (tensor<3000xi32>) -> tensor<3000xf16>
    %2 = stablehlo.negate %1 : tensor<3000xf16>
    return %2 : tensor<3000xf16>
  })";
  std::vector<int32_t> a(3000), b(3000);
  for (int i = 0; i < 3000; ++i) a[i] = i - 1500, b[i] = 2 * i + 1;
  expectSame(text, {s32({3000}, a), s32({3000}, b)});
}

TEST(Fused, ValuesThatOthersNeedStay) {
  const std::string text =
      R"(func.func @main(%a: tensor<2000xf32>) -> (tensor<2000xf32>, tensor<2000xf32>, tensor<2000xf32>) {
    %0 = stablehlo.add %a, %a : tensor<2000xf32>
    %1 = stablehlo.multiply %0, %a : tensor<2000xf32>
    %2 = stablehlo.negate %1 : tensor<2000xf32>
    return %a, %0, %2 : tensor<2000xf32>, tensor<2000xf32>, tensor<2000xf32>
  })";
  expectSame(text, {f32({2000}, ramp(2000))});
}

TEST(Loops, ExponentialIsTheScalarFunction) {
  std::vector<float> x, y;
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 65521)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float v : {88.7228394f, 88.7228317f, -103.97f, -87.3365479f, 200.0f, -200.0f, 0.0f, -0.0f, 1e-40f})
    x.push_back(v);
  y.resize(x.size());
  findUnary(hlo::Opcode::exponential, ElementType::kF32)(reinterpret_cast<const uint8_t*>(x.data()),
                                                         reinterpret_cast<uint8_t*>(y.data()),
                                                         static_cast<int64_t>(x.size()));
  int different = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const float want = static_cast<float>(math::exp(x[i]));
    different +=
        std::bit_cast<uint32_t>(want) != std::bit_cast<uint32_t>(y[i]) && !(want != want && y[i] != y[i]);
  }
  EXPECT_EQ(different, 0);
}

TEST(Loops, MaximumAndMinimumOfSpecialValues) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x, y;
  for (float a : {0.0f, -0.0f, 1.0f, -1.0f, inf, -inf, nan, 1e-40f})
    for (float b : {0.0f, -0.0f, 1.0f, -1.0f, inf, -inf, nan, 1e-40f}) x.push_back(a), y.push_back(b);
  x.push_back(-0.0f), y.push_back(0.0f);  // after the last whole vector
  std::vector<float> high(x.size()), low(x.size());
  const auto bytes = [](std::vector<float>& v) { return reinterpret_cast<uint8_t*>(v.data()); };
  const auto count = static_cast<int64_t>(x.size());
  findBinary(hlo::Opcode::maximum, ElementType::kF32)(bytes(x), bytes(y), bytes(high), count);
  findBinary(hlo::Opcode::minimum, ElementType::kF32)(bytes(x), bytes(y), bytes(low), count);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(high[i]), std::bit_cast<uint32_t>(ieeeMaximum(x[i], y[i])));
    EXPECT_EQ(std::bit_cast<uint32_t>(low[i]), std::bit_cast<uint32_t>(ieeeMinimum(x[i], y[i])));
  }
}

}  // namespace
}  // namespace tpu::eval
