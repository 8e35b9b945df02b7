// Element types, units, diagnostics, parallel loops.
#include <atomic>
#include <vector>

#include "gtest/gtest.h"
#include "tpu/support/diagnostics.h"
#include "tpu/support/element_type.h"
#include "tpu/support/parallel.h"
#include "tpu/support/units.h"

namespace tpu {
namespace {

TEST(ElementType, BothSpellingsParse) {
  for (int i = 0; i < kNumElementTypes; ++i) {
    auto type = static_cast<ElementType>(i);
    EXPECT_EQ(parseElementType(elementTypeName(type)), type);
    EXPECT_EQ(parseElementType(elementTypeMlirName(type)), type);
  }
  EXPECT_EQ(parseElementType("si8"), ElementType::kS8);
  EXPECT_FALSE(parseElementType("i7"));
  EXPECT_EQ(hostBytes(ElementType::kPred), 1);
  EXPECT_EQ(hostBytes(ElementType::kS4), 1);
  EXPECT_EQ(hostBytes(ElementType::kC128), 16);
}

TEST(Units, ThreeDigits) {
  EXPECT_EQ(formatBytes(512), "512 B");
  EXPECT_EQ(formatBytes(14'200'000), "14.2 MB");
  EXPECT_EQ(formatBytes(999'999), "1.00 MB");
  EXPECT_EQ(formatBinaryBytes(10'000'000'000), "9.31 GiB");
  EXPECT_EQ(formatNs(12'410'000), "12.4 ms");
  EXPECT_EQ(formatNs(420), "420 ns");
  EXPECT_EQ(formatNs(1.5), "1.50 ns");
  EXPECT_EQ(plural(1, "device"), "1 device");
  EXPECT_EQ(plural(16, "device"), "16 devices");
}

TEST(Diagnostics, CodesAreUniqueAndInOrder) {
  llvm::ArrayRef<CodeInfo> codes = allCodes();
  for (size_t i = 1; i < codes.size(); ++i) EXPECT_LT(codes[i - 1].code, codes[i].code);
  EXPECT_EQ(findCode(2)->name, "kIoError");
  EXPECT_EQ(findCode(9999), nullptr);
}

TEST(Diagnostics, ErrorsCarryTheirDiagnostics) {
  llvm::Error both = llvm::joinErrors(fail(Code::kBadJson, "a:1:2", "first"),
                                      fail(Code::kIoError, "", "second", ExitStatus::kIo));
  std::vector<Diagnostic> got = takeDiagnostics(std::move(both));
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].loc, "a:1:2");
  EXPECT_EQ(got[1].exit, ExitStatus::kIo);
  got = takeDiagnostics(llvm::createStringError("foreign"));
  EXPECT_EQ(got.at(0).code, Code::kInternalError);
}

TEST(Parallel, EachIndexOnce) {
  setThreads(4);
  std::vector<std::atomic<int>> seen(10'000);
  parallelFor(seen.size(), [&](size_t i) {
    seen[i]++;
    if (i == 5) parallelFor(3, [&](size_t j) { seen[j] += 0; });
  });
  for (auto& s : seen) EXPECT_EQ(s, 1);
}

}  // namespace
}  // namespace tpu
