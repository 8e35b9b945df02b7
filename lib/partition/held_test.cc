// What a device holds while a program is brought from one sharding to another: never more than the larger of source and
// destination, or what the operation itself needs; anything else is reported as a full copy.
#include "corpus_test_util.h"
#include "passes.h"
#include "random_program_test_util.h"

namespace tpu::partition {
namespace {

struct Excess {
  std::string text;      // operations that hold more, unreported
  size_t operations = 0, reported = 0;
};

/// Runs the passes up to localisation.
Excess excessOf(hlo::Module m) {
  Collected sink;
  std::vector<Held> held;
  State s;
  s.module = std::move(m);
  s.ctx.sink = &sink;
  s.ctx.held = &held;
  Excess out;
  for (const Pass<State>& pass : passList()) {
    if (llvm::Error e = pass.run(s)) return out.text = errorText(std::move(e)), out;
    if (llvm::StringRef(pass.name) == "localise") break;
  }
  // Tables with a number per shard, and scalars, are no copies of anything.
  const int64_t table = s.ctx.mesh ? 32 * s.ctx.meshOf(s.module).numDevices() : 0;
  for (const Held& h : held) {
    ++out.operations;
    out.reported += h.reported;
    const int64_t limit = std::max({h.source, h.destination, h.need, table});
    if (h.reported || h.largest <= limit) continue;
    out.text += hlo::opInfo(h.opcode).mnemonic.str() + " at " + h.loc + ": " + hlo::opInfo(h.largest_op).mnemonic.str() + " of " +
                std::to_string(h.largest) + " bits; source " + std::to_string(h.source) + ", destination " +
                std::to_string(h.destination) + ", need " + std::to_string(h.need) + "\n";
  }
  return out;
}

TEST(Held, NoMoreThanNeededByTheHandedPrograms) {
  if (absent()) GTEST_SKIP();
  size_t operations = 0;
  const size_t programs = forEachProgram([&](const std::string& name, hlo::Module m) {
    Excess e = excessOf(std::move(m));
    EXPECT_EQ(e.text, "") << name;
    EXPECT_EQ(e.reported, 0u) << name;
    operations += e.operations;
  });
  std::cout << operations << " operations\n";
  EXPECT_GT(programs, 50u);
}

TEST(Held, NoMoreThanNeededByRandomPrograms) {
  size_t operations = 0, reported = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Excess e = excessOf(randomProgram(seed, stepsOf(seed)));
    EXPECT_EQ(e.text, "") << "seed " << seed;
    operations += e.operations;
    reported += e.reported;
  }
  std::cout << operations << " operations, " << reported << " full copies reported\n";
}

/// The half of a dimension, and two halves joined: every device receives what it needs, once.
TEST(Held, HalvesOfAShardedDimension) {
  const std::string head = "module @m {\n  sdy.mesh @mesh = <[\"x\"=8]>\n";
  const std::string rows = "{sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}";
  std::string half = head + "  func.func public @main(%arg0: tensor<64x16xi32> " + rows + ") -> (tensor<32x16xi32> " + rows +
                     ") {\n    %0 = stablehlo.slice %arg0 [32:64, 0:16] : (tensor<64x16xi32>) -> tensor<32x16xi32>\n"
                     "    return %0 : tensor<32x16xi32>\n  }\n}\n";
  Comparison c = compareText(half, "t.mlir", {}, 3);
  EXPECT_EQ(c.problem, "");
  EXPECT_EQ(c.wire_bytes, 224);  // seven of eight devices receive 4 x 16 numbers
  EXPECT_EQ(c.collectives, 2u);
  std::string turned = head + "  func.func public @main(%arg0: tensor<64x16xi32> " + rows + ") -> (tensor<64x16xi32> " + rows +
                       ") {\n    %0 = stablehlo.slice %arg0 [32:64, 0:16] : (tensor<64x16xi32>) -> tensor<32x16xi32>\n"
                       "    %1 = stablehlo.slice %arg0 [0:32, 0:16] : (tensor<64x16xi32>) -> tensor<32x16xi32>\n"
                       "    %2 = stablehlo.negate %0 : tensor<32x16xi32>\n"
                       "    %3 = stablehlo.concatenate %2, %1, dim = 0 : (tensor<32x16xi32>, tensor<32x16xi32>) -> tensor<64x16xi32>\n"
                       "    return %3 : tensor<64x16xi32>\n  }\n}\n";
  c = compareText(turned, "t.mlir", {}, 3);
  EXPECT_EQ(c.problem, "");
  EXPECT_LE(c.wire_bytes, 896);
  // Blocks of several lengths, windows that begin inside of shards, a last shard that is not full.
  for (const char* text : {"[5:34, 0:16] : (tensor<61x16xi32>) -> tensor<29x16xi32>", "[0:61:3, 0:16] : (tensor<61x16xi32>) -> tensor<21x16xi32>"}) {
    std::string to = llvm::StringRef(text).rsplit("-> ").second.str();
    std::string program = head + "  func.func public @main(%arg0: tensor<61x16xi32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}) -> (" +
                          to + " " + rows + ") {\n    %0 = stablehlo.slice %arg0 " + text + "\n    return %0 : " + to + "\n  }\n}\n";
    EXPECT_EQ(compareText(program, "t.mlir", {}, 3).problem, "") << program;
  }
}

}  // namespace
}  // namespace tpu::partition
