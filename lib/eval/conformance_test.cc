// StableHLO's own programs with expected values inside, where they lie beside the source tree.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "test_util.h"

namespace tpu::eval {
namespace {

std::string fileText(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Conformance, TestdataHoldsItsExpectations) {
  const std::filesystem::path root =
      std::filesystem::path(TPU_SOURCE_DIR) / "../shared/conformance/stablehlo/testdata";
  if (!std::filesystem::exists(root)) {
    std::cout << "skipped: no conformance programs at ../shared/conformance\n";
    return;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(root))
    if (entry.path().extension() == ".mlir") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  int passed = 0;
  std::map<std::string, std::vector<std::string>> failures;
  for (const auto& path : files) {
    Collected sink;
    auto module = frontend::readProgram(fileText(path), path.filename().string(), sink);
    if (!module) {
      failures["parse: " + message(module.takeError())].push_back(path.filename());
      continue;
    }
    auto out = evaluate(*module, {}, &sink);
    if (!out) {
      failures[message(out.takeError())].push_back(path.filename());
      continue;
    }
    ++passed;
  }
  std::cout << passed << " of " << files.size() << " programs hold\n";
  if (std::getenv("TPU_VERBOSE"))
    for (const auto& [why, names] : failures)
      for (const std::string& name : names) std::cout << name << ": " << why;
  EXPECT_GE(passed, 1150);
}

}  // namespace
}  // namespace tpu::eval
