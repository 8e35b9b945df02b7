// Refusals, overrides and reports of whole programs.
#include "tpu/partition/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "equality_test_util.h"
#include "report.h"
#include "tpu/frontend/frontend.h"
#include "tpu/partition/tool.h"
#include "tpu/support/files.h"

namespace tpu::partition {
namespace {

const char* kDot = R"(module @m {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
)";
const char* kPlain = R"(module @m {
  func.func public @main(%arg0: tensor<8x16xf32>, %arg1: tensor<16x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
)";

/// The first diagnostic of a refused run; empty text where it was taken.
Diagnostic refusal(const char* text, const PartitionOptions& options) {
  Collected sink;
  auto m = frontend::readProgram(text, "t.mlir", sink);
  if (!m) return takeDiagnostics(m.takeError())[0];
  if (llvm::Error e = partitionModule(*m, options, sink)) return takeDiagnostics(std::move(e))[0];
  return {};
}

TEST(Partition, MeshMustFitTheTarget) {
  PartitionOptions o;
  o.target = "v5e:4x2";
  Diagnostic d = refusal(kDot, o);
  EXPECT_EQ(d.code, Code::kMeshTarget);
  EXPECT_NE(d.text.find("v5e:2x2"), std::string::npos) << d.text;
  o.target = "v5e:2x2";
  EXPECT_EQ(refusal(kDot, o).text, "");
  o.target = "v9:2x2";
  EXPECT_EQ(refusal(kDot, o).exit, ExitStatus::kUsage);
}

TEST(Partition, MeshOverride) {
  PartitionOptions o;
  o.mesh = "x=2";
  EXPECT_EQ(refusal(kDot, o).text, "");
  Comparison c = compareText(kDot, "t.mlir", o, 5);
  EXPECT_EQ(c.problem, "");
  EXPECT_EQ(c.partitioned.num_partitions, 2);
  o.mesh = "q=4";
  EXPECT_EQ(refusal(kDot, o).code, Code::kMeshMismatch);
  o.mesh = "x=banana";
  EXPECT_EQ(refusal(kDot, o).code, Code::kBadMesh);
}

TEST(Partition, ShardingsFromTheCommandLine) {
  PartitionOptions o;
  o.mesh = "x=2,y=2";
  o.shardings = {{"0", "{\"x\"}, {\"y\"}"}, {"1", "{\"y\"}, {?}"}};
  Comparison c = compareText(kPlain, "t.mlir", o, 5);
  EXPECT_EQ(c.problem, "");
  EXPECT_EQ(c.collectives, 1u);
  o.shardings = {{"0", "{\"q\"}, {}"}};
  EXPECT_EQ(refusal(kPlain, o).code, Code::kUnknownAxis);
  o.shardings = {{"7", "{\"x\"}, {}"}};
  EXPECT_EQ(refusal(kPlain, o).code, Code::kBadOverride);
}

TEST(Partition, ProgramWithoutAMeshRunsOnDeviceZero) {
  PartitionOptions o;
  o.target = "v5e:4x2";
  Comparison c = compareText(kPlain, "t.mlir", o, 5);
  EXPECT_EQ(c.problem, "");
  EXPECT_EQ(c.partitioned.num_partitions, 1);
  EXPECT_EQ(c.partitioned.stage, hlo::Stage::kSpmd);
}

TEST(Partition, ExplainsAndCounts) {
  Collected sink;
  PartitionRun run;
  run.input_bytes = kDot;
  run.input_name = "t.mlir";
  run.check = true;
  Partitioner p(std::move(run), sink);
  ASSERT_FALSE(bool(p.run()));
  std::string json;
  llvm::raw_string_ostream os(json);
  p.writeExplanation(os, true);
  EXPECT_NE(json.find(R"("type":"collective","op":)"), std::string::npos);
  EXPECT_NE(
      json.find(
          R"("kind":"all_reduce","bytes":256,"wire_bytes":384,"trips":1,"axes":["x"],"group_size":4,"loc":"t.mlir:4:10","code":"contract-dim")"),
      std::string::npos)
      << json;
  EXPECT_NE(json.find(R"("dot_flops":512,"dot_flops_unpartitioned":2048)"), std::string::npos) << json;
  EXPECT_EQ(p.summary(0),
            "4 devices: x=4 on v5e:2x2; 2 arguments, 1 result\n1 collective, 384 B per device and step over "
            "the wires\n");
}

TEST(Partition, EachPassLeavesALegalProgram) {
  for (const PassInfo& pass : partitionPasses()) {
    Collected sink;
    PartitionRun run;
    run.input_bytes = kDot;
    run.input_name = "t.mlir";
    run.passes.stop_after = pass.name.str();
    Partitioner p(std::move(run), sink);
    llvm::Error e = p.run();
    EXPECT_FALSE(bool(e)) << pass.name.str();
    llvm::consumeError(std::move(e));
    std::string text;
    llvm::raw_string_ostream os(text);
    EXPECT_FALSE(bool(p.write(os, "text", "")));
    EXPECT_FALSE(text.empty());
  }
}

TEST(Partition, AMisplacedConstraintLeadsTheExplanation) {
  std::string text =
      "module @m {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func public @main(%arg0: tensor<64x64xf32> "
      "{sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}) -> tensor<64x64xf32> {\n    %0 = "
      "stablehlo.negate %arg0 : tensor<64x64xf32>\n";
  for (int i = 1; i < 1000; ++i) {
    std::string n = std::to_string(i), p = std::to_string(i - 1);
    text += i == 500 ? "    %" + n + " = sdy.sharding_constraint %" + p +
                           " <@mesh, [{}, {}]> : tensor<64x64xf32>\n"
                     : "    %" + n + " = stablehlo.negate %" + p + " : tensor<64x64xf32>\n";
  }
  text += "    return %999 : tensor<64x64xf32>\n  }\n}\n";
  auto first = [&](const std::string& program) {
    Collected sink;
    PartitionRun run;
    run.input_bytes = program;
    run.input_name = "t.mlir";
    Partitioner p(std::move(run), sink);
    EXPECT_FALSE(bool(p.run()));
    std::string json;
    llvm::raw_string_ostream os(json);
    p.writeExplanation(os, true);
    return json.substr(0, json.find('\n'));
  };
  EXPECT_NE(first(text).find(R"("loc":"t.mlir:504:12","code":"constraint")"), std::string::npos)
      << first(text);
  // The annotation that the record proposes, written at the line that it names, removes the record.
  std::string record = first(text), sharding = record.substr(record.find(": write ") + 8);
  EXPECT_NE(sharding.find(" at t.mlir:504:12"), std::string::npos) << record;
  sharding = sharding.substr(0, sharding.find(" at "));
  sharding.erase(std::remove(sharding.begin(), sharding.end(), '\\'), sharding.end());
  std::string followed = text;
  size_t wish = followed.find("<@mesh, [{}, {}]>");
  followed.replace(wish, 17, "<@mesh, " + sharding + ">");
  EXPECT_EQ(first(followed).find("\"collective\""), std::string::npos) << first(followed);
  // So does leaving the constraint out.
  size_t at = text.find("sdy.sharding_constraint");
  text.replace(at, text.find('\n', at) - at, "stablehlo.negate %499 : tensor<64x64xf32>");
  EXPECT_EQ(first(text).find("\"collective\""), std::string::npos);
}

TEST(Partition, LargeProgramIsQuick) {
  std::filesystem::path path = std::filesystem::path(TPU_SOURCE_DIR) / ".." / "shared" / "corpus" / "jax" /
                               "large" / "gpt3_1b_unrolled_train" / "program.mlir";
  if (!std::filesystem::exists(path)) {
    std::cout << "large program is absent: " << path << "\n";
    GTEST_SKIP();
  }
  auto input = readInput(path.string());
  ASSERT_TRUE(bool(input));
  std::clock_t begin = std::clock();
  Collected sink;
  PartitionRun run;
  run.input_bytes = std::move(input->bytes);
  run.input_name = "program.mlir";
  Partitioner p(std::move(run), sink);
  ASSERT_FALSE(bool(p.run()));
  std::string document;
  llvm::raw_string_ostream os(document);
  ASSERT_FALSE(bool(p.write(os, "json", "")));
  double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::cout << "21,113 ops to a verified document in " << seconds << " s of CPU time\n";
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LE(seconds, 4);
#endif
  EXPECT_FALSE(sink.has(Code::kGathered));
}

}  // namespace
}  // namespace tpu::partition
