// VALU, EUP, XLU and scalar bodies: plain loops over the 1024 words of a register.
#include "vector_ops.h"

#include <bit>
#include <cmath>

#include "tpu/support/float_convert.h"

namespace tpu::emulate::llo_run {
namespace {

using isa::Opcode;

float f(uint32_t u) { return std::bit_cast<float>(u); }
uint32_t u(float x) { return std::bit_cast<uint32_t>(x); }
int32_t s(uint32_t x) { return static_cast<int32_t>(x); }

uint32_t maxF(uint32_t a, uint32_t b) {
  const float x = f(a), y = f(b);
  if (x != x) return a | 0x400000u;
  if (y != y) return b | 0x400000u;
  if (x == y) return a & b;  // +0 over -0
  return x > y ? a : b;
}
uint32_t minF(uint32_t a, uint32_t b) {
  const float x = f(a), y = f(b);
  if (x != x) return a | 0x400000u;
  if (y != y) return b | 0x400000u;
  if (x == y) return a | b;
  return x < y ? a : b;
}
uint32_t toS32(uint32_t a) {
  const float x = f(a);
  if (x != x) return 0;
  if (x >= 2147483648.0f) return 0x7fffffffu;
  if (x < -2147483648.0f) return 0x80000000u;
  return static_cast<uint32_t>(static_cast<int32_t>(x));
}
uint32_t toU32(uint32_t a) {
  const float x = f(a);
  if (!(x > 0)) return 0;
  if (x >= 4294967296.0f) return 0xffffffffu;
  return static_cast<uint32_t>(x);
}
uint32_t shl(uint32_t a, uint32_t b) { return b >= 32 ? 0 : a << b; }
uint32_t shr(uint32_t a, uint32_t b) { return b >= 32 ? 0 : a >> b; }
uint32_t shra(uint32_t a, uint32_t b) { return static_cast<uint32_t>(s(a) >> (b >= 32 ? 31 : b)); }

template <class F>
bool each(Vector& d, const Vector& a, const Vector& b, F fn) {
  for (int i = 0; i < kWords; ++i) d[i] = fn(a[i], b[i]);
  return true;
}
template <class F>
bool test(Mask& d, const Vector& a, const Vector& b, F fn) {
  for (int i = 0; i < kWords; ++i) d[i] = fn(a[i], b[i]);
  return true;
}

// Narrow rows of a packed register: `bits` wide, row r of the register's 8 * 32 / bits rows.
uint32_t field(const Vector& a, int bits, int row, int lane) {
  const int per = 32 / bits;
  return (a[row / per * kLanes + lane] >> (row % per * bits)) & ((uint32_t{1} << bits) - 1);
}
void setField(Vector& d, int bits, int row, int lane, uint32_t value) {
  const int per = 32 / bits, shift = row % per * bits;
  const uint32_t mask = ((uint32_t{1} << bits) - 1) << shift;
  uint32_t& word = d[row / per * kLanes + lane];
  word = (word & ~mask) | (value << shift & mask);
}
template <class F>
bool unpack(Vector& d, const Vector& a, int bits, int group, F convert) {
  Vector r;
  for (int row = 0; row < kSublanes; ++row)
    for (int l = 0; l < kLanes; ++l) r[row * kLanes + l] = convert(field(a, bits, group * 8 + row, l));
  d = r;
  return true;
}
template <class F>
bool pack16(Vector& d, const Vector& a, const Vector& b, F convert) {
  Vector r{};
  for (int row = 0; row < 16; ++row)
    for (int l = 0; l < kLanes; ++l)
      setField(r, 16, row, l, convert(row < 8 ? a[row * kLanes + l] : b[(row - 8) * kLanes + l]));
  d = r;
  return true;
}
bool pack8(Vector& d, const Vector& a, const Vector& b) {
  Vector r{};
  for (int row = 0; row < 32; ++row)
    for (int l = 0; l < kLanes; ++l) setField(r, 8, row, l, field(row < 16 ? a : b, 16, row % 16, l) & 0xff);
  d = r;
  return true;
}
bool sublanes(Vector& d, const Vector& a, int n, bool rotate) {
  Vector r;
  for (int row = 0; row < kSublanes; ++row)
    for (int l = 0; l < kLanes; ++l) r[row * kLanes + l] = a[(rotate ? (row - n) & 7 : n) * kLanes + l];
  d = r;
  return true;
}

}  // namespace

bool runVector(Opcode op, Vector& d, const Vector& a, const Vector& b, int imm) {
  switch (op) {
    case Opcode::vadd_f32: return each(d, a, b, [](uint32_t x, uint32_t y) { return u(f(x) + f(y)); });
    case Opcode::vsub_f32: return each(d, a, b, [](uint32_t x, uint32_t y) { return u(f(x) - f(y)); });
    case Opcode::vmul_f32: return each(d, a, b, [](uint32_t x, uint32_t y) { return u(f(x) * f(y)); });
    case Opcode::vmax_f32: return each(d, a, b, maxF);
    case Opcode::vmin_f32: return each(d, a, b, minF);
    case Opcode::vfloor_f32: return each(d, a, a, [](uint32_t x, uint32_t) { return u(__builtin_floorf(f(x))); });
    case Opcode::vceil_f32: return each(d, a, a, [](uint32_t x, uint32_t) { return u(__builtin_ceilf(f(x))); });
    case Opcode::vtrunc_f32: return each(d, a, a, [](uint32_t x, uint32_t) { return u(__builtin_truncf(f(x))); });
    case Opcode::vround_f32: return each(d, a, a, [](uint32_t x, uint32_t) { return u(__builtin_rintf(f(x))); });
    case Opcode::vadd_s32: return each(d, a, b, [](uint32_t x, uint32_t y) { return x + y; });
    case Opcode::vsub_s32: return each(d, a, b, [](uint32_t x, uint32_t y) { return x - y; });
    case Opcode::vmul_s32: return each(d, a, b, [](uint32_t x, uint32_t y) { return x * y; });
    case Opcode::vmulh_u32: return each(d, a, b, [](uint32_t x, uint32_t y) { return static_cast<uint32_t>(uint64_t{x} * y >> 32); });
    case Opcode::vmax_s32: return each(d, a, b, [](uint32_t x, uint32_t y) { return s(x) > s(y) ? x : y; });
    case Opcode::vmin_s32: return each(d, a, b, [](uint32_t x, uint32_t y) { return s(x) < s(y) ? x : y; });
    case Opcode::vmax_u32: return each(d, a, b, [](uint32_t x, uint32_t y) { return x > y ? x : y; });
    case Opcode::vmin_u32: return each(d, a, b, [](uint32_t x, uint32_t y) { return x < y ? x : y; });
    case Opcode::vand: return each(d, a, b, [](uint32_t x, uint32_t y) { return x & y; });
    case Opcode::vor: return each(d, a, b, [](uint32_t x, uint32_t y) { return x | y; });
    case Opcode::vxor: return each(d, a, b, [](uint32_t x, uint32_t y) { return x ^ y; });
    case Opcode::vshl: return each(d, a, b, shl);
    case Opcode::vshr: return each(d, a, b, shr);
    case Opcode::vshra: return each(d, a, b, shra);
    case Opcode::vclz: return each(d, a, a, [](uint32_t x, uint32_t) { return static_cast<uint32_t>(std::countl_zero(x)); });
    case Opcode::vpcnt: return each(d, a, a, [](uint32_t x, uint32_t) { return static_cast<uint32_t>(std::popcount(x)); });
    case Opcode::vcvt_f32_s32: return each(d, a, a, [](uint32_t x, uint32_t) { return toS32(x); });
    case Opcode::vcvt_f32_u32: return each(d, a, a, [](uint32_t x, uint32_t) { return toU32(x); });
    case Opcode::vcvt_s32_f32: return each(d, a, a, [](uint32_t x, uint32_t) { return u(static_cast<float>(s(x))); });
    case Opcode::vcvt_u32_f32: return each(d, a, a, [](uint32_t x, uint32_t) { return u(static_cast<float>(x)); });
    case Opcode::vpack_bf16: return pack16(d, a, b, [](uint32_t x) { return uint32_t{f32ToBf16(f(x))}; });
    case Opcode::vunpack_bf16: return unpack(d, a, 16, imm, [](uint32_t x) { return x << 16; });
    case Opcode::vpack_b16: return pack16(d, a, b, [](uint32_t x) { return x & 0xffff; });
    case Opcode::vunpack_s16: return unpack(d, a, 16, imm, [](uint32_t x) { return shra(x << 16, 16); });
    case Opcode::vunpack_u16: return unpack(d, a, 16, imm, [](uint32_t x) { return x; });
    case Opcode::vpack_b8: return pack8(d, a, b);
    case Opcode::vunpack_s8: return unpack(d, a, 8, imm, [](uint32_t x) { return shra(x << 24, 24); });
    case Opcode::vunpack_u8: return unpack(d, a, 8, imm, [](uint32_t x) { return x; });
    case Opcode::vmov: d = a; return true;
    case Opcode::vlane: for (int i = 0; i < kWords; ++i) d[i] = i % kLanes; return true;
    case Opcode::vsublane: for (int i = 0; i < kWords; ++i) d[i] = i / kLanes; return true;
    case Opcode::vrot_sublane: return sublanes(d, a, imm, true);
    case Opcode::vbcast_sublane: return sublanes(d, a, imm, false);
    default: return false;
  }
}

bool runCompare(Opcode op, Mask& d, const Vector& a, const Vector& b) {
  switch (op) {
#define TPU_REL(name, rel)                                                                                     \
  case Opcode::vcmp_##name##_f32: return test(d, a, b, [](uint32_t x, uint32_t y) { return f(x) rel f(y); }); \
  case Opcode::vcmp_##name##_s32: return test(d, a, b, [](uint32_t x, uint32_t y) { return s(x) rel s(y); });
    TPU_REL(eq, ==) TPU_REL(ne, !=) TPU_REL(lt, <) TPU_REL(le, <=) TPU_REL(gt, >) TPU_REL(ge, >=)
#undef TPU_REL
#define TPU_REL(name, rel) \
  case Opcode::vcmp_##name##_u32: return test(d, a, b, [](uint32_t x, uint32_t y) { return x rel y; });
    TPU_REL(lt, <) TPU_REL(le, <=) TPU_REL(gt, >) TPU_REL(ge, >=)
#undef TPU_REL
    default: return false;
  }
}

bool runXlu(Opcode op, Vector& d, const Vector& a, const Vector& b, uint32_t n) {
  Vector r = a;
  auto fold = [&](auto fn) {
    for (int half = kLanes / 2; half >= 1; half /= 2)
      for (int row = 0; row < kSublanes; ++row)
        for (int l = 0; l < half; ++l) {
          uint32_t* x = &r[row * kLanes];
          x[l] = fn(x[l], x[l + half]);
        }
    for (int i = 0; i < kWords; ++i) d[i] = r[i / kLanes * kLanes];
    return true;
  };
  auto permute = [&](auto from) {
    for (int i = 0; i < kWords; ++i) r[i] = a[i / kLanes * kLanes + (from(i) & (kLanes - 1))];
    d = r;
    return true;
  };
  switch (op) {
    case Opcode::vadd_xlane_f32: return fold([](uint32_t x, uint32_t y) { return u(f(x) + f(y)); });
    case Opcode::vmax_xlane_f32: return fold(maxF);
    case Opcode::vmin_xlane_f32: return fold(minF);
    case Opcode::vrot_lane: return permute([&](int i) { return static_cast<uint32_t>(i % kLanes) - n; });
    case Opcode::vbcast_lane: return permute([&](int) { return n; });
    case Opcode::vperm_lane: return permute([&](int i) { return b[i]; });
    default: return false;
  }
}

bool runScalar(Opcode op, uint32_t& d, uint32_t a, uint32_t b) {
  switch (op) {
    case Opcode::sadd: d = a + b; return true;
    case Opcode::ssub: d = a - b; return true;
    case Opcode::smul: d = a * b; return true;
    case Opcode::sdivu: d = b ? a / b : ~0u; return true;
    case Opcode::sremu: d = b ? a % b : a; return true;
    case Opcode::sdivs: d = !b ? ~0u : b == ~0u ? 0 - a : static_cast<uint32_t>(s(a) / s(b)); return true;
    case Opcode::srems: d = !b ? a : b == ~0u ? 0 : static_cast<uint32_t>(s(a) % s(b)); return true;
    case Opcode::sand: d = a & b; return true;
    case Opcode::sor: d = a | b; return true;
    case Opcode::sxor: d = a ^ b; return true;
    case Opcode::sshl: d = shl(a, b); return true;
    case Opcode::sshr: d = shr(a, b); return true;
    case Opcode::sshra: d = shra(a, b); return true;
    case Opcode::smin: d = s(a) < s(b) ? a : b; return true;
    case Opcode::smax: d = s(a) > s(b) ? a : b; return true;
    default: return false;
  }
}

bool runScalarCompare(Opcode op, bool& d, uint32_t a, uint32_t b) {
  switch (op) {
    case Opcode::scmp_eq: d = a == b; return true;
    case Opcode::scmp_ne: d = a != b; return true;
    case Opcode::scmp_lt: d = s(a) < s(b); return true;
    case Opcode::scmp_le: d = s(a) <= s(b); return true;
    case Opcode::scmp_gt: d = s(a) > s(b); return true;
    case Opcode::scmp_ge: d = s(a) >= s(b); return true;
    case Opcode::scmp_ltu: d = a < b; return true;
    case Opcode::scmp_leu: d = a <= b; return true;
    default: return false;
  }
}

}  // namespace tpu::emulate::llo_run
