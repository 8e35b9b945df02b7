// StableHLO's own programs that check themselves: a small set of our own, and the whole of it where it lies
// beside the source tree.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "test_util.h"

namespace tpu::eval {
namespace {

namespace fs = std::filesystem;

std::string fileText(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Empty where every piece is accepted and all its functions hold; else what fails.
std::string verdict(const fs::path& path) {
  const std::string text = fileText(path);
  const std::vector<frontend::Piece> pieces = frontend::splitInput(text);
  std::vector<Probe> probes;
  std::string problems;
  for (const frontend::Piece& piece : pieces) {
    if (pieces.size() > 1 && frontend::sniff(piece.text) == frontend::Format::kEmpty) continue;
    Collected sink;
    auto module = frontend::readProgram(piece.text, path.filename().string(), sink,
                                        {.first_line = piece.first_line, .any_entry = true});
    if (!module) {
      problems += message(module.takeError());
      continue;
    }
    for (hlo::FuncId func : selfContainedFunctions(*module)) {
      module->entry = func;
      auto out = evaluate(*module, {}, &sink, {.probes = &probes, .stepwise = true, .any_results = true});
      if (!out) problems += message(out.takeError());
    }
  }
  return problems;
}

std::vector<fs::path> programsUnder(const fs::path& root) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".mlir") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Conformance, OwnProgramsHold) {
  const std::vector<fs::path> files = programsUnder(fs::path(TPU_SOURCE_DIR) / "testdata/conformance");
  EXPECT_FALSE(files.empty());
  for (const fs::path& path : files) EXPECT_EQ(verdict(path), "") << path;
}

// Not demanded: these do not run under StableHLO's interpreter either (RUN-DISABLED in the files).
bool disabledThere(const std::string& name) {
  return name == "pow_complex64_20_30_complex64_20_30.mlir" ||          // "inaccurate"
         name == "triangular_solve_float32_2_8_8_float32_2_10_8.mlir";  // "no interpreter support";
                                                                        // ill-conditioned
}

TEST(Conformance, StablehloProgramsHold) {
  const fs::path root = fs::path(TPU_SOURCE_DIR) / "../shared/conformance/stablehlo";
  if (!fs::exists(root)) {
    std::cout << "skipped: no conformance programs at ../shared/conformance\n";
    return;
  }
  const std::vector<fs::path> files = programsUnder(root);
  size_t held = 0;
  for (const fs::path& path : files) {
    const std::string problems = verdict(path);
    held += problems.empty();
    if (disabledThere(path.filename())) continue;
    EXPECT_EQ(problems, "") << path;
  }
  std::cout << held << " of " << files.size() << " programs hold\n";
}

}  // namespace
}  // namespace tpu::eval
