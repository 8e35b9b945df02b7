// Fast conversion against element-by-element placement, for every storable type and awkward shapes.
#include "tpu/isa/layout.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tpu::isa {
namespace {

using Dims = std::vector<int64_t>;

int64_t count(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

Dims unravel(int64_t linear, const Dims& dims) {
  Dims index(dims.size());
  for (size_t i = dims.size(); i-- > 0;) index[i] = linear % dims[i], linear /= dims[i];
  return index;
}

int storedBits(ElementType type) { return 32 / packingOf(type); }

// A host value that the type can hold: sign-extended for s4, 0 or 1 for pred.
uint32_t hostValue(ElementType type, int64_t i) {
  const uint32_t noise = static_cast<uint32_t>(i * 2654435761u + 12345u) ^ static_cast<uint32_t>(i >> 3);
  if (type == ElementType::kPred) return noise >> 7 & 1;
  const int bits = storedBits(type);
  const uint32_t value = bits == 32 ? noise : noise & ((1u << bits) - 1);
  if (bits < 8 && isSigned(type))
    return static_cast<uint8_t>(static_cast<int32_t>(value << (32 - bits)) >> (32 - bits));
  return value;
}

void checkType(ElementType type, const Dims& dims) {
  SCOPED_TRACE(std::string(elementTypeName(type)) + " rank " + std::to_string(dims.size()));
  const Layout layout = defaultLayout(type, dims);
  const int bytes = hostBytes(type), bits = storedBits(type);
  const int64_t n = count(dims);
  std::vector<uint8_t> host(n * bytes), back(n * bytes);
  std::vector<uint8_t> memory(layoutBytes(layout, type, dims), 0xa5), expected = memory;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t value = hostValue(type, i);
    std::memcpy(&host[i * bytes], &value, bytes);
    int sub = -1;
    const int64_t at = elementOffset(layout, dims, unravel(i, dims), &sub);
    ASSERT_LE(at + 4, static_cast<int64_t>(expected.size()));
    uint32_t word, mask = bits == 32 ? ~0u : ((1u << bits) - 1) << (sub * bits);
    std::memcpy(&word, &expected[at], 4);
    word = (word & ~mask) | ((value << (sub * bits)) & mask);
    std::memcpy(&expected[at], &word, 4);
  }
  packHost(layout, type, dims, host.data(), memory.data());
  EXPECT_EQ(memory, expected);
  unpackHost(layout, type, dims, memory.data(), back.data());
  EXPECT_EQ(host, back);
}

TEST(Layout, PackedEqualsElementByElement) {
  for (ElementType type :
       {ElementType::kF32, ElementType::kS32, ElementType::kU32, ElementType::kBF16, ElementType::kF16,
        ElementType::kS16, ElementType::kU16, ElementType::kS8, ElementType::kU8, ElementType::kPred,
        ElementType::kF8E4M3FN, ElementType::kF8E5M2, ElementType::kS4, ElementType::kU4, ElementType::kS2})
    for (const Dims& dims : {Dims{}, Dims{1}, Dims{5}, Dims{300}, Dims{1, 128}, Dims{3, 130}, Dims{17, 5},
                             Dims{33, 257}, Dims{65, 1}, Dims{2, 3, 9, 129}, Dims{4, 1, 7}, Dims{2, 70, 128}})
      checkType(type, dims);
}

TEST(Layout, SizesOfTheWellKnownForms) {
  auto bytes = [](ElementType type, const Dims& dims) {
    return layoutBytes(defaultLayout(type, dims), type, dims);
  };
  EXPECT_EQ(bytes(ElementType::kF32, {8, 128}), 4096);
  EXPECT_EQ(bytes(ElementType::kF32, {8, 1}), 4096);
  EXPECT_EQ(bytes(ElementType::kF32, {9, 1}), 8192);
  EXPECT_EQ(bytes(ElementType::kF32, {1, 128}), 512);
  EXPECT_EQ(bytes(ElementType::kF32, {2, 128}), 1024);
  EXPECT_EQ(bytes(ElementType::kF32, {129}), 1024);
  EXPECT_EQ(bytes(ElementType::kF32, {}), 4);
  EXPECT_EQ(bytes(ElementType::kF32, {0, 4}), 0);
  EXPECT_EQ(bytes(ElementType::kBF16, {16, 128}), 4096);
  EXPECT_EQ(bytes(ElementType::kBF16, {1, 128}), 512);
  EXPECT_EQ(bytes(ElementType::kS8, {32, 128}), 4096);
  EXPECT_EQ(bytes(ElementType::kS4, {64, 128}), 4096);
  EXPECT_EQ(defaultLayout(ElementType::kBF16, {1, 9}), (Layout{false, 2, 2}));
  EXPECT_EQ(defaultLayout(ElementType::kS8, {100, 9}), (Layout{false, 32, 4}));
}

TEST(Layout, DenseIsRowMajor) {
  const Layout dense{true, 8, 1};
  const Dims dims{3, 5};
  EXPECT_EQ(layoutBytes(dense, ElementType::kF32, dims), 512);
  int sub = -1;
  EXPECT_EQ(elementOffset(dense, dims, {2, 3}, &sub), 52);
  EXPECT_EQ(sub, 0);
  std::vector<uint8_t> host(60), memory(512), back(60);
  for (int i = 0; i < 60; ++i) host[i] = static_cast<uint8_t>(i);
  packHost(dense, ElementType::kF32, dims, host.data(), memory.data());
  EXPECT_EQ(std::memcmp(host.data(), memory.data(), 60), 0);
  unpackHost(dense, ElementType::kF32, dims, memory.data(), back.data());
  EXPECT_EQ(host, back);
}

}  // namespace
}  // namespace tpu::isa
