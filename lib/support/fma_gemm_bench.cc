// The fixed-order product against the host's BLAS, one thread each, and the panel shapes of a matrix unit.
#include "benchmark/benchmark.h"
#include "tpu/support/fma_gemm.h"

extern "C" void cblas_sgemm(int order, int transa, int transb, int m, int n, int k, float alpha,
                            const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
extern "C" void openblas_set_num_threads(int threads);

namespace tpu {
namespace {

void flops(benchmark::State& state, double m, double n, double k) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * m * n * k, benchmark::Counter::kIsIterationInvariantRate);
}

void BM_FmaGemm(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  std::vector<float> a(m * k, 1.0f), b(k * n, 0.5f), c(m * n);
  for (auto _ : state) fmaGemm(a.data(), k, b.data(), n, c.data(), n, m, n, k);
  flops(state, m, n, k);
}
BENCHMARK(BM_FmaGemm)
    ->Args({8, 128, 128})
    ->Args({24, 128, 128})
    ->Args({32, 128, 128})
    ->Args({128, 128, 128})
    ->Args({512, 128, 128})
    ->Args({1024, 1024, 1024})
    ->Args({2048, 2048, 2048});

void BM_FmaGemmPacked(benchmark::State& state) {
  const int64_t m = state.range(0), n = 128, k = 128;
  std::vector<float> a(m * k, 1.0f), b(k * n, 0.5f), c(m * n);
  FmaGemmRhs packed;
  packed.assign(b.data(), n, n, k);
  for (auto _ : state) fmaGemm(a.data(), k, packed, c.data(), n, m, k);
  flops(state, m, n, k);
}
BENCHMARK(BM_FmaGemmPacked)->Arg(8)->Arg(32)->Arg(128)->Arg(512);

void BM_OpenBlas(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  openblas_set_num_threads(1);
  std::vector<float> a(m * k, 1.0f), b(k * n, 0.5f), c(m * n);
  for (auto _ : state) cblas_sgemm(101, 111, 111, m, n, k, 1, a.data(), k, b.data(), n, 1, c.data(), n);
  flops(state, m, n, k);
}
BENCHMARK(BM_OpenBlas)
    ->Args({8, 128, 128})
    ->Args({128, 128, 128})
    ->Args({512, 128, 128})
    ->Args({1024, 1024, 1024})
    ->Args({2048, 2048, 2048});

}  // namespace
}  // namespace tpu
