// Narrow formats against LLVM's APFloat, exhaustively by code and at every rounding boundary.
#include "tpu/support/float_convert.h"

#include <cmath>

#include "gtest/gtest.h"
#include "llvm/ADT/APFloat.h"

namespace tpu {
namespace {

struct Case {
  ElementType type;
  const llvm::fltSemantics& semantics;
};

std::vector<Case> cases() {
  using F = llvm::APFloat;
  return {{ElementType::kF4E2M1FN, F::Float4E2M1FN()},       {ElementType::kF6E2M3FN, F::Float6E2M3FN()},
          {ElementType::kF6E3M2FN, F::Float6E3M2FN()},       {ElementType::kF8E4M3, F::Float8E4M3()},
          {ElementType::kF8E4M3FN, F::Float8E4M3FN()},       {ElementType::kF8E4M3FNUZ, F::Float8E4M3FNUZ()},
          {ElementType::kF8E4M3B11FNUZ, F::Float8E4M3B11FNUZ()}, {ElementType::kF8E5M2, F::Float8E5M2()},
          {ElementType::kF8E5M2FNUZ, F::Float8E5M2FNUZ()},   {ElementType::kBF16, F::BFloat()},
          {ElementType::kF16, F::IEEEhalf()}};
}

double oracleValue(const llvm::fltSemantics& semantics, int bits, uint32_t code) {
  llvm::APFloat v(semantics, llvm::APInt(bits, code));
  bool lost;
  v.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lost);
  return v.convertToDouble();
}

uint32_t oracleCode(const llvm::fltSemantics& semantics, double value) {
  llvm::APFloat v(value);
  bool lost;
  v.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &lost);
  return static_cast<uint32_t>(v.bitcastToAPInt().getZExtValue());
}

TEST(FloatConvert, EveryCodeHasApFloatsValue) {
  for (const Case& c : cases()) {
    const FloatFormat& f = *narrowFloatFormat(c.type);
    for (uint32_t code = 0; code < (1u << f.bits); ++code) {
      float got = narrowToF32(f, code);
      double want = oracleValue(c.semantics, f.bits, code);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got));
      } else {
        ASSERT_EQ(got, want) << elementTypeName(c.type).str() << " " << code;
        ASSERT_EQ(std::signbit(got), std::signbit(want));
        ASSERT_EQ(f32ToNarrow(f, got), code);
      }
    }
  }
}

TEST(FloatConvert, RoundsAsApFloatAtAndBesideEveryBoundary) {
  for (const Case& c : cases()) {
    const FloatFormat& f = *narrowFloatFormat(c.type);
    bool saturates = f.specials == FloatSpecials::kFiniteOnly;
    for (uint32_t code = 0; code + 1 < (1u << (f.bits - 1)); ++code) {
      double a = oracleValue(c.semantics, f.bits, code), b = oracleValue(c.semantics, f.bits, code + 1);
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      double middle = (a + b) / 2;
      for (double v : {middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e30), -middle})
        ASSERT_EQ(f64ToNarrow(f, v), oracleCode(c.semantics, v)) << elementTypeName(c.type).str() << " " << v;
    }
    for (double v : {1e-300, 1e-46, 1e38, 3.5e38, 1e300, 465.0, 464.0, 463.9, 61440.0, 61439.0, 65519.0, 65520.0})
      if (!saturates || v < 1) {
        ASSERT_EQ(f64ToNarrow(f, v), oracleCode(c.semantics, v)) << elementTypeName(c.type).str() << " " << v;
      }
  }
}

TEST(FloatConvert, SaturatesWhereThereIsNoInfinity) {
  const FloatFormat& f = *narrowFloatFormat(ElementType::kF4E2M1FN);
  EXPECT_EQ(f64ToNarrow(f, 1e9), 7u);
  EXPECT_EQ(f64ToNarrow(f, -HUGE_VAL), 15u);
  EXPECT_EQ(f64ToNarrow(f, NAN), 8u);
}

TEST(FloatConvert, ScaleHasPowersOfTwoOnly) {
  const FloatFormat& f = *narrowFloatFormat(ElementType::kF8E8M0FNU);
  EXPECT_EQ(narrowToF32(f, 127), 1.0f);
  EXPECT_EQ(narrowToF32(f, 0), 0x1p-127f);
  EXPECT_TRUE(std::isnan(narrowToF32(f, 255)));
  EXPECT_EQ(f64ToNarrow(f, 1.4), 127u);
  EXPECT_EQ(f64ToNarrow(f, 1.5), 128u);  // the tie goes to the even code
  EXPECT_EQ(f64ToNarrow(f, 3.0), 128u);
  EXPECT_EQ(f64ToNarrow(f, -1.0), 255u);
  EXPECT_EQ(f64ToNarrow(f, 0x1p-130), 0u);
}

TEST(FloatConvert, FastPathsAgreeWithTheGenericOnes) {
  const FloatFormat& bf16 = *narrowFloatFormat(ElementType::kBF16);
  const FloatFormat& f16 = *narrowFloatFormat(ElementType::kF16);
  for (uint32_t u = 0; u < 0xffff0000u; u += 4093) {
    float v = std::bit_cast<float>(u);
    ASSERT_EQ(f32ToBf16(v), f32ToNarrow(bf16, v)) << u;
  }
  for (uint32_t code = 0; code < 65536; ++code) {
    float a = f16ToF32(static_cast<uint16_t>(code)), b = narrowToF32(f16, code);
    ASSERT_EQ(std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b)) << code;
  }
}

TEST(FloatConvert, RoundsF64Once) {
  // 1 + 2^-8 + 2^-30 rounds up to bf16; through f32 it would become a tie and round down.
  EXPECT_EQ(f64ToNarrow(*narrowFloatFormat(ElementType::kBF16), 1 + 0x1p-8 + 0x1p-30), 0x3f81u);
}

}  // namespace
}  // namespace tpu
