// Programs with mistakes, and what is said of each: testdata/mistakes holds them, split by lines of "// -----", each with the
// expected refusal in its last line. They are seeds of the fuzz targets as well.
#include <filesystem>

#include "llvm/Support/MemoryBuffer.h"
#include "testing.h"
#include "tpu/testing/mistakes.h"

namespace tpu::frontend {
namespace {

TEST(Mistakes, AreRefusedInTheseWords) {
  const std::filesystem::path dir = std::filesystem::path(TPU_SOURCE_DIR) / "testdata/mistakes";
  size_t programs = 0;
  for (const auto& file : std::filesystem::directory_iterator(dir)) {
    if (file.path().extension() == ".edits") continue;  // documents, tested beside their readers
    auto buffer = llvm::MemoryBuffer::getFile(file.path().string());
    ASSERT_TRUE(static_cast<bool>(buffer)) << file.path();
    llvm::SmallVector<llvm::StringRef, 0> pieces;
    (*buffer)->getBuffer().split(pieces, "// -----\n");
    for (llvm::StringRef piece : pieces) {
      const auto [program, expected] = piece.rsplit("\n// ");
      EXPECT_EQ(refusal(program.str() + "\n"), expected.rtrim().str()) << file.path().filename() << ":\n" << program.str();
      ++programs;
    }
  }
  EXPECT_GT(programs, 200u);
}

TEST(Mistakes, OfTheGenericFormAndOfResources) {
  auto text = llvm::MemoryBuffer::getFile(TPU_SOURCE_DIR "/testdata/mistakes/generic.edits");
  ASSERT_TRUE(static_cast<bool>(text));
  for (const tpu::testing::Mistake& m : tpu::testing::readMistakes((*text)->getBuffer()))
    EXPECT_EQ(refusal(m.document), m.expected) << m.edit;
}

}  // namespace
}  // namespace tpu::frontend
