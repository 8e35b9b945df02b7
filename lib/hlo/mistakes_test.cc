// Documents of stage spmd with mistakes, and what is said of each.
#include "tpu/testing/mistakes.h"

#include <gtest/gtest.h>

#include "llvm/Support/MemoryBuffer.h"
#include "tpu/hlo/document.h"
#include "tpu/hlo/stablehlo.h"
#include "tpu/hlo/verify.h"
#include "tpu/support/diagnostics.h"

namespace tpu::hlo {
namespace {

std::string verdict(const std::string& document) {
  auto module = readDocument(document, "d.json");
  llvm::Error e = module ? verify(*module) : module.takeError();
  if (!e) {
    writeStableHlo(*module, llvm::nulls());  // whatever is accepted can be said
    return "accepted";
  }
  const Diagnostic d = takeDiagnostics(std::move(e)).front();
  llvm::StringRef place = d.loc;
  place.consume_front("d.json:");
  return (place + ": " + d.text).str();
}

TEST(Document, MistakesOfEveryFieldAreRefusedInTheseWords) {
  auto text = llvm::MemoryBuffer::getFile(TPU_SOURCE_DIR "/testdata/mistakes/document.edits");
  ASSERT_TRUE(static_cast<bool>(text));
  const std::vector<testing::Mistake> all = testing::readMistakes((*text)->getBuffer());
  for (const testing::Mistake& m : all) EXPECT_EQ(verdict(m.document), m.expected) << m.edit;
  EXPECT_GT(all.size(), 200u);
}

}  // namespace
}  // namespace tpu::hlo
