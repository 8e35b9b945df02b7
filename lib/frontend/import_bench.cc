// Time and memory of reading a program, from text to a verified module, for programs of three sizes: the time
// per byte must not depend on the size, and the memory must stay a small multiple of the text.
//
// The text is an unrolled transformer as JAX prints it with locations, made here; with TPU_IMPORT_FILE=F in
// the environment F is read as well.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tpu/frontend/frontend.h"

namespace tpu::frontend {
namespace {

struct Ignore : DiagnosticSink {
  void report(const Diagnostic&) override {}
};

/// One layer: a product with a sharded weight, its bias, a maximum with zero in a function, a mean.
std::string layer(int i) {
  auto n = [&](int k) { return "%" + std::to_string(8 * i + k); };
  auto at = [&](int k) { return " loc(#loc" + std::to_string(2 + (5 * i + k) % 400) + ")\n"; };
  const std::string x = i == 0 ? "%arg0" : "%" + std::to_string(8 * i - 1);
  const std::string t = "tensor<128x2048x4096xbf16>";
  return "    " + n(0) + " = stablehlo.convert %arg1 : (tensor<4096x4096xf32>) -> tensor<4096x4096xbf16>" +
         at(0) + "    " + n(1) + " = stablehlo.dot_general " + x + ", " + n(0) +
         ", contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (" + t +
         ", tensor<4096x4096xbf16>) -> " + t + at(1) + "    " + n(2) + " = sdy.sharding_constraint " + n(1) +
         " <@mesh, [{\"fsdp\"}, {}, {\"tp\"}]> : " + t + at(1) + "    " + n(3) +
         " = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<4096xbf16>) -> " + t + at(2) + "    " +
         n(4) + " = stablehlo.add " + n(2) + ", " + n(3) + " : " + t + at(2) + "    " + n(5) +
         " = stablehlo.reduce(" + n(4) + " init: %cst) applies stablehlo.add across dimensions = [2] : (" +
         t + ", tensor<bf16>) -> tensor<128x2048xbf16>" + at(3) + "    " + n(6) +
         " = stablehlo.broadcast_in_dim " + n(5) + ", dims = [0, 1] : (tensor<128x2048xbf16>) -> " + t +
         at(3) + "    " + n(7) + " = stablehlo.subtract " + n(4) + ", " + n(6) + " : " + t + at(4);
}

std::string unrolled(int64_t ops) {
  const std::string t = "tensor<128x2048x4096xbf16>";
  const int layers = static_cast<int>(ops / 8);
  std::string text =
      "#loc1 = loc(\"x\")\nmodule @m {\n  sdy.mesh @mesh = <[\"fsdp\"=32, \"tp\"=64]>\n  func.func public "
      "@main(%arg0: " +
      t + ", %arg1: tensor<4096x4096xf32>, %arg2: tensor<4096xbf16>) -> " + t +
      " {\n    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>\n";
  for (int i = 0; i < layers; ++i) text += layer(i);
  text += "    return %" + std::to_string(8 * layers - 1) + " : " + t + "\n  }\n}\n";
  for (int i = 2; i < 402; ++i)
    text += "#loc" + std::to_string(i) + " = loc(\"model.py\":" + std::to_string(i) + ":7)\n";
  return text;
}

void import(benchmark::State& state, const std::string& text, const char* name) {
  Ignore sink;
  for (auto _ : state) {
    auto module = readProgram(text, name, sink);
    if (!module) {
      llvm::consumeError(module.takeError());
      state.SkipWithError("the program is refused");
      return;
    }
    benchmark::DoNotOptimize(module->numOps());
  }
  const auto before = mallinfo2();
  auto module = readProgram(text, name, sink);
  const auto after = mallinfo2();
  const size_t held = (after.uordblks + after.hblkhd) - (before.uordblks + before.hblkhd);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.counters["ops"] = static_cast<double>(module->numOps());
  state.counters["module/text"] = static_cast<double>(held) / static_cast<double>(text.size());
}

void Unrolled(benchmark::State& state) { import(state, unrolled(state.range(0)), "unrolled.mlir"); }
BENCHMARK(Unrolled)->Arg(5000)->Arg(50000)->Arg(200000)->Unit(benchmark::kMillisecond);

void File(benchmark::State& state) {
  const char* name = std::getenv("TPU_IMPORT_FILE");
  if (!name) {
    state.SkipWithError("set TPU_IMPORT_FILE");
    return;
  }
  std::ifstream in(name, std::ios::binary);
  import(state, std::string(std::istreambuf_iterator<char>(in), {}), name);
}
BENCHMARK(File)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tpu::frontend
