// Input and output as a filter: zstd both ways, complete or nothing, full disks.
#include "tpu/support/files.h"

#include <cstdlib>
#include <dirent.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "tpu/support/diagnostics.h"

namespace tpu {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tpu_files_XXXXXX";
    ASSERT_TRUE(mkdtemp(name));
    dir_ = name;
  }
  void TearDown() override {
    for (const std::string& f : listing()) unlink(path(f).c_str());
    rmdir(dir_.c_str());
  }
  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  std::vector<std::string> listing() const {
    std::vector<std::string> out;
    DIR* d = opendir(dir_.c_str());
    while (dirent* e = readdir(d))
      if (e->d_name[0] != '.') out.push_back(e->d_name);
    closedir(d);
    return out;
  }
  std::string dir_;
};

Code codeOf(llvm::Error e) { return takeDiagnostics(std::move(e)).at(0).code; }

TEST_F(Files, WhatIsWrittenIsReadBack) {
  std::string text(300'000, 'x');
  for (bool compress : {false, true}) {
    ASSERT_FALSE(writeOutput(path("a"), text, OutputKind::kDocument, compress));
    llvm::Expected<Input> in = readInput(path("a"));
    ASSERT_TRUE(static_cast<bool>(in));
    EXPECT_EQ(in->bytes, text);
  }
  EXPECT_EQ(listing(), std::vector<std::string>{"a"});
}

TEST_F(Files, NothingIsLeftWithoutCommit) {
  {
    llvm::Expected<OutputFile> out = OutputFile::open(path("b"), OutputKind::kText);
    ASSERT_TRUE(static_cast<bool>(out));
    out->os() << "half";
  }
  EXPECT_TRUE(listing().empty());
}

TEST_F(Files, SymbolicLinksAndModesAreKept) {
  ASSERT_FALSE(writeOutput(path("real"), "1", OutputKind::kText));
  ASSERT_EQ(symlink("real", path("link").c_str()), 0);
  ASSERT_FALSE(writeOutput(path("link"), "22", OutputKind::kText));
  EXPECT_EQ(llvm::cantFail(readInput(path("real"))).bytes, "22");
  EXPECT_EQ(llvm::cantFail(readInput(path("link"))).bytes, "22");
}

TEST_F(Files, ErrorsHaveTheirCodes) {
  EXPECT_EQ(codeOf(readInput(path("absent")).takeError()), Code::kIoError);
  EXPECT_EQ(codeOf(readInput(dir_).takeError()), Code::kIoError);
  EXPECT_EQ(codeOf(readInput("/dev/null").takeError()), Code::kEmptyInput);
  EXPECT_EQ(codeOf(writeOutput("/dev/full", "x", OutputKind::kText)), Code::kIoError);
  EXPECT_EQ(codeOf(writeOutput(path("no/such"), "x", OutputKind::kText)), Code::kIoError);
  EXPECT_FALSE(writeOutput("/dev/null", "x", OutputKind::kDocument));
}

TEST(Zstd, RefusesDamage) {
  std::string packed = zstdCompress(std::string(100'000, 'a') + "b");
  EXPECT_EQ(llvm::cantFail(zstdDecompress(packed, "f")).size(), 100'001u);
  EXPECT_EQ(llvm::cantFail(zstdDecompress(packed + packed, "f")).size(), 200'002u);
  EXPECT_EQ(codeOf(zstdDecompress(llvm::StringRef(packed).drop_back(3), "f").takeError()), Code::kBadCompression);
  EXPECT_EQ(codeOf(zstdDecompress(packed + "junk", "f").takeError()), Code::kBadCompression);
  EXPECT_EQ(codeOf(zstdDecompress(packed, "f", 1000).takeError()), Code::kBadCompression);
  for (size_t i = 0; i < packed.size(); ++i) {
    std::string damaged = packed;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    llvm::Expected<std::string> out = zstdDecompress(damaged, "f");
    if (!out) llvm::consumeError(out.takeError());
  }
}

}  // namespace
}  // namespace tpu
