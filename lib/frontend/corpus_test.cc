// Parses and verifies every StableHLO text of the shared corpus, where it is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tpu/frontend/frontend.h"
#include "tpu/hlo/verify.h"

namespace tpu::frontend {
namespace {

namespace fs = std::filesystem;

struct Quiet : DiagnosticSink {
  void report(const Diagnostic&) override {}
};

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> programs(const fs::path& root) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".mlir") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

TEST(Corpus, EveryProgramIsReadAndVerified) {
  fs::path root = fs::path(TPU_SOURCE_DIR) / "../../shared/corpus";
  if (!fs::exists(root)) root = fs::path(TPU_SOURCE_DIR) / "../shared/corpus";
  if (!fs::exists(root)) {
    std::printf("the shared corpus is absent: nothing is checked\n");
    GTEST_SKIP();
  }
  Quiet quiet;
  for (const fs::path& path : programs(root)) {
    std::string text = slurp(path);
    llvm::Expected<hlo::Module> module = readProgram(text, path.filename().string(), quiet);
    if (module) continue;
    for (const Diagnostic& d : takeDiagnostics(module.takeError()))
      ADD_FAILURE() << path.string() << "\n  " << d.loc << ": " << d.text;
  }
}

}  // namespace
}  // namespace tpu::frontend
