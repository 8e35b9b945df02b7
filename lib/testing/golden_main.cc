// golden_test [--update] [PART...]: all testdata/**/*.test whose path contains one of the PARTs, each a test of GoogleTest.
// The commands run in parallel first; the tests then only compare.
#include <atomic>
#include <map>
#include <thread>

#include "gtest/gtest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/testing/golden.h"

namespace tpu {
namespace {

struct GoldenRun {
  std::string path, name;  // name: relative to testdata
  std::string failure;
};

bool update = false;

void runOne(GoldenRun* run) {
  GoldenEnvironment env{TPU_BIN_DIR, TPU_SOURCE_DIR "/testdata"};
  auto buffer = llvm::MemoryBuffer::getFile(run->path);
  if (!buffer) {
    run->failure = "cannot read the test";
    return;
  }
  llvm::Expected<GoldenTest> test = parseGolden((*buffer)->getBuffer());
  if (!test) {
    run->failure = llvm::toString(test.takeError());
    return;
  }
  GoldenTest seen = runGolden(*test, env, &run->failure);
  std::string difference = diffGolden(*test, seen);
  if (!update || !run->failure.empty()) {
    run->failure += difference;
  } else if (!difference.empty()) {
    std::error_code error;
    llvm::raw_fd_ostream os(run->path, error);
    if (!error) os << printGolden(seen);
    llvm::outs() << "updated " << run->name << '\n';
  }
}

void runAll(std::vector<GoldenRun>* runs) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < runs->size();) runOne(&(*runs)[i]);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
}

std::vector<GoldenRun> findTests(const std::vector<llvm::StringRef>& parts) {
  std::vector<GoldenRun> runs;
  std::string root = TPU_SOURCE_DIR "/testdata";
  std::error_code error;
  for (llvm::sys::fs::recursive_directory_iterator it(root, error), end; it != end && !error; it.increment(error)) {
    llvm::StringRef path = it->path();
    if (!path.ends_with(".test")) continue;
    bool wanted = parts.empty() || llvm::any_of(parts, [&](llvm::StringRef p) { return path.contains(p); });
    if (wanted) runs.push_back({path.str(), path.drop_front(root.size() + 1).str(), ""});
  }
  llvm::sort(runs, [](const GoldenRun& a, const GoldenRun& b) { return a.name < b.name; });
  return runs;
}

class Golden : public ::testing::Test {
 public:
  explicit Golden(const GoldenRun& run) : run_(run) {}
  void TestBody() override {
    if (!run_.failure.empty()) ADD_FAILURE_AT(run_.path.c_str(), 1) << run_.failure;
  }

 private:
  const GoldenRun& run_;
};

}  // namespace
}  // namespace tpu

int main(int argc, char** argv) {
  using namespace tpu;
  ::testing::InitGoogleTest(&argc, argv);
  std::vector<llvm::StringRef> parts;
  for (int i = 1; i < argc; ++i) {
    if (llvm::StringRef(argv[i]) == "--update") update = true;
    else parts.push_back(argv[i]);
  }
  std::vector<GoldenRun> runs = findTests(parts);
  runAll(&runs);
  for (const GoldenRun& run : runs) {
    auto [suite, name] = llvm::StringRef(run.name).split('/');
    ::testing::RegisterTest(suite.str().c_str(), name.str().c_str(), nullptr, nullptr, run.path.c_str(), 1,
                            [&run]() -> ::testing::Test* { return new Golden(run); });
  }
  return RUN_ALL_TESTS();
}
