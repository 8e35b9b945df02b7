// The golden runner itself: format, comparison, running, time.
#include "tpu/testing/golden.h"

#include "gtest/gtest.h"

namespace tpu {
namespace {

const char kText[] =
    "# about\n"
    "SH: cat in | tr a b; echo oops >&2; echo -n left > out; exit 3\n"
    "EXIT: 3\n"
    "%% INPUT in\nxay\n"
    "%% STDOUT\nxby\n"
    "%% STDERR\noops\n"
    "%% OUTPUT out\nleft\n";

GoldenTest run(const GoldenTest& t, std::string* problem) { return runGolden(t, {"/nowhere", "/nothing"}, problem); }

TEST(Golden, PassesAsWrittenAndPrintsTheSame) {
  GoldenTest t = llvm::cantFail(parseGolden(kText));
  EXPECT_EQ(printGolden(t), kText);
  std::string problem;
  GoldenTest seen = run(t, &problem);
  EXPECT_EQ(problem, "");
  EXPECT_EQ(diffGolden(t, seen), "");
  EXPECT_EQ(printGolden(seen), kText);
}

TEST(Golden, SaysWhatDiffers) {
  GoldenTest t = llvm::cantFail(parseGolden("SH: echo a; echo b\nEXIT: 1\n%% STDOUT\na\nc\n%% STDERR\nx\n"));
  std::string problem;
  GoldenTest seen = run(t, &problem);
  EXPECT_EQ(diffGolden(t, seen),
            "exit status 0, expected 1\nstdout differs at line 2\n  expected: c\n  found:    b\n"
            "stderr differs at line 1\n  expected: x\n  found:    (end)\n");
  EXPECT_EQ(printGolden(seen), "SH: echo a; echo b\n%% STDOUT\na\nb\n");
}

TEST(Golden, FailuresOfPipesAndLeftFilesAreSeen) {
  GoldenTest t = llvm::cantFail(parseGolden("SH: false | cat\nABSENT: f\n"));
  std::string problem;
  EXPECT_EQ(run(t, &problem).exit, 1);
  t = llvm::cantFail(parseGolden("SH: touch f\nABSENT: f\n"));
  run(t, &problem);
  EXPECT_EQ(problem, "the file f should not exist\n");
}

TEST(Golden, RefusesBadHeaders) {
  for (const char* text : {"NOPE: 1\nTOOL: x\n", "EXIT: 0\n", "TOOL: x\nSH: y\n", "TOOL: x\nEXIT: y\n"})
    EXPECT_TRUE(llvm::errorToBool(parseGolden(text).takeError())) << text;
}

}  // namespace
}  // namespace tpu
