// Values of vector bodies against plain definitions.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tpu/emulate/vector_bodies.h"

namespace tpu::emulate {
namespace {

using isa::Opcode;
float f(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t u(float x) { return std::bit_cast<uint32_t>(x); }

Vector random(uint32_t seed) {
  Vector v;
  for (auto& w : v.w) {
    seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
    w = seed;
  }
  const float special[] = {0.0f, -0.0f,  1.0f, -1.0f, INFINITY, -INFINITY,
                           NAN,  1e-40f, 0.5f, 2.5f,  4e9f,     -3e9f};
  for (size_t i = 0; i < std::size(special); ++i) v.w[i * 7] = u(special[i]);
  v.w[200] = 5, v.w[201] = 31, v.w[202] = 32, v.w[203] = 40;
  return v;
}

template <class F>
void expectWords(Opcode op, F want, uint32_t imm = 0) {
  const Vector a = random(17), b = random(91);
  Vector d;
  vectorBody(op)(d.w, a.w, b.w, b.w, imm);
  for (int i = 0; i < kVectorWords; ++i)
    ASSERT_EQ(d.w[i], want(a.w[i], b.w[i]))
        << isa::info(op).mnemonic.str() << " word " << i << " of " << a.w[i] << ", " << b.w[i];
}

TEST(VectorBodies, EveryVectorRowHasOne) {
  for (int i = 0; i < static_cast<int>(Opcode::kCount); ++i) {
    const auto op = static_cast<Opcode>(i);
    const isa::Slot slot = isa::info(op).slot;
    const bool vector = slot == isa::Slot::kValu || slot == isa::Slot::kEup || slot == isa::Slot::kXlu;
    if (vector && op != Opcode::vxpose && op != Opcode::vxpose_go) {
      EXPECT_NE(vectorBody(op), nullptr) << isa::info(op).mnemonic.str();
    }
  }
}

TEST(VectorBodies, Integers) {
  expectWords(Opcode::vadd_s32, [](uint32_t x, uint32_t y) { return x + y; });
  expectWords(Opcode::vmul_s32, [](uint32_t x, uint32_t y) { return x * y; });
  expectWords(Opcode::vmulh_u32,
              [](uint32_t x, uint32_t y) { return static_cast<uint32_t>(uint64_t{x} * y >> 32); });
  expectWords(Opcode::vshl, [](uint32_t x, uint32_t y) { return y < 32 ? x << y : 0; });
  expectWords(Opcode::vshr, [](uint32_t x, uint32_t y) { return y < 32 ? x >> y : 0; });
  expectWords(Opcode::vshra, [](uint32_t x, uint32_t y) {
    return static_cast<uint32_t>(static_cast<int32_t>(x) >> (y < 32 ? y : 31));
  });
  expectWords(Opcode::vclz, [](uint32_t x, uint32_t) { return static_cast<uint32_t>(std::countl_zero(x)); });
  expectWords(Opcode::vpcnt, [](uint32_t x, uint32_t) { return static_cast<uint32_t>(std::popcount(x)); });
  expectWords(Opcode::vmax_s32, [](uint32_t x, uint32_t y) {
    return static_cast<int32_t>(x) > static_cast<int32_t>(y) ? x : y;
  });
  expectWords(Opcode::vmin_u32, [](uint32_t x, uint32_t y) { return x < y ? x : y; });
  expectWords(Opcode::vcmp_ge_u32, [](uint32_t x, uint32_t y) { return x >= y ? ~0u : 0u; });
  expectWords(Opcode::vcmp_lt_s32, [](uint32_t x, uint32_t y) {
    return static_cast<int32_t>(x) < static_cast<int32_t>(y) ? ~0u : 0u;
  });
}

TEST(VectorBodies, Floats) {
  const auto nan = 0x7fc00000u;
  expectWords(Opcode::vmax_f32, [&](uint32_t x, uint32_t y) {
    if (std::isnan(f(x)) || std::isnan(f(y))) return nan;
    return f(x) == f(y) ? x & y : f(x) > f(y) ? x : y;
  });
  expectWords(Opcode::vcmp_ne_f32, [](uint32_t x, uint32_t y) { return f(x) != f(y) ? ~0u : 0u; });
  expectWords(Opcode::vcmp_ge_f32, [](uint32_t x, uint32_t y) { return f(x) >= f(y) ? ~0u : 0u; });
  expectWords(Opcode::vcvt_f32_s32, [](uint32_t x, uint32_t) -> uint32_t {
    const double v = f(x);
    if (std::isnan(v)) return 0;
    return static_cast<uint32_t>(
        static_cast<int32_t>(std::clamp(std::trunc(v), -2147483648.0, 2147483647.0)));
  });
  expectWords(Opcode::vcvt_f32_u32, [](uint32_t x, uint32_t) -> uint32_t {
    const double v = f(x);
    if (std::isnan(v)) return 0;
    return static_cast<uint32_t>(std::clamp(std::trunc(v), 0.0, 4294967295.0));
  });
  expectWords(Opcode::vcvt_u32_f32, [](uint32_t x, uint32_t) { return u(static_cast<float>(x)); });
  expectWords(Opcode::vcvt_s32_f32,
              [](uint32_t x, uint32_t) { return u(static_cast<float>(static_cast<int32_t>(x))); });
}

uint32_t half(const Vector& v, int row, int lane) {
  return v.w[row / 2 * 128 + lane] >> (row % 2 * 16) & 0xffff;
}
uint32_t byte(const Vector& v, int row, int lane) {
  return v.w[row / 4 * 128 + lane] >> (row % 4 * 8) & 0xff;
}

TEST(VectorBodies, PackAndUnpack) {
  const Vector a = random(3), b = random(4);
  Vector d;
  vectorBody(Opcode::vpack_b16)(d.w, a.w, b.w, nullptr, 0);
  for (int r = 0; r < 16; ++r) {
    for (int l = 0; l < 128; ++l)
      ASSERT_EQ(half(d, r, l), (r < 8 ? a.w[r * 128 + l] : b.w[(r - 8) * 128 + l]) & 0xffff);
  }
  vectorBody(Opcode::vpack_b8)(d.w, a.w, b.w, nullptr, 0);
  for (int r = 0; r < 32; ++r) {
    for (int l = 0; l < 128; ++l) ASSERT_EQ(byte(d, r, l), half(r < 16 ? a : b, r % 16, l) & 0xff);
  }
  for (uint32_t i = 0; i < 4; ++i) {
    Vector x = a;
    vectorBody(Opcode::vunpack_s8)(x.w, x.w, nullptr, nullptr, i);
    for (int r = 0; r < 8; ++r)
      for (int l = 0; l < 128; ++l)
        ASSERT_EQ(static_cast<int32_t>(x.w[r * 128 + l]),
                  static_cast<int8_t>(byte(a, static_cast<int>(i) * 8 + r, l)));
  }
  for (uint32_t i = 0; i < 2; ++i) {
    vectorBody(Opcode::vunpack_bf16)(d.w, a.w, nullptr, nullptr, i);
    for (int r = 0; r < 8; ++r)
      for (int l = 0; l < 128; ++l)
        ASSERT_EQ(d.w[r * 128 + l], half(a, static_cast<int>(i) * 8 + r, l) << 16);
  }
}

TEST(VectorBodies, LanesAndSublanes) {
  const Vector a = random(5);
  Vector d;
  vectorBody(Opcode::vrot_lane)(d.w, a.w, nullptr, nullptr, 5);
  for (int i = 0; i < kVectorWords; ++i) ASSERT_EQ(d.w[i], a.w[i / 128 * 128 + (i - 5 + 128) % 128]);
  vectorBody(Opcode::vrot_sublane)(d.w, a.w, nullptr, nullptr, 3);
  for (int i = 0; i < kVectorWords; ++i) ASSERT_EQ(d.w[i], a.w[(i - 3 * 128 + 1024) % 1024]);
  Vector small;
  for (int i = 0; i < kVectorWords; ++i) small.w[i] = u(static_cast<float>(i % 37) * 0.1f);
  vectorBody(Opcode::vadd_xlane_f32)(d.w, small.w, nullptr, nullptr, 0);
  for (int s = 0; s < 8; ++s) {
    float row[128];
    for (int l = 0; l < 128; ++l) row[l] = f(small.w[s * 128 + l]);
    for (int step = 64; step; step /= 2)
      for (int l = 0; l < step; ++l) row[l] += row[l + step];
    for (int l = 0; l < 128; ++l) ASSERT_EQ(d.w[s * 128 + l], u(row[0]));
  }
  std::vector<uint32_t> buffer(128 * 128);
  for (size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<uint32_t>(i);
  transposeEntry(d.w, buffer.data(), 16, 3);
  for (int s = 0; s < 8; ++s)
    for (int l = 0; l < 128; ++l) ASSERT_EQ(d.w[s * 128 + l], static_cast<uint32_t>(l * 128 + 16 + 24 + s));
}

struct Worst {
  double relative = 0;
  float at = 0;
};
template <class Reference>
Worst sweep(Opcode op, float from, float to, Reference reference) {
  Worst worst;
  Vector v, d;
  const int total = 400 * kVectorWords;
  for (int base = 0; base < total; base += kVectorWords) {
    for (int i = 0; i < kVectorWords; ++i)
      v.w[i] = u(from + (to - from) * (static_cast<float>(base + i) / static_cast<float>(total)));
    vectorBody(op)(d.w, v.w, nullptr, nullptr, 0);
    for (int i = 0; i < kVectorWords; ++i) {
      const double want = reference(static_cast<double>(f(v.w[i])));
      const double error = std::abs(f(d.w[i]) - want) / std::max(std::abs(want), 1e-37);
      if (error > worst.relative) worst = {error, f(v.w[i])};
    }
  }
  return worst;
}
float one(Opcode op, float x) {
  Vector v, d;
  for (auto& w : v.w) w = u(x);
  vectorBody(op)(d.w, v.w, nullptr, nullptr, 0);
  return f(d.w[77]);
}

TEST(VectorBodies, TranscendentalsAreWithinTwoToTheMinusTwenty) {
  const double bound = std::ldexp(1.0, -20);
  EXPECT_LT(sweep(Opcode::vrcp, 0.1f, 1000.0f, [](double x) { return 1 / x; }).relative, bound);
  EXPECT_LT(sweep(Opcode::vrsqrt, 1e-3f, 1e6f, [](double x) { return 1 / std::sqrt(x); }).relative, bound);
  EXPECT_LT(sweep(Opcode::vpow2, -120.0f, 127.9f, [](double x) { return std::exp2(x); }).relative, bound);
  EXPECT_LT(sweep(Opcode::vlog2, 0.5f, 2.0f, [](double x) { return std::log2(x); }).relative, bound);
  EXPECT_LT(sweep(Opcode::vlog2, 2.0f, 1e9f, [](double x) { return std::log2(x); }).relative, bound);
  EXPECT_LT(sweep(Opcode::vtanh, -12.0f, 12.0f, [](double x) { return std::tanh(x); }).relative, bound);
  EXPECT_LT(sweep(Opcode::vtanh, -0.5f, 0.5f, [](double x) { return std::tanh(x); }).relative, bound);
}

TEST(VectorBodies, TranscendentalsAtTheEdges) {
  EXPECT_EQ(one(Opcode::vrcp, 0.0f), INFINITY);
  EXPECT_EQ(one(Opcode::vrcp, -0.0f), -INFINITY);
  EXPECT_EQ(one(Opcode::vrcp, INFINITY), 0.0f);
  EXPECT_TRUE(std::isnan(one(Opcode::vrcp, NAN)));
  EXPECT_EQ(one(Opcode::vrsqrt, 0.0f), INFINITY);
  EXPECT_EQ(one(Opcode::vrsqrt, INFINITY), 0.0f);
  EXPECT_TRUE(std::isnan(one(Opcode::vrsqrt, -1.0f)));
  EXPECT_EQ(one(Opcode::vpow2, 128.0f), INFINITY);
  EXPECT_EQ(one(Opcode::vpow2, -151.0f), 0.0f);
  EXPECT_EQ(one(Opcode::vpow2, -149.0f), std::ldexp(1.0f, -149));
  EXPECT_EQ(one(Opcode::vpow2, 0.0f), 1.0f);
  EXPECT_EQ(one(Opcode::vpow2, -INFINITY), 0.0f);
  EXPECT_TRUE(std::isnan(one(Opcode::vpow2, NAN)));
  EXPECT_EQ(one(Opcode::vlog2, 0.0f), -INFINITY);
  EXPECT_EQ(one(Opcode::vlog2, 1.0f), 0.0f);
  EXPECT_EQ(one(Opcode::vlog2, 8.0f), 3.0f);
  EXPECT_EQ(one(Opcode::vlog2, std::ldexp(1.0f, -140)), -140.0f);
  EXPECT_EQ(one(Opcode::vlog2, INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(one(Opcode::vlog2, -1.0f)));
  EXPECT_EQ(one(Opcode::vtanh, INFINITY), 1.0f);
  EXPECT_EQ(one(Opcode::vtanh, -INFINITY), -1.0f);
  EXPECT_EQ(one(Opcode::vtanh, 1e-30f), 1e-30f);
  EXPECT_TRUE(std::signbit(one(Opcode::vtanh, -0.0f)));
}

}  // namespace
}  // namespace tpu::emulate
