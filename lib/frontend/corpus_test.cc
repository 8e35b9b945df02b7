// Parses and verifies every StableHLO text of the shared corpus, where it is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include "testing.h"
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/print.h"
#include "tpu/hlo/verify.h"
#include "tpu/support/files.h"

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

const std::vector<llvm::StringRef> kStableHlo = {".mlir", ".mlir.zst"};
const std::vector<llvm::StringRef> kEveryForm = {".mlir", ".mlir.zst", ".mlirbc", ".hlo", ".hlo.txt"};

// The programs under `part` of the shared folder, compressed ones included; empty, and said so, where it is absent.
std::vector<fs::path> programs(const char* part, const std::vector<llvm::StringRef>& endings = kStableHlo) {
  std::vector<fs::path> found;
  for (const char* shared : {"../shared", "../../shared"}) {
    fs::path root = fs::path(TPU_SOURCE_DIR) / shared / part;
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      std::string name = entry.path().filename().string();
      if (llvm::any_of(endings, [&](llvm::StringRef end) { return llvm::StringRef(name).ends_with(end); }))
        found.push_back(entry.path());
    }
    break;
  }
  if (found.empty()) std::printf("the shared folder %s is absent: nothing is checked\n", part);
  std::sort(found.begin(), found.end());
  return found;
}

std::string text(const fs::path& path) {
  std::string bytes = slurp(path);
  if (!isZstd(bytes)) return bytes;
  return llvm::cantFail(zstdDecompress(bytes, path.string()));
}

std::string complaints(llvm::Error error) {
  std::string all;
  for (const Diagnostic& d : takeDiagnostics(std::move(error))) all += d.loc + ": " + d.text + "\n";
  return all;
}

TEST(Corpus, EveryProgramIsReadVerifiedAndRoundTripped) {
  Quiet quiet;
  for (const fs::path& path : programs("corpus")) {
    SCOPED_TRACE(path.string());
    auto module = readProgram(text(path), path.filename().string(), quiet);
    if (!module) {
      ADD_FAILURE() << complaints(module.takeError());
      continue;
    }
    std::string first = document(*module);
    auto again = readProgram(first, "document.json", quiet);
    if (!again) {
      ADD_FAILURE() << complaints(again.takeError());
      continue;
    }
    EXPECT_TRUE(document(*again) == first) << "the document changes when it is read and written";
    EXPECT_EQ(hlo::toText(*again), hlo::toText(*module));
  }
}

// Written as StableHLO and read again, a program of any form is the same document.
TEST(Corpus, StableHloTextIsAFixedPoint) {
  Quiet quiet;
  for (const fs::path& path : programs("corpus", kEveryForm)) {
    SCOPED_TRACE(path.string());
    const std::string name = path.filename().string();
    hlo::Module module = llvm::cantFail(readProgram(text(path), name, quiet));
    const std::string first = stableHlo(module);
    auto again = readProgram(first, name, quiet);
    if (!again) {
      ADD_FAILURE() << complaints(again.takeError());
      continue;
    }
    EXPECT_TRUE(stableHlo(*again) == first) << "the text changes when it is read and written";
    auto third = readProgram(stableHlo(*again), name, quiet);
    EXPECT_TRUE(third && document(*third) == document(*again)) << "the document changes";
  }
}

TEST(Corpus, CallsInlineAndDeadCodeGoes) {
  Quiet quiet;
  for (const fs::path& path : programs("corpus")) {
    SCOPED_TRACE(path.string());
    hlo::Module module = llvm::cantFail(readProgram(text(path), path.filename().string(), quiet));
    hlo::Module copy = module.clone();
    if (llvm::Error e = hlo::inlineCalls(module, true)) ADD_FAILURE() << complaints(std::move(e));
    hlo::eliminateDeadCode(module);
    if (llvm::Error e = hlo::verify(module)) ADD_FAILURE() << complaints(std::move(e));
    EXPECT_EQ(module.string(module.func(module.entry).name), copy.string(copy.func(copy.entry).name));
    hlo::walk(module, [&](hlo::OpId op) { EXPECT_NE(module.op(op).opcode, hlo::Opcode::call); });
    hlo::eliminateDeadCode(copy);
    if (llvm::Error e = hlo::verify(copy)) ADD_FAILURE() << complaints(std::move(e));
  }
}

// Files of several programs, split at "// -----"; what is not StableHLO in them is refused by name.
TEST(Conformance, EveryProgramIsReadOrRefusedByName) {
  Quiet quiet;
  for (const fs::path& path : programs("conformance/stablehlo")) {
    std::string all = text(path);
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(all).split(parts, "// -----");
    for (llvm::StringRef part : parts) {
      auto module = readProgram(part, path.filename().string(), quiet);
      if (module) continue;
      for (const Diagnostic& d : takeDiagnostics(module.takeError())) {
        bool foreign = d.code == Code::kUnknownOp && (llvm::StringRef(d.text).contains("interpreter.") ||
                                                      llvm::StringRef(d.text).contains("chlo.mulhi"));
        EXPECT_TRUE(foreign) << path.string() << "\n  " << d.loc << ": " << d.text;
      }
    }
  }
}

}  // namespace
}  // namespace tpu::frontend
