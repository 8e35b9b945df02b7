// Every output must be the f32 FMA chain bit for bit, at every size around the tile edges.
#include "tpu/support/fma_gemm.h"

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"

namespace tpu {
namespace {

std::vector<float> numbers(size_t count, uint32_t seed) {
  std::vector<float> out(count);
  for (float& x : out) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(seed)) * 1e-9f;
  }
  return out;
}

void check(int m, int n, int k, int pad) {
  const int ls = k + pad, rs = n + pad, as = n + pad;
  const std::vector<float> lhs = numbers(m * ls + 1, 1), rhs = numbers(k * rs + 1, 2);
  const std::vector<float> start = numbers(m * as + 1, 3);
  std::vector<float> want = start, got = start, packed_got = start;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int p = 0; p < k; ++p)
        want[i * as + j] = std::fma(lhs[i * ls + p], rhs[p * rs + j], want[i * as + j]);
  fmaGemm(lhs.data(), ls, rhs.data(), rs, got.data(), as, m, n, k);
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * 4), 0) << m << "x" << n << "x" << k;
  FmaGemmRhs packed;
  packed.assign(rhs.data(), rs, n, k);
  fmaGemm(lhs.data(), ls, packed, packed_got.data(), as, m, k);
  EXPECT_EQ(std::memcmp(packed_got.data(), want.data(), want.size() * 4), 0) << m << "x" << n << "x" << k;
  const int part = k * 2 / 3;
  std::vector<float> part_got = start;
  got = start;
  fmaGemm(lhs.data(), ls, rhs.data(), rs, got.data(), as, m, n, part);
  fmaGemm(lhs.data(), ls, packed, part_got.data(), as, m, part);
  EXPECT_EQ(std::memcmp(part_got.data(), got.data(), got.size() * 4), 0) << m << "x" << n << "x" << part;
}

TEST(FmaGemm, IsOneChainPerOutput) {
  for (int m : {1, 2, 5, 8, 12, 13, 24, 37})
    for (int n : {1, 7, 16, 31, 32, 33, 128})
      for (int k : {0, 1, 3, 128, 129, 300}) check(m, n, k, 0);
  check(40, 1100, 20, 3);
  check(30, 64, 256, 256);  // rows a power of two apart
}

TEST(FmaGemm, PropagatesNotANumberAndInfinity) {
  const float inf = HUGE_VALF;
  const float lhs[4] = {inf, 1, 0, inf}, rhs[4] = {2, 0, 3, 1};
  float acc[4] = {};
  fmaGemm(lhs, 2, rhs, 2, acc, 2, 2, 2, 2);
  EXPECT_EQ(acc[0], inf);
  EXPECT_TRUE(std::isnan(acc[1]));
  EXPECT_EQ(acc[2], inf);
  EXPECT_EQ(acc[3], inf);
}

}  // namespace
}  // namespace tpu
