// CPU time from text to the verified partitioned program of an unrolled transformer, on 8 and on 2,048 devices: the number
// of devices must not matter. ratio_to_8_devices compares the fastest of alternating runs, so that a busy machine counts
// little; it should stay below 1.1. With TPU_PARTITION_FILE=F in the environment F is measured too.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

#include "tpu/frontend/frontend.h"
#include "tpu/partition/partition.h"

namespace tpu::partition {
namespace {

struct Ignore : DiagnosticSink {
  void report(const Diagnostic&) override {}
};

/// Layers of fsdp x tp: two products with gathered weights and a sum over tp, 12 ops each.
std::string transformer(int layers) {
  const std::string x = "tensor<4096x2048xbf16>", h = "tensor<4096x8192xbf16>", up = "tensor<2048x8192xbf16>",
                    down = "tensor<8192x2048xbf16>";
  auto sharded = [](const char* a, const char* b) {
    return std::string(" {sdy.sharding = #sdy.sharding<@mesh, [{\"") + a + "\"}, {\"" + b + "\"}]>}";
  };
  std::string text = "module @m {\n  sdy.mesh @mesh = <[\"fsdp\"=4, \"tp\"=2]>\n  func.func public @main(%x0: " + x +
                     " {sdy.sharding = #sdy.sharding<@mesh, [{\"fsdp\"}, {}]>}";
  for (int i = 0; i < layers; ++i) {
    std::string n = std::to_string(i);
    text += ", %u" + n + ": " + up + sharded("fsdp", "tp") + ", %d" + n + ": " + down + sharded("tp", "fsdp");
  }
  text += ") -> " + x + " {\n";
  for (int i = 0; i < layers; ++i) {
    std::string n = std::to_string(i), in = "%x" + n;
    text += "    %h" + n + " = stablehlo.dot_general " + in + ", %u" + n + ", contracting_dims = [1] x [0] : (" + x + ", " + up + ") -> " + h + "\n";
    std::string last = "%h" + n;
    for (int k = 0; k < 8; ++k) {
      std::string next = "%h" + n + "_" + std::to_string(k);
      text += "    " + next + " = stablehlo." + (k % 2 ? "tanh " : "negate ") + last + " : " + h + "\n";
      last = next;
    }
    text += "    %o" + n + " = stablehlo.dot_general " + last + ", %d" + n + ", contracting_dims = [1] x [0] : (" + h + ", " + down + ") -> " + x + "\n";
    text += "    %c" + n + " = sdy.sharding_constraint %o" + n + " <@mesh, [{\"fsdp\"}, {}]> : " + x + "\n";
    text += "    %x" + std::to_string(i + 1) + " = stablehlo.add " + in + ", %c" + n + " : " + x + "\n";
  }
  return text + "    return %x" + std::to_string(layers) + " : " + x + "\n  }\n}\n";
}

/// Seconds of CPU; negative where it failed.
double partitioned(const std::string& text, const char* mesh, const char* target) {
  Ignore sink;
  std::clock_t begin = std::clock();
  auto m = frontend::readProgram(text, "bench.mlir", sink);
  if (!m) return llvm::consumeError(m.takeError()), -1;
  PartitionOptions options;
  options.mesh = mesh;
  options.target = target;
  if (llvm::Error e = partitionModule(*m, options, sink)) return llvm::consumeError(std::move(e)), -1;
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

void devices(benchmark::State& state) {
  const std::string text = transformer(static_cast<int>(state.range(0)));
  double few = 1e9, many = 1e9;
  for (auto _ : state) {
    double a = partitioned(text, "fsdp=4,tp=2", "v5p:2x2x2"), b = partitioned(text, "fsdp=256,tp=8", "v5p:8x16x16");
    if (a < 0 || b < 0) return state.SkipWithError("the program was refused");
    few = std::min(few, a);
    many = std::min(many, b);
  }
  state.counters["ops"] = static_cast<double>(12 * state.range(0));
  state.counters["ms_8_devices"] = few * 1e3;
  state.counters["ms_2048_devices"] = many * 1e3;
  state.counters["ratio_to_8_devices"] = many / few;
}
BENCHMARK(devices)->Arg(40)->Arg(400)->Unit(benchmark::kMillisecond);

void file(benchmark::State& state) {
  const char* name = std::getenv("TPU_PARTITION_FILE");
  if (!name) return state.SkipWithError("TPU_PARTITION_FILE is not set");
  std::ifstream in(name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  for (auto _ : state) {
    if (partitioned(text, "", std::getenv("TPU_PARTITION_TARGET") ? std::getenv("TPU_PARTITION_TARGET") : "") < 0)
      return state.SkipWithError("the program was refused");
  }
}
BENCHMARK(file)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tpu::partition
