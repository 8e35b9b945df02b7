// The programs of testdata/kernels, written by hand as the yardstick of what the machine can do: values bit
// for bit, and how near they come to the floor of what they ask for. Each stands there a second time as llo:
// the same transfers, tiles and order of additions, but loops on virtual registers with units, addresses, the
// order inside a block and the pipelining of tiles left to the scheduler. What it makes of them has to give
// the same bits at 0.95 of the speed or better, and so has the untimed interpreter.
#include <bit>
#include <cstdio>
#include <cstring>

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "testing.h"
#include "tpu/emulate/llo_interpreter.h"
#include "tpu/llo/document.h"
#include "tpu/llo/verify.h"
#include "tpu/schedule/schedule.h"
#include "tpu/support/fma_gemm.h"
#include "tpu/support/parallel.h"

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
  std::vector<float> left(static_cast<size_t>(rows * k)), right(static_cast<size_t>(k * n)),
      sum(static_cast<size_t>(rows * n), 0.0f);
  for (int64_t i = 0; i < rows * k; ++i)
    left[static_cast<size_t>(i)] = asFloat(a.data<uint16_t>()[first * k + i]);
  for (int64_t i = 0; i < k * n; ++i) right[static_cast<size_t>(i)] = asFloat(b.data<uint16_t>()[i]);
  for (int64_t panel = 0; panel < k; panel += 128) {
    std::vector<float> part(sum.size(), 0.0f);
    fmaGemm(left.data() + panel, k, right.data() + panel * n, n, part.data(), n, rows, n, 128);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  return sum;
}

RunResult runMatmul(int64_t size, const RunOptions& options) {
  const isa::Program p = programFrom(
      replace(kernelText("matmul_bf16.s"), ".equ SIZE, 4096", ".equ SIZE, " + std::to_string(size)));
  const HostTensor a = bf16Random({size, size}, 1), b = bf16Random({size, size}, 2);
  RunResult r = mustRun(p, {a, b}, options);
  if (r.results.empty()) return r;
  for (const int64_t first : {int64_t{0}, size / 2 + 40, size - 16}) {
    const std::vector<float> want = product(a, b, first, 16);
    EXPECT_EQ(std::memcmp(want.data(), r.results[0].data<float>() + first * size, want.size() * 4), 0)
        << "rows from " << first;
  }
  return r;
}

llo::Module lloKernel(const std::string& name) {
  llvm::Expected<llo::Module> m = llo::readDocument(kernelText(name), name);
  EXPECT_TRUE(static_cast<bool>(m)) << llvm::toString(m.takeError());
  return m ? std::move(*m) : llo::Module();
}

// Runs the llo form of a kernel, scheduled, beside the run of the assembly.
void expectScheduled(const std::string& name, const std::vector<HostTensor>& args, const RunResult& hand,
                     const RunOptions& options) {
  const llo::Module m = lloKernel(name);
  const target::Chip chip = llvm::cantFail(target::loadChip("v5e"));
  EXPECT_FALSE(static_cast<bool>(llo::verify(m, chip))) << name;
  llvm::Expected<isa::Program> p = schedule::schedule(m, chip, {});
  ASSERT_TRUE(static_cast<bool>(p)) << llvm::toString(p.takeError());
  const RunResult r = mustRun(*p, args, options);
  ASSERT_EQ(r.results.size(), hand.results.size());
  for (size_t i = 0; i < r.results.size(); ++i)
    EXPECT_TRUE(r.results[i] == hand.results[i]) << name << " result " << i;
  const double speed = static_cast<double>(hand.stats.cycles) / static_cast<double>(r.stats.cycles);
  std::printf("%s: %.3f of the speed of the hand-written one\n%s", name.c_str(), speed, summary(r).c_str());
  EXPECT_GE(speed, 0.95);
}
void expectInterpreted(const std::string& name, const std::vector<HostTensor>& args, const RunResult& hand) {
  auto results = interpret(lloKernel(name), llvm::cantFail(target::loadChip("v5e")), args);
  ASSERT_TRUE(static_cast<bool>(results)) << llvm::toString(results.takeError());
  for (size_t i = 0; i < results->size(); ++i)
    EXPECT_TRUE((*results)[i] == hand.results[i]) << name << " result " << i;
}

TEST(Kernels, MatmulSmall) { runMatmul(1024, {.strict = true}); }

TEST(Kernels, MatmulReachesNinetyFivePercent) {
  const RunResult r = runMatmul(4096, {});
  std::printf("%s", summary(r).c_str());
  EXPECT_GE(r.stats.efficiency, 0.95);
  expectScheduled("matmul_bf16.llo.json", {bf16Random({4096, 4096}, 1), bf16Random({4096, 4096}, 2)}, r, {});
}

