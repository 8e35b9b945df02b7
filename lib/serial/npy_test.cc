// Array files: round trips, what numpy writes, and what must be refused.
#include "gtest/gtest.h"
#include "tpu/serial/array_file.h"
#include "tpu/support/diagnostics.h"

namespace tpu {
namespace {

std::string messageOf(llvm::Error e) {
  std::string text;
  for (const Diagnostic& d : takeDiagnostics(std::move(e))) text += d.text;
  return text;
}

HostTensor counting(ElementType element, llvm::ArrayRef<int64_t> dims) {
  HostTensor t(element, dims);
  for (size_t i = 0; i < t.bytes.size(); ++i) t.bytes[i] = static_cast<uint8_t>(i);
  return t;
}

std::string npy(const std::string& header, const std::string& data) {
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size());
  out += '\0';
  return out + header + data;
}

TEST(ArrayFile, RoundTripsEveryType) {
  for (int i = 0; i < kNumElementTypes; ++i) {
    const ElementType element = static_cast<ElementType>(i);
    const HostTensor t(element, {2, 3});
    auto back = readNpy(writeNpy(t), "t.npy");
    ASSERT_TRUE(static_cast<bool>(back)) << messageOf(back.takeError());
    auto tensor = toTensor(std::move(*back), element, false, "input 0");
    ASSERT_TRUE(static_cast<bool>(tensor)) << messageOf(tensor.takeError());
    EXPECT_EQ(*tensor, t);
  }
}

TEST(ArrayFile, WritesWhatNumpyWrites) {
  HostTensor t(ElementType::kF32, {3});
  const std::string text = writeNpy(t);
  EXPECT_EQ(text.substr(10, 55), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,),");
  EXPECT_EQ(text.size(), 128u + 12u);
  EXPECT_NE(writeNpy(HostTensor(ElementType::kBF16, {})).find("'|V2', 'fortran_order': False, 'shape': ()"),
            std::string::npos);
}

TEST(ArrayFile, ReadsFortranOrder) {
  auto a = readNpy(
      npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", std::string("\0\3\1\4\2\5", 6)),
      "f");
  ASSERT_TRUE(static_cast<bool>(a));
  EXPECT_EQ(a->bytes, (std::vector<uint8_t>{0, 1, 2, 3, 4, 5}));
}

TEST(ArrayFile, ArchivesKeepNamesAndBytes) {
  const HostTensor a = counting(ElementType::kS32, {4}), b = counting(ElementType::kBF16, {2, 2});
  auto z = readNpz(writeNpz({{"a", &a}, {"params.b", &b}}), "z.npz");
  ASSERT_TRUE(static_cast<bool>(z)) << messageOf(z.takeError());
  ASSERT_EQ(z->size(), 2u);
  EXPECT_EQ((*z)[1].name, "params.b");
  EXPECT_EQ((*z)[1].bytes, b.bytes);
  auto s = readSafetensors(writeSafetensors({{"a", &a}, {"params.b", &b}}), "s.safetensors");
  ASSERT_TRUE(static_cast<bool>(s)) << messageOf(s.takeError());
  EXPECT_EQ((*s)[0].bytes, a.bytes);
  EXPECT_EQ(describe((*s)[1]), "bf16[2,2]");
}

// Made by numpy.savez_compressed: x = uint8 [7, 7, 7, 7].
TEST(ArrayFile, ReadsDeflatedEntries) {
  static const unsigned char kZip[] = {
      80,  75,  3,   4,   20,  0,   0,   0,   8,   0,   0,   0,   33,  0,   115, 119, 158, 187, 71,  0,
      0,   0,   132, 0,   0,   0,   5,   0,   20,  0,   120, 46,  110, 112, 121, 1,   0,   16,  0,   132,
      0,   0,   0,   0,   0,   0,   0,   71,  0,   0,   0,   0,   0,   0,   0,   155, 236, 23,  234, 27,
      16,  201, 200, 80,  198, 80,  173, 158, 146, 90,  156, 92,  164, 110, 165, 160, 94,  83,  106, 168,
      174, 163, 160, 158, 150, 95,  84,  82,  148, 152, 23,  159, 95,  148, 146, 10,  18,  119, 75,  204,
      41,  78,  5,   138, 23,  103, 36,  22,  164, 2,   249, 26,  38,  58,  154, 58,  10,  181, 10,  20,
      0,   46,  118, 32,  0,   0,   80,  75,  1,   2,   20,  3,   20,  0,   0,   0,   8,   0,   0,   0,
      33,  0,   115, 119, 158, 187, 71,  0,   0,   0,   132, 0,   0,   0,   5,   0,   0,   0,   0,   0,
      0,   0,   0,   0,   0,   0,   128, 1,   0,   0,   0,   0,   120, 46,  110, 112, 121, 80,  75,  5,
      6,   0,   0,   0,   0,   1,   0,   1,   0,   51,  0,   0,   0,   126, 0,   0,   0,   0,   0};
  auto z = readNpz(llvm::StringRef(reinterpret_cast<const char*>(kZip), sizeof(kZip)), "z.npz");
  ASSERT_TRUE(static_cast<bool>(z)) << messageOf(z.takeError());
  EXPECT_EQ(z->front().name, "x");
  EXPECT_EQ(z->front().bytes, (std::vector<uint8_t>{7, 7, 7, 7}));
}

TEST(ArrayFile, BitsAndNarrowIntegers) {
  auto file = [](const HostTensor& t) { return llvm::cantFail(readNpy(writeNpy(t), "f")); };
  const HostTensor raw = counting(ElementType::kU16, {4});
  auto bf16 = toTensor(file(raw), ElementType::kBF16, true, "input 0");
  ASSERT_TRUE(static_cast<bool>(bf16));
  EXPECT_EQ(bf16->bytes, raw.bytes);
  EXPECT_EQ(
      messageOf(toTensor(file(raw), ElementType::kBF16, false, "input 0").takeError()),
      "input 0: the file holds u16[4], the program takes bf16[4] (bits@FILE takes integers as raw bits)");
  HostTensor bytes(ElementType::kS8, {2});
  bytes.bytes = {0xf8, 7};
  EXPECT_TRUE(static_cast<bool>(toTensor(file(bytes), ElementType::kS4, false, "x")));
  bytes.bytes = {8, 7};
  EXPECT_EQ(messageOf(toTensor(file(bytes), ElementType::kS4, false, "x").takeError()),
            "x: a value does not fit s4");
}

TEST(ArrayFile, RefusesWhatItCannotRead) {
  EXPECT_EQ(messageOf(readNpy("hello world", "f").takeError()), "not a .npy file");
  EXPECT_EQ(
      messageOf(
          readNpy(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "abcd"), "f").takeError()),
      "big-endian elements ('>f4') are not read");
  EXPECT_EQ(
      messageOf(
          readNpy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcd"), "f").takeError()),
      "f32[2] needs 8 bytes of data, the file has 4");
  EXPECT_EQ(messageOf(readNpz("PK\3\4", "f").takeError()),
            "the archive has no directory; it may be truncated");
  EXPECT_EQ(messageOf(readSafetensors(std::string("\xff\0\0\0\0\0\0\0{}", 10), "f").takeError()),
            "the header is truncated");
}

// Overwrites four bytes of the central directory's first entry, which is the last one here.
std::string patched(std::string archive, size_t field, uint32_t value) {
  const size_t directory = archive.rfind("PK\1\2");
  std::memcpy(archive.data() + directory + field, &value, 4);
  return archive;
}

TEST(ArrayFile, TakesNoMoreMemoryThanAnArchiveCanFill) {
  const HostTensor x(ElementType::kF32, {4});
  std::string archive = writeNpz({{"x", &x}});
  std::string deflated = patched(archive, 24, 0xf0000000u);  // the size when unpacked
  deflated[deflated.rfind("PK\1\2") + 10] = 8;               // the method
  EXPECT_EQ(messageOf(readNpz(deflated, "f").takeError()), "entry 'x.npy' claims more than its data can hold");
  // Two entries that share their data.
  std::string twice = writeNpz({{"x", &x}, {"y", &x}});
  EXPECT_EQ(messageOf(readNpz(patched(twice, 20, static_cast<uint32_t>(twice.size())), "f").takeError()),
            "entries of the archive overlap");
}

}  // namespace
}  // namespace tpu
