// How fast the emulator is: the hand-written matmul against the host's BLAS, one thread each, and the cost of
// an executed vector instruction by kind.
#include "benchmark/benchmark.h"
#include "llvm/Support/MemoryBuffer.h"
#include "tpu/asm/assembly.h"
#include "tpu/emulate/emulate.h"

extern "C" void cblas_sgemm(int order, int transa, int transb, int m, int n, int k, float alpha,
                            const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
extern "C" void openblas_set_num_threads(int threads);

namespace tpu::emulate {
namespace {

isa::Program assembled(const std::string& text) { return llvm::cantFail(assembly::assemble(text, "bench")); }

void BM_EmulatedMatmul2048(benchmark::State& state) {
  auto file = llvm::MemoryBuffer::getFile(TPU_SOURCE_DIR "/testdata/kernels/matmul_bf16.s");
  std::string text = (*file)->getBuffer().str();
  const std::string size = ".equ SIZE, 4096";
  text.replace(text.find(size), size.size(), ".equ SIZE, 2048");
  const isa::Program p = assembled(text);
  HostTensor a(ElementType::kBF16, {2048, 2048}), b = a;
  for (int64_t i = 0; i < a.numElements(); ++i)
    a.data<uint16_t>()[i] = b.data<uint16_t>()[i] = static_cast<uint16_t>(0x3f00 + i % 127);
  const RunOptions options{.strict = state.range(0) != 0};
  int64_t instructions = 0;
  for (auto _ : state)
    instructions = llvm::cantFail(run(p, {a, b}, options)).stats.device[0].vector_instructions;
  state.counters["vector_instructions"] = static_cast<double>(instructions);
}
BENCHMARK(BM_EmulatedMatmul2048)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void BM_OpenBlas2048(benchmark::State& state) {
  openblas_set_num_threads(1);
  const int n = 2048;
  std::vector<float> a(n * n, 1.0f), b(n * n, 0.5f), c(n * n);
  for (auto _ : state) cblas_sgemm(101, 111, 111, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n);
}
BENCHMARK(BM_OpenBlas2048)->Unit(benchmark::kMillisecond);

// A loop of 64 bundles of `line`, 2000 times; the time of one instruction.
void loopOf(benchmark::State& state, const std::string& line, int per_bundle, bool strict) {
  std::string text =
      ".target v5e\n  vimm v1, 0x3f800000 ; vimm v2, 0x40000000 ; smov s1, 2000\n  vcmp.lt.f32 m1, v1, v2 ; "
      "vst [0], v1\n  vst [4096], v1\nloop:\n";
  for (int i = 0; i < 64; ++i) text += line + "\n";
  text += "  ssub s1, s1, 1\n  scmp.gt p0, s1, 0\n  @p0 br loop\n  nop 4\n  halt\n";
  const isa::Program p = assembled(text);
  for (auto _ : state) llvm::cantFail(run(p, {}, {.strict = strict}));
  state.counters["instruction"] = benchmark::Counter(
      64.0 * 2000 * per_bundle, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
void BM_Instruction(benchmark::State& state, const char* line, int per_bundle) {
  loopOf(state, line, per_bundle, false);
}
void BM_StrictInstruction(benchmark::State& state, const char* line, int per_bundle) {
  loopOf(state, line, per_bundle, true);
}
#define TPU_BENCH(name, line, n)                                                   \
  BENCHMARK_CAPTURE(BM_Instruction, name, line, n)->Unit(benchmark::kMillisecond); \
  BENCHMARK_CAPTURE(BM_StrictInstruction, name, line, n)->Unit(benchmark::kMillisecond);
TPU_BENCH(add, "vadd.f32 v3, v1, v2", 1)
TPU_BENCH(four_adds, "vadd.f32 v3, v1, v2 ; vadd.f32 v4, v1, v2 ; vadd.f32 v5, v1, v2 ; vadd.f32 v6, v1, v2",
          4)
TPU_BENCH(multiply_s32, "vmul.s32 v3, v1, v2", 1)
TPU_BENCH(maximum, "vmax.f32 v3, v1, v2", 1)
TPU_BENCH(select, "vsel v3, m1, v1, v2", 1)
TPU_BENCH(pack, "vpack.bf16 v3, v1, v2", 1)
TPU_BENCH(load, "vld v3, [0]", 1)
TPU_BENCH(store, "vst [0], v1", 1)
TPU_BENCH(load_strided, "vld.strided v3, [0], 1, 255", 1)
TPU_BENCH(store_masked, "vst.msk [0], v1, m1", 1)
TPU_BENCH(exponent_and_pop, "vpow2.f32 v1\nvpop.eup v3", 2)
TPU_BENCH(lane_sum_and_pop, "vadd.xlane.f32 xlu0, v1\nvpop.xlu v3, xlu0", 2)
TPU_BENCH(transpose_entry_and_pop, "vxpose.go xlu0, 0, 8\nvpop.trf v3, xlu0", 2)

}  // namespace
}  // namespace tpu::emulate
