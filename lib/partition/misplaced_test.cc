// One misplaced constraint in a program of 1,000 ops: the first record of the explanation names its line and what to
// write there, and writing it removes the record.
#include <gtest/gtest.h>

#include "equality_test_util.h"
#include "tpu/partition/tool.h"

namespace tpu::partition {
namespace {

constexpr int kOps = 1000, kFirstLine = 4;  // op k stands in line k + 4

/// A stack of layers sharded along the batch, with a constraint on another dimension as op `at`.
std::vector<std::string> layers(int at, const std::string& annotation) {
  const std::string type = "tensor<64x128xf32>", names[] = {"tanh", "negate", "exponential", "abs", "cosine"};
  std::string args = "%arg0: " + type + " {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}";
  for (int w = 0; w <= kOps / 16; ++w) args += ", %w" + std::to_string(w) + ": tensor<128x128xf32>";
  std::vector<std::string> lines = {"module @m {", "  sdy.mesh @mesh = <[\"x\"=4, \"y\"=2]>",
                                    "  func.func public @main(" + args + ") -> " + type + " {"};
  std::string last = "%arg0";
  for (int k = 0; k < kOps; ++k) {
    std::string name = "%" + std::to_string(k), text;
    if (k == at) {
      text = "sdy.sharding_constraint " + last + " <@mesh, " + annotation + "> : " + type;
    } else if (k % 16 == 0) {
      text = "stablehlo.dot_general " + last + ", %w" + std::to_string(k / 16) + ", contracting_dims = [1] x [0] : (" + type +
             ", tensor<128x128xf32>) -> " + type;
    } else if (k % 16 == 7) {
      text = "stablehlo.add " + last + ", %" + std::to_string(k - 5) + " : " + type;
    } else {
      text = "stablehlo." + names[k % 5] + " " + last + " : " + type;
    }
    lines.push_back("    " + name + " = " + text);
    last = name;
  }
  lines.insert(lines.end(), {"    return " + last + " : " + type, "  }", "}"});
  return lines;
}

/// The first record of a collective; empty where there is none.
std::string firstRecord(const std::vector<std::string>& lines) {
  Collected sink;
  PartitionRun run;
  for (const std::string& line : lines) run.input_bytes += line + '\n';
  run.input_name = "p.mlir";
  run.find_removals = true;
  Partitioner p(std::move(run), sink);
  if (llvm::Error e = p.run()) return ADD_FAILURE() << errorText(std::move(e)), "";
  std::string out;
  llvm::raw_string_ostream os(out);
  p.writeExplanation(os, true);
  std::string first = out.substr(0, out.find('\n'));
  return llvm::StringRef(first).contains("\"type\":\"collective\"") ? first : "";
}

TEST(Misplaced, TheFirstRecordNamesTheLineAndTheCure) {
  for (int at : {1, 20, 63, 100, 255, 503, 512, 777, 901, 998}) {
    std::vector<std::string> lines = layers(at, "[{}, {\"x\"}]");
    const std::string record = firstRecord(lines);
    // "remove_by":"write [{\"x\"}, {}] at p.mlir:24:11"
    llvm::StringRef cure = llvm::StringRef(record).split("\"remove_by\":\"write ").second.split("\",\"time_ns").first;
    auto [annotation, place] = cure.split(" at p.mlir:");
    int line = 0;
    ASSERT_FALSE(place.split(':').first.getAsInteger(10, line)) << record;
    EXPECT_EQ(line, at + kFirstLine) << record;
    // Do what it says.
    std::string write;
    for (char c : annotation) {
      if (c != '\\') write += c;
    }
    std::string& text = lines[static_cast<size_t>(line) - 1];
    size_t open = text.find("<@mesh, "), close = text.find("> :");
    ASSERT_NE(open, std::string::npos) << text;
    text = text.substr(0, open) + "<@mesh, " + write + text.substr(close);
    EXPECT_EQ(firstRecord(lines), "") << text;
  }
}

TEST(Misplaced, NothingIsBlamedForWhatTheProgramNeeds) {
  // A sum over the whole batch needs its all_reduce, with or without the constraint that agrees with the rest.
  std::vector<std::string> lines = {
      "module @m {", "  sdy.mesh @mesh = <[\"x\"=4]>",
      "  func.func public @main(%arg0: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}) -> tensor<128xf32> {",
      "    %0 = sdy.sharding_constraint %arg0 <@mesh, [{\"x\"}, {}]> : tensor<64x128xf32>",
      "    %c = stablehlo.constant dense<0.0> : tensor<f32>",
      "    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<64x128xf32>, tensor<f32>) -> tensor<128xf32>",
      "    return %1 : tensor<128xf32>", "  }", "}"};
  std::string record = firstRecord(lines);
  EXPECT_NE(record, "");
  EXPECT_EQ(record.find("write ["), std::string::npos) << record;
}

}  // namespace
}  // namespace tpu::partition
