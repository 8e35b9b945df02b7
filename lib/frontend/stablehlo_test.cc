// StableHLO written from documents is read back as the same documents.
#include "tpu/hlo/stablehlo.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "testing.h"
#include "tpu/support/files.h"

namespace tpu::frontend {
namespace {

namespace fs = std::filesystem;

// All programs below `root` whose names end so.
std::vector<fs::path> programs(const fs::path& root) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    llvm::StringRef name(entry.path().native());
    if (name.ends_with(".mlir") || name.ends_with(".mlir.zst")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void expectFixed(const fs::path& path) {
  SCOPED_TRACE(path.string());
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  std::string text = bytes.str();
  if (isZstd(text)) text = llvm::cantFail(zstdDecompress(text, path.string()));
  Collect sink;
  auto module = readProgram(text, "program.mlir", sink);
  if (!module) {
    ADD_FAILURE() << complaint(module.takeError());
    return;
  }
  auto again = readProgram(stableHlo(*module), "program.mlir", sink);
  if (!again) {
    ADD_FAILURE() << complaint(again.takeError());
    return;
  }
  EXPECT_TRUE(document(*again) == document(*module)) << "the document changes";
}

TEST(StableHlo, WhatIsWrittenIsReadAsTheSameDocument) {
  for (const fs::path& path : programs(fs::path(TPU_SOURCE_DIR) / "testdata/bytecode")) expectFixed(path);
}

TEST(StableHlo, WhatIsWrittenIsReadAsTheSameDocumentForTheWholeCorpus) {
  for (const char* shared : {"../shared/corpus", "../../shared/corpus"}) {
    fs::path root = fs::path(TPU_SOURCE_DIR) / shared;
    if (!fs::exists(root)) continue;
    for (const fs::path& path : programs(root)) expectFixed(path);
    return;
  }
  std::printf("the shared folder corpus is absent: nothing is checked\n");
}

TEST(StableHlo, FoldsAttributesIntoTheStructuresOfTheDialect) {
  std::string text = stableHlo(accept(
      mainOf("(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> tensor<2x4xf32>",
             "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGH, HIGH] : "
             "(tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32> loc(\"m.py\":3:4)\n"
             "%1 = stablehlo.constant dense<[[1.5, -2.0, 0x7FC00000, 1.0e30]]> : tensor<1x4xf32>\n"
             "return %0 : tensor<2x4xf32>")));
  llvm::StringRef all(text);
  EXPECT_TRUE(
      all.contains("%0 = \"stablehlo.dot_general\"(%arg0, %arg1) {dot_dimension_numbers = "
                   "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, "
                   "precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGH>]} : "
                   "(tensor<2x3xf32>, tensor<3x4xf32>) -> (tensor<2x4xf32>) loc(\"m.py\":3:4)"))
      << text;
  EXPECT_TRUE(all.contains("dense<[[1.5, -2.0, 0x7FC00000, 1.0e+30]]> : tensor<1x4xf32>")) << text;
}

}  // namespace
}  // namespace tpu::frontend
