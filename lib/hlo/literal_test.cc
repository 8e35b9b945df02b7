// Literals: every narrow code read back, wrapping and saturating, extremes, text for people.
#include "tpu/hlo/literal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tpu::hlo {
namespace {

TEST(Literal, EveryFiniteCodeOfEveryNarrowTypeReadsBack) {
  for (int e = 0; e < kNumElementTypes; ++e) {
    ElementType element = static_cast<ElementType>(e);
    if (!isFloat(element) || elementBits(element) > 16) continue;
    for (uint64_t code = 0; code < (uint64_t{1} << elementBits(element)); ++code) {
      double value = decodeFloat(element, code);
      if (std::isnan(value)) continue;
      EXPECT_EQ(encodeFloat(element, value), code) << elementTypeName(element).str();
    }
  }
}

TEST(Literal, IntegersWrapAndDoublesSaturate) {
  uint8_t bytes[8];
  storeInt(ElementType::kS4, 9, bytes);
  EXPECT_EQ(loadInt(ElementType::kS4, bytes), -7);
  storeInt(ElementType::kU4, -1, bytes);
  EXPECT_EQ(loadInt(ElementType::kU4, bytes), 15);
  storeInt(ElementType::kPred, 4, bytes);
  EXPECT_EQ(loadInt(ElementType::kPred, bytes), 1);
  storeDouble(ElementType::kS8, 300, bytes);
  EXPECT_EQ(loadInt(ElementType::kS8, bytes), 127);
  storeDouble(ElementType::kU8, -1, bytes);
  EXPECT_EQ(loadInt(ElementType::kU8, bytes), 0);
  storeDouble(ElementType::kS32, -2.9, bytes);
  EXPECT_EQ(loadInt(ElementType::kS32, bytes), -2);
  storeDouble(ElementType::kU64, 1e30, bytes);
  EXPECT_EQ(loadBits(ElementType::kU64, bytes), ~uint64_t{0});
  storeDouble(ElementType::kS64, std::numeric_limits<double>::quiet_NaN(), bytes);
  EXPECT_EQ(loadInt(ElementType::kS64, bytes), 0);
}

TEST(Literal, ExtremesAreInfinitiesOrTheLargestValues) {
  uint8_t bytes[8];
  storeLowest(ElementType::kBF16, bytes);
  EXPECT_EQ(loadBits(ElementType::kBF16, bytes), 0xff80u);
  storeHighest(ElementType::kF8E4M3FN, bytes);
  EXPECT_EQ(loadDouble(ElementType::kF8E4M3FN, bytes), 448);
  storeLowest(ElementType::kF8E5M2FNUZ, bytes);
  EXPECT_EQ(loadDouble(ElementType::kF8E5M2FNUZ, bytes), -57344);
  storeHighest(ElementType::kF4E2M1FN, bytes);
  EXPECT_EQ(loadDouble(ElementType::kF4E2M1FN, bytes), 6);
  storeLowest(ElementType::kS64, bytes);
  EXPECT_EQ(loadInt(ElementType::kS64, bytes), INT64_MIN);
}

TEST(Literal, SpellsElementsForPeople) {
  auto text = [](ElementType element, double value) {
    uint8_t bytes[16];
    storeDouble(element, value, bytes);
    return elementText(element, bytes);
  };
  EXPECT_EQ(text(ElementType::kF32, 0.1), "0.1");
  EXPECT_EQ(text(ElementType::kF64, 0.1), "0.1");
  EXPECT_EQ(text(ElementType::kF32, std::numeric_limits<double>::infinity()), "0x7f800000");
  EXPECT_EQ(text(ElementType::kC64, 1.5), "(1.5,0)");
  EXPECT_EQ(text(ElementType::kPred, 1), "true");
}

}  // namespace
}  // namespace tpu::hlo
