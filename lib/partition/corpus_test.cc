// The handed JAX programs as a whole: traffic against the recorded figures of XLA, full copies, and other spellings of
// the same shardings.
#include "context.h"
#include "corpus_test_util.h"
#include "program_text_test_util.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/print.h"
#include "tpu/partition/tool.h"

namespace tpu::partition {
namespace {

int64_t numberAfter(llvm::StringRef text, llvm::StringRef key, int64_t otherwise) {
  size_t at = text.rfind(key);
  if (at == llvm::StringRef::npos) return otherwise;
  llvm::StringRef rest = text.drop_front(at + key.size()).ltrim(" :");
  int64_t n;
  return rest.consumeInteger(10, n) ? otherwise : n;
}

/// JSON lines of --explain.
std::string explain(const std::filesystem::path& program, const std::string& target) {
  auto input = readInput(program.string());
  if (!input) return ADD_FAILURE() << program, "";
  Collected sink;
  PartitionRun run;
  run.input_bytes = std::move(input->bytes);
  run.input_name = "program.mlir";
  run.options.target = target;
  run.check = true;
  Partitioner p(std::move(run), sink);
  if (llvm::Error e = p.run()) return ADD_FAILURE() << program << errorText(std::move(e)), "";
  std::string out;
  llvm::raw_string_ostream os(out);
  p.writeExplanation(os, true);
  return out;
}

TEST(Corpus, SendsNoMoreThanXla) {
  if (absent()) GTEST_SKIP();
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator(jaxCases())) {
    if (std::filesystem::exists(entry.path() / "case.json")) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  int64_t ours = 0, theirs = 0;
  for (const auto& path : cases) {
    auto json = readInput((path / "case.json").string());
    ASSERT_TRUE(bool(json));
    std::string report = explain(path / "program.mlir", "");
    EXPECT_EQ(numberAfter(report, "\"full_copies\"", -1), 0) << path.filename();
    int64_t xla = numberAfter(json->bytes, "\"xla_wire_bytes\"", -1), own = numberAfter(report, "\"wire_bytes\"", -1);
    if (xla < 0) continue;
    std::cout << path.filename().string() << ": " << own << " bytes per device, XLA " << xla << "\n";
    EXPECT_LE(own, xla) << path.filename();
    ours += own;
    theirs += xla;
  }
  std::cout << "sum: " << ours << " bytes, XLA " << theirs << "\n";
  EXPECT_LE(static_cast<double>(ours), 0.9 * static_cast<double>(theirs));
}

/// Gathers made by this tool whose every user cuts the result again to less than half: more on a device than the source,
/// the destination and the operation need.
std::string overGathered(const hlo::Module& m) {
  auto bits = [&](hlo::ValueId v) { return bitsOf(m.typeOf(v)); };
  std::vector<bool> by_user(m.numOps(), false);
  for (const hlo::Why& w : m.whys) by_user[w.op.v] = w.code == "user";
  const hlo::Uses uses(m);
  std::string out;
  hlo::walk(m, m.func(m.entry).body, [&](hlo::OpId id) {
    if (m.op(id).opcode != hlo::Opcode::all_gather || by_user[id.v]) return;
    for (size_t i = 0; i < m.op(id).results.size(); ++i) {
      hlo::ValueId v = m.op(id).results[i];
      int64_t needed = bits(m.op(id).operands[i]);
      for (const hlo::Use& use : uses.of(v)) {
        hlo::Opcode o = m.op(use.op).opcode;
        bool cuts = (o == hlo::Opcode::slice || o == hlo::Opcode::dynamic_slice) && use.operand == 0;
        needed = std::max(needed, bits(cuts ? m.op(use.op).results[0] : v));
      }
      if (bits(v) >= 2 * needed) out += "all_gather at " + m.loc(m.op(id).loc).str() + "\n";
    }
  });
  return out;
}

TEST(Corpus, NoStepHoldsMoreThanItNeeds) {
  if (absent()) GTEST_SKIP();
  const size_t programs = forEachProgram([](const std::string& name, hlo::Module m) {
    Collected sink;
    if (llvm::Error e = partitionModule(m, {}, sink))
      ADD_FAILURE() << name << errorText(std::move(e));
    else
      EXPECT_EQ(overGathered(m), "") << name;
  });
  EXPECT_GT(programs, 50u);
}

TEST(Corpus, LargeProgramsHoldNoFullCopies) {
  for (auto [name, target] : {std::pair{"llama2_7b_train", "v5e:16x16"}, {"llama3_8b_decode_tp8", ""},
                              {"moe_8x_train", ""}, {"resnet50_train_dp32", ""}, {"gpt3_1b_unrolled_train", ""}}) {
    std::filesystem::path path = jaxCases() / "large" / name / "program.mlir";
    if (!std::filesystem::exists(path)) {
      std::cout << "large program is absent: " << path << "\n";
      continue;
    }
    EXPECT_EQ(numberAfter(explain(path, target), "\"full_copies\"", -1), 0) << name;
  }
}

/// The same program with Shardy's and with GSPMD's spelling of its shardings.
std::string partitioned(bool shardy) {
  auto port = [&](const char* ours, const char* theirs) {
    return shardy ? std::string("{sdy.sharding = #sdy.sharding<@mesh, [") + ours + "]>}"
                  : std::string("{mhlo.sharding = \"") + theirs + "\"}";
  };
  std::string text = std::string("module @m attributes {mhlo.num_partitions = 8 : i32} {\n") +
                     (shardy ? "  sdy.mesh @mesh = <[\"x\"=4, \"y\"=2]>\n" : "\n") + "  func.func public @main(%arg0: tensor<16x32xf32> " +
                     port("{\"x\"}, {\"y\"}", "{devices=[4,2]<=[8]}") + ", %arg1: tensor<32x8xf32> " +
                     port("{\"y\"}, {}", "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}") + ") -> (tensor<16x8xf32> " +
                     port("{\"x\"}, {}", "{devices=[4,1,2]<=[8] last_tile_dim_replicate}") + ") {\n" +
                     "    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<16x32xf32>, "
                     "tensor<32x8xf32>) -> tensor<16x8xf32>\n" +
                     (shardy ? "    %1 = sdy.sharding_constraint %0 <@mesh, [{\"x\"}, {\"y\"}]> : tensor<16x8xf32>\n"
                             : "    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = \"{devices=[4,2]<=[8]}\"} : "
                               "(tensor<16x8xf32>) -> tensor<16x8xf32>\n") +
                     "    return %1 : tensor<16x8xf32>\n  }\n}\n";
  Collected sink;
  auto m = frontend::readProgram(text, "t.mlir", sink);
  if (!m) return errorText(m.takeError());
  PartitionOptions options;
  options.mesh = "x=4,y=2";
  if (llvm::Error e = partitionModule(*m, options, sink)) return errorText(std::move(e));
  m->meshes[0].name = "mesh";
  return hlo::toText(*m);
}

TEST(Corpus, BothSpellingsGiveOneProgram) {
  EXPECT_EQ(partitioned(true), partitioned(false));
  EXPECT_NE(partitioned(true).find("all_reduce"), std::string::npos) << partitioned(true);
}

}  // namespace
}  // namespace tpu::partition
