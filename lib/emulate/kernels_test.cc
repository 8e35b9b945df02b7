// The programs of testdata/kernels, written by hand as the yardstick of what the machine can do: values bit for bit, and how
// near they come to the floor of what they ask for.
#include <bit>
#include <cstdio>
#include <cstring>

#include "llvm/Support/MemoryBuffer.h"
#include "testing.h"
#include "tpu/support/fma_gemm.h"

namespace tpu::emulate {
namespace {

using namespace testing;

std::string kernelText(const std::string& name) {
  auto file = llvm::MemoryBuffer::getFile(std::string(TPU_SOURCE_DIR "/testdata/kernels/") + name);
  EXPECT_TRUE(static_cast<bool>(file)) << name;
  return file ? (*file)->getBuffer().str() : "";
}
std::string replace(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// bf16 values with few bits, so that products differ but stay of like size.
HostTensor bf16Random(std::vector<int64_t> dims, uint32_t seed) {
  HostTensor t(ElementType::kBF16, dims);
  auto* words = t.data<uint16_t>();
  for (int64_t i = 0; i < t.numElements(); ++i) {
    seed = seed * 1664525 + 1013904223;
    words[i] = static_cast<uint16_t>(0x3f00 | (seed >> 24 & 0x7f) | (seed >> 8 & 0x8000));
  }
  return t;
}
float asFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Rows [first, first + rows) of a b: a chain per panel of 128 of k, the panels added in order.
std::vector<float> product(const HostTensor& a, const HostTensor& b, int64_t first, int64_t rows) {
  const int64_t k = a.dims[1], n = b.dims[1];
  std::vector<float> left(static_cast<size_t>(rows * k)), right(static_cast<size_t>(k * n)), sum(static_cast<size_t>(rows * n), 0.0f);
  for (int64_t i = 0; i < rows * k; ++i) left[static_cast<size_t>(i)] = asFloat(a.data<uint16_t>()[first * k + i]);
  for (int64_t i = 0; i < k * n; ++i) right[static_cast<size_t>(i)] = asFloat(b.data<uint16_t>()[i]);
  for (int64_t panel = 0; panel < k; panel += 128) {
    std::vector<float> part(sum.size(), 0.0f);
    fmaGemm(left.data() + panel, k, right.data() + panel * n, n, part.data(), n, rows, n, 128);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  return sum;
}

RunResult runMatmul(int64_t size, const RunOptions& options) {
  const isa::Program p = programFrom(replace(kernelText("matmul_bf16.s"), ".equ SIZE, 4096", ".equ SIZE, " + std::to_string(size)));
  const HostTensor a = bf16Random({size, size}, 1), b = bf16Random({size, size}, 2);
  RunResult r = mustRun(p, {a, b}, options);
  if (r.results.empty()) return r;
  for (const int64_t first : {int64_t{0}, size / 2 + 40, size - 16}) {
    const std::vector<float> want = product(a, b, first, 16);
    EXPECT_EQ(std::memcmp(want.data(), r.results[0].data<float>() + first * size, want.size() * 4), 0) << "rows from " << first;
  }
  return r;
}

TEST(Kernels, MatmulSmall) { runMatmul(1024, {.strict = true}); }

TEST(Kernels, MatmulReachesNinetyFivePercent) {
  const RunResult r = runMatmul(4096, {});
  std::printf("%s\n", summary(r).c_str());
  EXPECT_GE(r.stats.efficiency, 0.95);
}

}  // namespace
}  // namespace tpu::emulate