// The order of additions of a row of 128 words of the ring all-reduce: chunks of x are added going round the
// ring from the chip of their own number on, chunks of y the other way.
float ringSum(const HostTensor& x, int64_t rows, int64_t element) {
  static constexpr int kRing[] = {0, 1, 3, 2};
  const int64_t half = rows / 2, row = element / 128;
  const bool y = row >= half;
  const auto chunk = static_cast<int>((row % half) / (half / 4));
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    const int place = ((y ? chunk - i : chunk + i) + 4) % 4;
    const float own = x.data<float>()[kRing[place] * rows * 128 + element];
    sum = i == 0 ? own : sum + own;
  }
  return sum;
}

TEST(Kernels, RingAllReduce) {
  constexpr int64_t kRows = 16384;
  const isa::Program p = programFrom(
      replace(kernelText("all_reduce_ring.s"), ".equ ROWS, 131072", ".equ ROWS, " + std::to_string(kRows)));
  const HostTensor x = filled(ElementType::kF32, {4 * kRows, 128},
                              [](int64_t i) { return static_cast<float>(i * 2654435761u % 100003) * 1e-3f; });
  const RunResult r = mustRun(p, {x}, {.strict = true});
  std::printf("%s", summary(r).c_str());
  EXPECT_GE(r.stats.efficiency, 0.95);
  for (int64_t i = 0; i < kRows * 128; ++i)
    ASSERT_EQ(r.results[0].data<float>()[i], ringSum(x, kRows, i)) << i;
  // Starting the chips up to 50 us apart changes the time and nothing else; nor do threads change anything.
  setThreads(2);
  for (const uint64_t seed : {7, 8, 9}) {
    const RunOptions skewed{.start_skew = true, .skew_seed = seed};
    RunOptions threads = skewed;
    threads.threads = 2;
    const RunResult one = mustRun(p, {x}, skewed), two = mustRun(p, {x}, threads);
    EXPECT_TRUE(one.results[0] == r.results[0]);
    EXPECT_TRUE(two.results[0] == r.results[0]);
    EXPECT_GT(one.stats.cycles, r.stats.cycles);
    std::string first, second;
    llvm::raw_string_ostream a(first), b(second);
    writeReport(one, a);
    writeReport(two, b);
    EXPECT_EQ(first, second);
  }
}

TEST(Kernels, RingAllReduceFromLlo) {
  const isa::Program p = programFrom(kernelText("all_reduce_ring.s"));
  const HostTensor x = filled(ElementType::kF32, {4 * 131072, 128},
                              [](int64_t i) { return static_cast<float>(i * 2654435761u % 100003) * 1e-3f; });
  const RunResult r = mustRun(p, {x}, {});
  EXPECT_GE(r.stats.efficiency, 0.95);
  expectScheduled("all_reduce_ring.llo.json", {x}, r, {});
  expectInterpreted("all_reduce_ring.llo.json", {x}, r);
}

// The gather of the second product's weights hides behind the first product.
TEST(Kernels, MatmulWithCompanionGather) {
  constexpr int64_t kSize = 2048;
  const isa::Program p = programFrom(kernelText("matmul_all_gather.s"));
  const HostTensor a = bf16Random({4 * kSize, kSize}, 1), w1 = bf16Random({kSize, kSize}, 2),
                   w2 = bf16Random({kSize, kSize}, 3);
  const RunResult r = mustRun(p, {a, w1, w2});
  std::printf("%s", summary(r).c_str());
  EXPECT_GE(r.stats.efficiency, 0.85);
  // Alone, on one chip with nothing to gather, the two products would take 2 x 148,388 cycles.
  EXPECT_LE(r.stats.cycles, 2 * 148388 * 1.05);
  ASSERT_EQ(r.results.size(), 2u);
  for (const int64_t first : {int64_t{16}, 3 * kSize + 1040})
    for (int i = 0; i < 2; ++i) {
      const std::vector<float> want = product(a, i ? w2 : w1, first, 16);
      EXPECT_EQ(std::memcmp(want.data(), r.results[static_cast<size_t>(i)].data<float>() + first * kSize,
                            want.size() * 4),
                0)
          << "c" << i + 1;
    }
  expectScheduled("matmul_all_gather.llo.json", {a, w1, w2}, r, {.strict = true});
  expectInterpreted("matmul_all_gather.llo.json", {a, w1, w2}, r);
}

}  // namespace
}  // namespace tpu::emulate
