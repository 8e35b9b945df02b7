// Functions against values computed in 300-bit arithmetic and more, and the special values of C.
#include "tpu/eval/math.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace tpu {
namespace {

struct Row {
  const char* name;
  double (*function)(double);
  double x, want;
};

// clang-format off
const Row kRows[] = {
    {"exp", math::exp, 0x1.0000000000000p-1, 0x1.a61298e1e069cp+0},
    {"exp", math::exp, -0x1.5e20000000000p+9, 0x1.af5fe9a485c8ep-1011},
    {"exp", math::exp, 0x1.62c0000000000p+9, 0x1.81e9b4b52d0c9p+1023},
    {"exp", math::exp, 0x1.b7cdfd9d7bdbbp-34, 0x1.000000006df38p+0},
    {"expm1", math::expm1, 0x1.12e0be826d695p-30, 0x1.12e0be84bbb51p-30},
    {"expm1", math::expm1, 0x1.3333333333333p-2, 0x1.6641632306a56p-2},
    {"expm1", math::expm1, -0x1.6000000000000p+2, -0x1.fde856b4a6b12p-1},
    {"expm1", math::expm1, 0x1.9200000000000p+6, 0x1.fcc37a76f9e76p+144},
    {"log", math::log, 0x1.999999999999ap-4, -0x1.26bb1bbb55515p+1},
    {"log", math::log, 0x1.000001ad7f29bp+0, 0x1.ad7f2847b6492p-24},
    {"log", math::log, 0x1.7e43c8800759cp+996, 0x1.5963447f87fb5p+9},
    {"log", math::log, 0x0.05c0ab9347ed7p-1022, -0x1.6418918519e41p+9},
    {"log1p", math::log1p, 0x1.19799812dea11p-40, 0x1.19799812de065p-40},
    {"log1p", math::log1p, -0x1.ccccccccccccdp-1, -0x1.26bb1bbb55516p+1},
    {"log1p", math::log1p, 0x1.c000000000000p+1, 0x1.810b375dce91ep+0},
    {"log1p", math::log1p, 0x1.2a05f20000000p+33, 0x1.7069e2aa3184ep+4},
    {"cbrt", math::cbrt, 0x1.0000000000000p+1, 0x1.428a2f98d728bp+0},
    {"cbrt", math::cbrt, 0x1.bff2ee48e0530p-333, 0x1.347c8aaebcb7ap-111},
    {"cbrt", math::cbrt, 0x1.f440000000000p+9, 0x1.400da6abc3915p+3},
    {"sin", math::sin, 0x1.999999999999ap-4, 0x1.98eaecb8bcb2cp-4},
    {"sin", math::sin, 0x1.8000000000000p+1, 0x1.210386db6d55bp-3},
    {"sin", math::sin, 0x1.86a0000000000p+16, 0x1.24daa9c527e96p-5},
    {"sin", math::sin, 0x1.0f0cf064dd592p+73, -0x1.b453ab76bf397p-1},
    {"sin", math::sin, 0x1.fffffffffffffp+1023, 0x1.452fc98b34e97p-8},
    {"sin", math::sin, 0x1.6ac5b262ca1ffp+849, 0x1.0000000000000p+0},
    {"cos", math::cos, 0x1.999999999999ap-4, 0x1.fd712f9a817c1p-1},
    {"cos", math::cos, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54},
    {"cos", math::cos, 0x1.86a0000000000p+16, -0x1.ffac3841b3da7p-1},
    {"cos", math::cos, 0x1.0f0cf064dd592p+73, 0x1.0be2cef01c8f4p-1},
    {"tan", math::tan, 0x1.6666666666666p-1, 0x1.af406c2fc78aep-1},
    {"tan", math::tan, 0x1.e848000000000p+19, -0x1.7e9768ab734c0p-2},
    {"tan", math::tan, 0x1.0f0cf064dd592p+73, -0x1.a0f79c1b6b257p+0},
    {"atan", math::atan, 0x1.3333333333333p-2, 0x1.2a73a661eaf06p-2},
    {"atan", math::atan, -0x1.0000000000000p+1, -0x1.1b6e192ebbe44p+0},
    {"atan", math::atan, 0x1.2a05f20000000p+33, 0x1.921fb543d4de0p+0},
    {"asin", math::asin, 0x1.3333333333333p-2, 0x1.380159e14f6ffp-2},
    {"asin", math::asin, 0x1.ffffde7210be9p-1, 0x1.91c306b2c13adp+0},
    {"acos", math::acos, 0x1.3333333333333p-2, 0x1.441f5ecbeef59p+0},
    {"acos", math::acos, -0x1.ffffde7210be9p-1, 0x1.91f15dfb82062p+1},
    {"sinh", math::sinh, 0x1.5798ee2308c3ap-27, 0x1.5798ee2308c3ap-27},
    {"sinh", math::sinh, 0x1.6666666666666p-1, 0x1.8465153d5bdbdp-1},
    {"sinh", math::sinh, -0x1.4000000000000p+4, -0x1.ceb088b68e804p+27},
    {"cosh", math::cosh, 0x1.6666666666666p-1, 0x1.4152c1862342fp+0},
    {"cosh", math::cosh, 0x1.e000000000000p+4, 0x1.370470aec28edp+42},
    {"tanh", math::tanh, 0x1.5798ee2308c3ap-27, 0x1.5798ee2308c3ap-27},
    {"tanh", math::tanh, 0x1.3333333333333p-2, 0x1.2a4dda7d914fap-2},
    {"tanh", math::tanh, 0x1.4000000000000p+2, 0x1.fff419668df11p-1},
    {"asinh", math::asinh, 0x1.5798ee2308c3ap-27, 0x1.5798ee2308c3ap-27},
    {"asinh", math::asinh, 0x1.6666666666666p-1, 0x1.4e2a4fe9085ddp-1},
    {"asinh", math::asinh, 0x1.5af1d78b58c40p+66, 0x1.75f57369e9343p+5},
    {"acosh", math::acosh, 0x1.00068db8bac71p+0, 0x1.cf67d7ec0d4e5p-7},
    {"acosh", math::acosh, 0x1.4000000000000p+4, 0x1.d818b3e5d4c5fp+1},
    {"atanh", math::atanh, 0x1.3333333333333p-2, 0x1.3cf2b50617c95p-2},
    {"atanh", math::atanh, 0x1.fff2e48e8a71ep-1, 0x1.3ce8f5de1814dp+2},
    {"erf", math::erf, 0x1.999999999999ap-4, 0x1.cca5ea24fb334p-4},
    {"erf", math::erf, 0x1.ccccccccccccdp-1, 0x1.98045a6c8a2e6p-1},
    {"erf", math::erf, 0x1.4000000000000p+1, 0x1.ffcaa8f4c9beap-1},
    {"erfc", math::erfc, 0x1.999999999999ap-4, 0x1.c66b42bb60999p-1},
    {"erfc", math::erfc, 0x1.8000000000000p+0, 0x1.15aaa8ec85205p-5},
    {"erfc", math::erfc, 0x1.4000000000000p+4, 0x1.b54f244df93dfp-583},
    {"erfInv", math::erfInv, 0x1.999999999999ap-4, 0x1.6bf442539fd74p-4},
    {"erfInv", math::erfInv, 0x1.ccccccccccccdp-1, 0x1.29c0146770651p+0},
    {"erfInv", math::erfInv, 0x1.fffffff768fa1p-1, 0x1.147af7e11d345p+2},
    {"lgamma", math::lgamma, 0x1.999999999999ap-4, 0x1.2058e35f3deeep+1},
    {"lgamma", math::lgamma, 0x1.4cccccccccccdp+0, -0x1.bb158251658adp-4},
    {"lgamma", math::lgamma, 0x1.e000000000000p+2, 0x1.e233060e41f7fp+2},
    {"lgamma", math::lgamma, 0x1.86a0000000000p+16, 0x1.00a97b57f4c2ep+20},
    {"lgamma", math::lgamma, -0x1.4000000000000p+1, -0x1.ccbf9f5ed0f16p-5},
    {"digamma", math::digamma, 0x1.999999999999ap-4, -0x1.4d8f668552b02p+3},
    {"digamma", math::digamma, 0x1.4000000000000p+1, 0x1.680425af12b5ep-1},
    {"digamma", math::digamma, 0x1.9000000000000p+6, 0x1.26690d4274475p+2},
    {"digamma", math::digamma, -0x1.4000000000000p+1, 0x1.1a68793defc15p+0},
    {"besselI1e", math::besselI1e, 0x1.0000000000000p-1, 0x1.40598cd0be9efp-3},
    {"besselI1e", math::besselI1e, 0x1.f99999999999ap+2, 0x1.14449dab8388fp-3},
    {"besselI1e", math::besselI1e, 0x1.e000000000000p+4, 0x1.2691bcff83228p-4},
};
// clang-format on

double ulpsOff(double got, double want) {
  const double unit = std::nextafter(std::fabs(want), std::numeric_limits<double>::infinity()) - std::fabs(want);
  return std::fabs(got - want) / unit;
}

// Special functions are held to 1e-13 of the larger of the value and 1.
bool isSpecial(const char* name) {
  for (const char* special : {"erfInv", "lgamma", "digamma", "besselI1e"})
    if (std::strcmp(name, special) == 0) return true;
  return false;
}

TEST(Math, AgreesWithHighPrecision) {
  for (const Row& row : kRows) {
    const double got = row.function(row.x);
    if (isSpecial(row.name)) {
      EXPECT_LE(std::fabs(got - row.want), 1e-13 * std::fmax(1.0, std::fabs(row.want)))
          << row.name << "(" << row.x << ") = " << got;
    } else {
      EXPECT_LE(ulpsOff(got, row.want), 3.0) << row.name << "(" << row.x << ") = " << got;
    }
  }
}

TEST(Math, Powers) {
  EXPECT_EQ(math::pow(2, 10), 1024);
  EXPECT_EQ(math::pow(-2, 3), -8);
  EXPECT_EQ(math::pow(2, -1074), 0x1p-1074);
  EXPECT_LE(ulpsOff(math::pow(1.0000001, 1e9), 0x1.349445c228792p+144), 2);
  EXPECT_TRUE(std::isnan(math::pow(-2, 0.5)));
  EXPECT_EQ(math::pow(0, -1), HUGE_VAL);
  EXPECT_EQ(math::pow(-0.0, -3), -HUGE_VAL);
  EXPECT_EQ(math::pow(HUGE_VAL, -1), 0);
  EXPECT_EQ(math::pow(std::nan(""), 0), 1);
  EXPECT_EQ(math::pow(0.5, -HUGE_VAL), HUGE_VAL);
}

TEST(Math, SpecialValues) {
  const double inf = HUGE_VAL, nan = std::nan("");
  EXPECT_EQ(math::exp(-inf), 0);
  EXPECT_EQ(math::exp(710), inf);
  EXPECT_EQ(math::log(0), -inf);
  EXPECT_TRUE(std::isnan(math::log(-1)));
  EXPECT_TRUE(std::isnan(math::sin(inf)));
  EXPECT_TRUE(std::isnan(math::exp(nan)));
  EXPECT_TRUE(std::signbit(math::sin(-0.0)));
  EXPECT_EQ(math::tanh(inf), 1);
  EXPECT_EQ(math::logistic(-inf), 0);
  EXPECT_EQ(math::atan2(0.0, -1), 0x1.921fb54442d18p+1);
  EXPECT_EQ(math::atan2(-0.0, 1), 0);
  EXPECT_EQ(math::erfInv(1), inf);
  EXPECT_EQ(math::hypot(inf, nan), inf);
  EXPECT_EQ(math::hypot(3e300, 4e300), 5e300);
}

TEST(Math, Rounding) {
  EXPECT_EQ(math::floor(-0.5), -1);
  EXPECT_EQ(math::ceil(0.2), 1);
  EXPECT_EQ(math::roundHalfAway(2.5), 3);
  EXPECT_EQ(math::roundHalfAway(0.49999999999999994), 0);
  EXPECT_EQ(math::roundHalfEven(2.5), 2);
  EXPECT_EQ(math::roundHalfEven(-3.5), -4);
  EXPECT_EQ(math::fmod(-7.5, 2), -1.5);
  EXPECT_EQ(math::fmod(1e300, 7e-300), std::fmod(1e300, 7e-300));
  EXPECT_EQ(math::ldexp(3, -1075), std::ldexp(3, -1075));
}

}  // namespace
}  // namespace tpu
