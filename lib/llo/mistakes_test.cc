// Documents of stage llo with mistakes, and what is said of each.
#include "tpu/testing/mistakes.h"

#include <gtest/gtest.h>

#include "llvm/Support/MemoryBuffer.h"
#include "tpu/llo/document.h"
#include "tpu/llo/verify.h"
#include "tpu/support/diagnostics.h"
#include "tpu/target/chip.h"

namespace tpu::llo {
namespace {

llvm::Error check(const std::string& document) {
  auto module = readDocument(document, "d.json");
  if (!module) return module.takeError();
  auto target = target::targetFromDocument(module->target, module->chip_json);
  if (!target) return target.takeError();
  return verify(*module, target->chip);
}

std::string verdict(const std::string& document) {
  llvm::Error e = check(document);
  if (!e) return "accepted";
  const Diagnostic d = takeDiagnostics(std::move(e)).front();
  llvm::StringRef place = d.loc;
  place.consume_front("d.json:");
  return (place + ": " + d.text).str();
}

TEST(LloDocument, MistakesOfEveryFieldAreRefusedInTheseWords) {
  auto text = llvm::MemoryBuffer::getFile(TPU_SOURCE_DIR "/testdata/mistakes/llo.edits");
  ASSERT_TRUE(static_cast<bool>(text));
  const std::vector<testing::Mistake> all = testing::readMistakes((*text)->getBuffer());
  for (const testing::Mistake& m : all) EXPECT_EQ(verdict(m.document), m.expected) << m.edit;
  EXPECT_GT(all.size(), 200u);
}

}  // namespace
}  // namespace tpu::llo
