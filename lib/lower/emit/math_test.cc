// Measures every function against references of more precision: largest error in units in the last place over samples
// that cover all exponents, the neighbourhood of hard points, and the special values.
#include <algorithm>
#include <bit>
#include <functional>

#include "emit_test_util.h"
#include "expr.h"

namespace tpu::lower {
namespace {

using hlo::Opcode;
using Real = long double;

float fromBits(uint32_t u) { return std::bit_cast<float>(u); }

// Distance of a result from the exact value in units in the last place of the f32 nearest to it.
double ulps(float got, Real want) {
  const float rounded = static_cast<float>(want);
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : 1e30;
  if (std::isnan(got)) return 1e30;
  if (std::isinf(rounded) || std::isinf(got)) {
    if (got == rounded) return 0;
    // Rounding at the edge of the range.
    const Real big = 3.4028234663852886e38L;
    const Real a = std::isinf(got) ? (got > 0 ? 0x1p128L : -0x1p128L) : static_cast<Real>(got);
    const Real b = std::isinf(rounded) ? std::clamp(want, -0x1p128L, 0x1p128L) : want;
    return std::fabs(b) >= big * 0.99L ? static_cast<double>(std::fabs(a - b) / 0x1p104L) : 1e30;
  }
  int e = 0;
  std::frexp(std::fabs(rounded), &e);
  const Real ulp = std::ldexp(1.0L, std::max(e - 24, -149));
  return static_cast<double>(std::fabs(static_cast<Real>(got) - want) / ulp);
}

std::vector<float> samples(uint32_t seed) {
  std::vector<float> x = {0.0f, -0.0f, 1.0f, -1.0f, fromBits(1), fromBits(0x80000001u), fromBits(0x007fffffu), fromBits(0x00800000u),
                          fromBits(0x7f7fffffu), fromBits(0xff7fffffu), fromBits(0x7f800000u), fromBits(0xff800000u), fromBits(0x7fc00000u),
                          fromBits(0xffffffffu), 0.5f, 2.0f, 3.0f, -2.0f, 88.72283f, 88.72284f, -103.97f, -87.33f, 104.0f};
  std::mt19937 rng(seed);
  for (int exponent = 0; exponent < 255; ++exponent)
    for (int i = 0; i < 256; ++i) {
      const uint32_t u = rng();
      x.push_back(fromBits((u & 0x807fffffu) | static_cast<uint32_t>(exponent) << 23));
    }
  for (int i = 0; i < 40000; ++i) x.push_back(static_cast<float>((static_cast<double>(rng()) / 4294967296.0 - 0.5) * 210));
  for (int i = 0; i < 40000; ++i) x.push_back(static_cast<float>((static_cast<double>(rng()) / 4294967296.0 - 0.5) * 8));
  for (int i = 0; i < 20000; ++i) x.push_back(1.0f + static_cast<float>((static_cast<double>(rng()) / 4294967296.0 - 0.5) * 0.6));
  // Multiples of pi/2 and their neighbours.
  for (int i = 1; i < 20000; ++i) {
    const float m = static_cast<float>(i * 1.5707963267948966);
    x.push_back(m);
    x.push_back(std::nextafter(m, 1e30f));
  }
  for (uint32_t hard : {0x4c960000u, 0x5f18b878u, 0x6f79be45u, 0x7a38ab34u, 0x46427f1bu, 0x6a1976f1u, 0x5ebbff12u}) x.push_back(fromBits(hard));
  while (x.size() % 128) x.push_back(1.0f);
  return x;
}

HostTensor tensorOf(const std::vector<float>& x) {
  HostTensor t(ElementType::kF32, {static_cast<int64_t>(x.size())});
  std::copy(x.begin(), x.end(), t.data<float>());
  return t;
}

// Emits one op over all samples and reports the worst one.
double worst(Opcode op, const std::vector<std::vector<float>>& args, const std::function<Real(Real, Real)>& reference,
             const char* name, bool zero_sign = true) {
  const target::Chip chip = chipNamed("v5e");
  LoopSpec spec;
  const int64_t n = static_cast<int64_t>(args[0].size());
  spec.shape = {n};
  std::vector<HostTensor> inputs;
  ExprNode node = opNode(op, ElementType::kF32, {});
  for (size_t i = 0; i < args.size(); ++i) {
    spec.inputs.push_back({ElementType::kF32, spec.shape, false});
    spec.nodes.push_back(inputNode(static_cast<int>(i), ElementType::kF32));
    node.args.push_back(static_cast<int>(i));
    inputs.push_back(tensorOf(args[i]));
  }
  spec.nodes.push_back(node);
  spec.outputs = {static_cast<int>(args.size())};
  auto kernel = emitLoop(spec, chip, "k");
  auto out = runKernel(std::move(kernel), chip, inputs, {{ElementType::kF32, {n}}});
  if (out.empty()) return 1e30;
  double most = 0;
  int shown = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float x = args[0][i], y = args.size() > 1 ? args[1][i] : 0;
    const Real want = reference(x, y);
    const float got = out[0].data<float>()[i];
    double error = ulps(got, want);
    if (zero_sign && want == 0 && got == 0 && std::signbit(want) != std::signbit(got)) error = 1e29;
    if (error > 2 && shown++ < 5)
      printf("  %s(%.9g, %.9g) = %.9g, exact %.12Lg: %.3g ulp\n", name, x, y, got, want, error);
    most = std::max(most, error);
  }
  printf("%-12s %.3f ulp\n", name, most);
  ::testing::Test::RecordProperty(name, std::to_string(most));
  return most;
}

double worst1(Opcode op, const std::function<Real(Real)>& f, const char* name) {
  return worst(op, {samples(7)}, [&](Real x, Real) { return f(x); }, name);
}

TEST(Math, Exponentials) {
  EXPECT_LE(worst1(Opcode::exponential, [](Real x) { return expl(x); }, "exp"), 2);
  EXPECT_LE(worst1(Opcode::exponential_minus_one, [](Real x) { return expm1l(x); }, "expm1"), 2);
  EXPECT_LE(worst1(Opcode::logistic, [](Real x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }, "logistic"), 2);
  EXPECT_LE(worst1(Opcode::tanh, [](Real x) { return tanhl(x); }, "tanh"), 2);
}
TEST(Math, Logarithms) {
  EXPECT_LE(worst1(Opcode::log, [](Real x) { return logl(x); }, "log"), 2);
  EXPECT_LE(worst1(Opcode::log_plus_one, [](Real x) { return log1pl(x); }, "log1p"), 2);
}
TEST(Math, Roots) {
  EXPECT_LE(worst1(Opcode::sqrt, [](Real x) { return sqrtl(x); }, "sqrt"), 2);
  EXPECT_LE(worst1(Opcode::rsqrt, [](Real x) { return 1 / sqrtl(x); }, "rsqrt"), 2);
  EXPECT_LE(worst1(Opcode::cbrt, [](Real x) { return cbrtl(x); }, "cbrt"), 2);
}
TEST(Math, Trigonometry) {
  EXPECT_LE(worst1(Opcode::sine, [](Real x) { return sinl(x); }, "sin"), 2);
  EXPECT_LE(worst1(Opcode::cosine, [](Real x) { return cosl(x); }, "cos"), 2);
  EXPECT_LE(worst1(Opcode::tan, [](Real x) { return tanl(x); }, "tan"), 2);
}
TEST(Math, ErrorFunction) {
  EXPECT_LE(worst1(Opcode::chlo_erf, [](Real x) { return erfl(x); }, "erf"), 2);
}

std::pair<std::vector<float>, std::vector<float>> pairs() {
  std::vector<float> x = samples(11), y = samples(12);
  std::mt19937 rng(13);
  std::shuffle(y.begin(), y.end(), rng);
  const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -3.0f, 0.5f, fromBits(1), fromBits(0x7f7fffffu), fromBits(0x7f800000u),
                           fromBits(0xff800000u), fromBits(0x7fc00000u), 1e-30f, -1e30f, 7.0f, fromBits(0x00800000u)};
  for (float a : special)
    for (float b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  for (int i = 0; i < 60000; ++i) {  // close to each other in size
    const float a = fromBits(rng() & 0xbfffffffu);
    const float b = a * static_cast<float>(0.01 + static_cast<double>(rng()) / 4294967296.0 * 3);
    x.push_back(a);
    y.push_back(i % 2 ? -b : b);
  }
  while (x.size() % 128) {
    x.push_back(1);
    y.push_back(1);
  }
  return {x, y};
}

TEST(Math, DivideAndRemainder) {
  const auto [x, y] = pairs();
  EXPECT_LE(worst(Opcode::divide, {x, y}, [](Real a, Real b) { return a / b; }, "divide"), 2);
  EXPECT_LE(worst(Opcode::remainder, {x, y}, [](Real a, Real b) { return fmodl(a, b); }, "remainder"), 0);
}
TEST(Math, ArcTangent) {
  const auto [x, y] = pairs();
  EXPECT_LE(worst(Opcode::atan2, {x, y}, [](Real a, Real b) { return atan2l(a, b); }, "atan2"), 2);
}
TEST(Math, Power) {
  auto [x, y] = pairs();
  std::mt19937 rng(17);
  for (int i = 0; i < 200000; ++i) {  // results in range
    const float a = fromBits(rng() & 0x7fffffffu);
    if (!(a > 0) || std::isinf(a)) continue;
    const double l = std::log2(static_cast<double>(a));
    const double target = (static_cast<double>(rng()) / 4294967296.0 - 0.5) * 290;
    x.push_back(a);
    y.push_back(static_cast<float>(target / (l == 0 ? 1 : l)));
  }
  for (int i = 0; i < 50000; ++i) {
    const float a = 1.0f + static_cast<float>((static_cast<double>(rng()) / 4294967296.0 - 0.5) * 0.9);
    x.push_back(a);
    y.push_back(static_cast<float>((static_cast<double>(rng()) / 4294967296.0 - 0.5) * 400));
    x.push_back(-a * 3);
    y.push_back(static_cast<float>(static_cast<int>(rng() % 61) - 30));
  }
  while (x.size() % 128) {
    x.push_back(1);
    y.push_back(1);
  }
  EXPECT_LE(worst(Opcode::power, {x, y}, [](Real a, Real b) { return powl(a, b); }, "power"), 2);
}

}  // namespace
}  // namespace tpu::lower
