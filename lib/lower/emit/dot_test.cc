// Matrix products by value: types, remainders, batches, transposed weights, unit sides.
#include "emit_test_util.h"

namespace tpu::lower {
namespace {

target::Chip withSide(int side, int units, bool addressed) {
  target::Chip c = chipNamed(side == 256 ? (addressed ? "v7x" : "v6e") : "v5e");
  c.mxu_side = side;
  c.mxus = units;
  return c;
}

void check(const DotSpec& spec, const target::Chip& chip, int range = 8) {
  const std::vector<int64_t> lhs_dims = {spec.batch, spec.m, spec.k};
  const std::vector<int64_t> rhs_dims = spec.rhs_transposed ? std::vector<int64_t>{spec.batch, spec.n, spec.k}
                                                            : std::vector<int64_t>{spec.batch, spec.k, spec.n};
  // Small halves: every product and sum is exact in f32, whatever the order.
  const HostTensor lhs = randomTensor(spec.lhs, lhs_dims, 3, -range, range), rhs = randomTensor(spec.rhs, rhs_dims, 4, -range, range);
  auto out = runKernel(emitDot(spec, chip, "dot"), chip, {lhs, rhs}, {{spec.out, {spec.batch, spec.m, spec.n}}});
  ASSERT_EQ(out.size(), 1u) << specKey(spec) << " on " << chip.name << " side " << chip.mxu_side;
  std::vector<double> l(lhs.numElements()), r(rhs.numElements());
  for (size_t i = 0; i < l.size(); ++i) l[i] = elementAt(lhs, i);
  for (size_t i = 0; i < r.size(); ++i) r[i] = elementAt(rhs, i);
  int bad = 0;
  for (int64_t b = 0; b < spec.batch; ++b)
    for (int64_t i = 0; i < spec.m; ++i)
      for (int64_t j = 0; j < spec.n; ++j) {
        double want = 0;
        for (int64_t k = 0; k < spec.k; ++k)
          want += l[(b * spec.m + i) * spec.k + k] * (spec.rhs_transposed ? r[(b * spec.n + j) * spec.k + k] : r[(b * spec.k + k) * spec.n + j]);
        if (spec.out == ElementType::kBF16) want = roundToBf16(static_cast<float>(want));
        const double got = elementAt(out[0], (b * spec.m + i) * spec.n + j);
        if (got != want && bad++ < 3) ADD_FAILURE() << "(" << b << "," << i << "," << j << ") is " << got << ", wanted " << want;
      }
  ASSERT_EQ(bad, 0) << specKey(spec) << " on " << chip.name << " side " << chip.mxu_side;
}

struct Size {
  int64_t batch, m, n, k;
};
const std::vector<Size> kSizes = {{1, 1, 1, 1}, {1, 8, 128, 128}, {1, 16, 128, 128}, {1, 1, 300, 200}, {1, 3, 5, 7}, {2, 7, 130, 33},
                                  {3, 17, 40, 129}, {1, 100, 257, 300}, {1, 64, 64, 1}, {5, 2, 3, 4}, {1, 33, 600, 520}, {1, 260, 100, 700}, {2, 9, 9, 12}};

std::vector<target::Chip> chips() {
  return {chipNamed("v5e"), tinyChip(), withSide(256, 2, false), withSide(256, 2, true), chipNamed("v2")};
}
// Native bytes, byte operands on quarters, no bytes at all with either result path.
std::vector<target::Chip> fewChips() { return {chipNamed("v5e"), tinyChip(), withSide(256, 2, true), chipNamed("v3")}; }

TEST(EmitDot, FloatTypes) {
  for (const target::Chip& chip : chips())
    for (const Size& s : kSizes)
      for (bool t : {false, true}) {
        check({s.batch, s.m, s.n, s.k, ElementType::kBF16, ElementType::kBF16, ElementType::kF32, t, 1}, chip);
        check({s.batch, s.m, s.n, s.k, ElementType::kBF16, ElementType::kBF16, ElementType::kBF16, t, 1}, chip);
        check({s.batch, s.m, s.n, s.k, ElementType::kF32, ElementType::kF32, ElementType::kF32, t, 1}, chip);
      }
}

TEST(EmitDot, Integers) {
  for (const target::Chip& chip : fewChips())
    for (const Size& s : kSizes)
      for (bool t : {false, true}) {
        check({s.batch, s.m, s.n, s.k, ElementType::kS8, ElementType::kS8, ElementType::kS32, t, 1}, chip, 127);
        check({s.batch, s.m, s.n, s.k, ElementType::kU8, ElementType::kU8, ElementType::kS32, t, 1}, chip, 127);
      }
  check({1, 20, 30, 40, ElementType::kS8, ElementType::kU8, ElementType::kS32, false, 1}, chipNamed("v5e"), 127);
}

TEST(EmitDot, ManyPasses) {
  for (const target::Chip& chip : fewChips())
    for (const Size& s : kSizes)
      for (int passes : {3, 6}) check({s.batch, s.m, s.n, s.k, ElementType::kF32, ElementType::kF32, ElementType::kF32, passes == 3, passes}, chip, 60);
}

// Full f32 values: three and six passes come close to exact products.
TEST(EmitDot, PassesReachTheirPrecision) {
  const target::Chip chip = chipNamed("v5e");
  const int64_t m = 24, n = 136, k = 300;
  HostTensor lhs(ElementType::kF32, {1, m, k}), rhs(ElementType::kF32, {1, k, n});
  std::mt19937 rng(5);
  for (HostTensor* t : {&lhs, &rhs})
    for (int64_t i = 0; i < t->numElements(); ++i) t->data<float>()[i] = static_cast<float>(static_cast<double>(rng()) / 4294967296.0 - 0.5);
  for (auto [passes, bound] : {std::pair{1, 2e-2}, {3, 1e-4}, {6, 2e-6}}) {
    const DotSpec spec{1, m, n, k, ElementType::kF32, ElementType::kF32, ElementType::kF32, false, passes};
    auto out = runKernel(emitDot(spec, chip, "dot"), chip, {lhs, rhs}, {{ElementType::kF32, {1, m, n}}});
    ASSERT_EQ(out.size(), 1u);
    double most = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double want = 0;
        for (int64_t x = 0; x < k; ++x) want += static_cast<double>(lhs.data<float>()[i * k + x]) * rhs.data<float>()[x * n + j];
        most = std::max(most, std::abs(out[0].data<float>()[i * n + j] - want));
      }
    printf("%d passes: largest absolute error %.3g\n", passes, most);
    EXPECT_LE(most, bound);
  }
}

// Several blocks along every dimension.
TEST(EmitDot, ManyBlocks) {
  target::Chip small = chipNamed("v5e");
  small.vmem_bytes = 1 << 20;
  for (bool t : {false, true}) {
    check({1, 300, 400, 700, ElementType::kBF16, ElementType::kBF16, ElementType::kF32, t, 1}, small, 4);
    check({2, 150, 200, 400, ElementType::kF32, ElementType::kF32, ElementType::kF32, t, 1}, tinyChip(), 4);
    check({1, 70, 200, 1000, ElementType::kBF16, ElementType::kBF16, ElementType::kBF16, t, 1}, tinyChip(), 2);
    check({1, 130, 140, 500, ElementType::kS8, ElementType::kS8, ElementType::kS32, t, 1}, tinyChip(), 100);
    check({1, 64, 260, 400, ElementType::kF32, ElementType::kF32, ElementType::kF32, t, 6}, tinyChip(), 4);
  }
}

}  // namespace
}  // namespace tpu::lower
