// One-file tests of the tools, testdata/<tool>/*.test: the command, its inputs and its exact outputs side by side.
//
//   # Any number of comment lines: what the test is about.
//   TOOL: tpu-asm                 a program of the build
//   ARGS: -d in.txt --emit=text   split as a shell does
//   EXIT: 1                       0 where absent
//   %% INPUT in.txt               a file in the (temporary) working directory, as many as needed
//   ...
//   %% STDOUT                     exact; absent means empty
//   ...
//   %% STDERR                     exact; absent means empty
//   ...
//
// `SH: script` instead of TOOL and ARGS runs a line of bash with pipefail, so a pipeline fails where one of its tools does.
// `SH:` may stand several times; the lines are joined. `%% STDIN` is standard input, empty where absent. `%% OUTPUT name`
// is a file that must exist afterwards with that text; `ABSENT: name` one that must not. `IGNORE: stderr` (or stdout) leaves
// that stream unchecked. In commands $TESTDATA is the folder testdata; $SANITIZED is not empty where the tools run under
// the address sanitizer, which takes terabytes of address space. A text that lacks a final line end is compared
// as if it had one. A test may take 60 seconds. golden_test --update rewrites EXIT, STDOUT, STDERR and OUTPUT as they are.
#pragma once
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tpu {

struct GoldenSection {
  std::string kind, name, text;  // "INPUT", "in.txt", ...
};

struct GoldenTest {
  std::string comment;  // with its # and line ends
  std::string tool, args;
  std::vector<std::string> script;
  std::vector<std::string> absent, ignored;
  int exit = 0;
  std::vector<GoldenSection> sections;

  const GoldenSection* find(llvm::StringRef kind) const;
};

struct GoldenEnvironment {
  std::string bin_dir, testdata_dir;
};

llvm::Expected<GoldenTest> parseGolden(llvm::StringRef text);
std::string printGolden(const GoldenTest& test);
/// Runs the test and gives it back with the exit status and the outputs that were seen; `problem` says in words what
/// no update can mend (a timeout, an output that should be absent).
GoldenTest runGolden(const GoldenTest& test, const GoldenEnvironment& environment, std::string* problem);
/// Empty where they agree, else what differs first, with both lines.
std::string diffGolden(const GoldenTest& expected, const GoldenTest& seen);

}  // namespace tpu
