// Records are lines.
#include "tpu/report/report.h"

#include <unistd.h>

#include "gtest/gtest.h"

namespace tpu {
namespace {

TEST(Report, OneRecordPerLine) {
  std::string path = testing::TempDir() + "report_test_" + std::to_string(getpid());
  Report r = llvm::cantFail(Report::open(path));
  r.begin("run").field("cycles", uint64_t{18446744073709551615u}).field("mfu", std::optional<double>());
  r.end();
  r.begin("link").field("id", 3).field("name", "x+").field("bytes", std::optional<int64_t>(5));
  r.end();
  r.line("{}");
  ASSERT_FALSE(r.commit());
  EXPECT_EQ(llvm::cantFail(readInput(path)).bytes,
            "{\"type\":\"run\",\"cycles\":18446744073709551615,\"mfu\":null}\n"
            "{\"type\":\"link\",\"id\":3,\"name\":\"x+\",\"bytes\":5}\n{}\n");
  unlink(path.c_str());
}

}  // namespace
}  // namespace tpu
