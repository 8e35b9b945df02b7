// Literals, drawn values, printing and comparison.
#include "tpu/eval/tensor_text.h"

#include <cmath>

#include "test_util.h"
#include "tpu/eval/compare.h"

namespace tpu::eval {
namespace {

llvm::Error noFile(llvm::StringRef, HostTensor&) { return llvm::Error::success(); }

std::string printed(const HostTensor& t) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printTensor(os, t);
  return text;
}

std::string roundTrip(const std::string& text) {
  auto t = parseTensor(text, noFile);
  return t ? printed(*t) : message(t.takeError());
}

TEST(TensorText, Literals) {
  EXPECT_EQ(roundTrip("2x3xf32=1,2.5,-3e2,inf,nan,0.1"), "[[1, 2.5, -300], [inf, nan, 0.1]]");
  EXPECT_EQ(roundTrip("f32=7"), "7");
  EXPECT_EQ(roundTrip("2x2xi32=[[1, -2], [3, 4]]"), "[[1, -2], [3, 4]]");
  EXPECT_EQ(roundTrip("3xpred=true,0,1"), "[true, false, true]");
  EXPECT_EQ(roundTrip("2xbf16=1.01"), "[1.0078125, 1.0078125]");
  EXPECT_EQ(roundTrip("2xc64=1:-2,3"), "[1:-2, 3:0]");
  EXPECT_EQ(roundTrip("u64=18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(roundTrip("2xf32=1,2,3"), ": 2xf32 has 2 elements, 3 values were given\n");
  EXPECT_EQ(roundTrip("s4=8"), ": '8' does not fit s4\n");
  EXPECT_EQ(roundTrip("2xq32=1"), ": '2xq32' is not a type such as 2x3xf32\n");
  EXPECT_EQ(roundTrip("f32=x"), ": 'x' is not a number\n");
}

TEST(TensorText, DrawnValuesDependOnSeedStreamAndIndex) {
  const HostTensor a = drawTensor(ElementType::kF32, {4, 8}, 7, 0);
  EXPECT_EQ(a, drawTensor(ElementType::kF32, {4, 8}, 7, 0));
  EXPECT_NE(a, drawTensor(ElementType::kF32, {4, 8}, 8, 0));
  EXPECT_NE(a, drawTensor(ElementType::kF32, {4, 8}, 7, 1));
  for (float x : valuesOf<float>(a)) EXPECT_TRUE(x >= -1 && x < 1);
  for (int8_t x : valuesOf<int8_t>(drawTensor(ElementType::kS2, {64}, 1, 0))) EXPECT_TRUE(x >= -2 && x <= 1);
  EXPECT_EQ(drawTensor(ElementType::kC64, {3}, 1, 0).bytes.size(), 24u);
}

TEST(TensorText, Summary) {
  EXPECT_EQ(tensorSummary(f32({2, 2}, {1, -2, 4, NAN})), "f32[2,2] min -2 max 4 mean 1, 1 NaN");
  EXPECT_EQ(tensorSummary(s32({0}, {})), "s32[0] empty");
}

TEST(Compare, FirstDifferenceIsNamed) {
  const HostTensor want = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  HostTensor got = want;
  EXPECT_FALSE(compareTensors(got, want, {}).has_value());
  got.data<float>()[4] = 5.5f;
  got.data<float>()[5] = NAN;
  const auto d = compareTensors(got, want, defaultTolerance(ElementType::kF32, "highest"));
  ASSERT_TRUE(d.has_value());
  EXPECT_EQ(d->differing, 2);
  EXPECT_EQ(indexText(got.dims, d->first), "[1,1]");
  EXPECT_EQ(d->largest, 0.5);
}

TEST(Compare, TolerancesAndUlps) {
  const HostTensor want = f32({1}, {1});
  const HostTensor near = f32({1}, {1 + 0x1p-22f});
  EXPECT_TRUE(compareTensors(near, want, {}).has_value());
  EXPECT_TRUE(compareTensors(near, want, {0, 0, 1, false}).has_value());
  EXPECT_FALSE(compareTensors(near, want, {0, 0, 2, false}).has_value());
  EXPECT_FALSE(compareTensors(near, want, {1e-6, 0, 0, false}).has_value());
  const HostTensor nan = f32({1}, {NAN});
  EXPECT_TRUE(compareTensors(nan, nan, {}).has_value());
  EXPECT_FALSE(compareTensors(nan, nan, {0, 0, 0, true}).has_value());
  EXPECT_TRUE(compareTensors(s32({1}, {3}), s32({1}, {4}), defaultTolerance(ElementType::kS32, "highest")).has_value());
}

}  // namespace
}  // namespace tpu::eval
