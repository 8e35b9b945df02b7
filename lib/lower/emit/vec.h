// Writing vector arithmetic as expressions: F, I and B are registers of f32 words, 32-bit integer words and masks; their
// operators append one instruction each.
//
// Instructions whose sources do not change inside the kernel's loops (constants, scalar inputs and what is computed from
// them alone) go to the front of the body and are shared, as long as a fair part of the chip's registers stays free.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "tpu/llo/builder.h"
#include "tpu/target/chip.h"

namespace tpu::lower::emit {

using isa::Opcode;
using llo::Addr;
using llo::M;
using llo::P;
using llo::S;
using llo::V;

class Vec {
 public:
  Vec(llo::Code& code, const target::Chip& chip);
  /// Puts the shared instructions in front of the code. Call once, when all is written.
  void finish();

  llo::CodeBuilder& code() { return body_; }
  const target::Chip& chip() const { return chip_; }

  V bits(uint32_t value);
  V unary(Opcode op, V a) { return plain(op, {a.id, -1, -1}); }
  V binary(Opcode op, V a, V b) { return plain(op, {a.id, b.id, -1}); }
  V withImm(Opcode op, V a, int imm) { return plain(op, {a.id, -1, imm}); }
  V lane() { return plain(Opcode::vlane, {-1, -1, -1}); }
  V sublane() { return plain(Opcode::vsublane, {-1, -1, -1}); }
  M compare(Opcode op, V a, V b) { return body_.m(op, {a, b}); }
  V select(M m, V a, V b) { return body_.v(Opcode::vsel, {m, a, b}); }
  V splat(S s) { return body_.v(Opcode::vsplat, {s}); }
  /// A push to the EUP and its pop.
  V eup(Opcode op, V a);
  /// A push to a cross-lane unit and its pop; units take turns.
  V xlu(Opcode op, V a) { return xluPop([&](llo::XluUnit u) { body_.emit(op, {u, a}); }); }
  V xlu(Opcode op, V a, llo::Arg n) { return xluPop([&](llo::XluUnit u) { body_.emit(op, {u, a, n}); }); }
  V permute(V a, V lanes) { return xluPop([&](llo::XluUnit u) { body_.emit(Opcode::vperm_lane, {u, a, lanes}); }); }
  llo::XluUnit xluUnit() { return units_[next_unit_++ % units_.size()]; }

  /// Elements of the register under computation that exist, where code depends on all of them at once; none: all do.
  std::optional<M> existing;
  /// The largest of whole numbers from 0 up to 2^24 over the elements that exist, as a scalar.
  S largest(V numbers);

  /// The word at SMEM parameter `word`, read once; and in all lanes.
  S scalarParam(int word);
  V splatParam(int word);

 private:
  struct Sources {
    int a, b, imm;
    auto operator<=>(const Sources&) const = default;
  };
  V plain(Opcode op, Sources s);
  bool invariant(int v) const { return v < 0 || (v < static_cast<int>(invariant_.size()) && invariant_[v]); }
  V share(V v);
  void append(llo::CodeBuilder& to, Opcode op, V d, Sources s);
  V xluPop(llvm::function_ref<void(llo::XluUnit)> push);

  llo::Code& code_;
  llo::Code front_code_;
  llo::CodeBuilder body_, front_;
  const target::Chip& chip_;
  std::vector<bool> invariant_;
  std::map<std::pair<Opcode, Sources>, V> shared_;
  std::map<int, S> scalar_params_;
  std::map<int, V> splat_params_;
  int shared_count_ = 0, shared_limit_ = 0;
  std::vector<llo::XluUnit> units_;
  size_t next_unit_ = 0;
};

struct F {
  Vec* e;
  V v;
};
struct I {
  Vec* e;
  V v;
};
struct B {
  Vec* e;
  M m;
};

inline F constant(Vec* e, float x) { return {e, e->bits(__builtin_bit_cast(uint32_t, x))}; }
inline I constant(Vec* e, uint32_t x) { return {e, e->bits(x)}; }
inline F asF(I x) { return {x.e, x.v}; }
inline I asI(F x) { return {x.e, x.v}; }

#define TPU_F(name, op)                                                             \
  inline F name(F a, F b) { return {a.e, a.e->binary(Opcode::op, a.v, b.v)}; }      \
  inline F name(F a, float b) { return name(a, constant(a.e, b)); }                 \
  inline F name(float a, F b) { return name(constant(b.e, a), b); }
TPU_F(operator+, vadd_f32)
TPU_F(operator-, vsub_f32)
TPU_F(operator*, vmul_f32)
TPU_F(max, vmax_f32)
TPU_F(min, vmin_f32)
#undef TPU_F
#define TPU_I(name, op)                                                             \
  inline I name(I a, I b) { return {a.e, a.e->binary(Opcode::op, a.v, b.v)}; }      \
  inline I name(I a, uint32_t b) { return name(a, constant(a.e, b)); }              \
  inline I name(uint32_t a, I b) { return name(constant(b.e, a), b); }
TPU_I(operator+, vadd_s32)
TPU_I(operator-, vsub_s32)
TPU_I(operator*, vmul_s32)
TPU_I(operator&, vand)
TPU_I(operator|, vor)
TPU_I(operator^, vxor)
TPU_I(operator<<, vshl)
TPU_I(operator>>, vshr)  // zeros shifted in
TPU_I(sra, vshra)
TPU_I(mulHigh, vmulh_u32)
TPU_I(smax, vmax_s32)
TPU_I(smin, vmin_s32)
TPU_I(umax, vmax_u32)
TPU_I(umin, vmin_u32)
#undef TPU_I
#define TPU_CMP(name, op)                                                                  \
  inline B name(F a, F b) { return {a.e, a.e->compare(Opcode::vcmp_##op##_f32, a.v, b.v)}; } \
  inline B name(F a, float b) { return name(a, constant(a.e, b)); }                        \
  inline B name(I a, I b) { return {a.e, a.e->compare(Opcode::vcmp_##op##_s32, a.v, b.v)}; } \
  inline B name(I a, uint32_t b) { return name(a, constant(a.e, b)); }
TPU_CMP(eq, eq)
TPU_CMP(ne, ne)
TPU_CMP(lt, lt)
TPU_CMP(le, le)
TPU_CMP(gt, gt)
TPU_CMP(ge, ge)
#undef TPU_CMP
#define TPU_CMPU(name, op)                                                                 \
  inline B name(I a, I b) { return {a.e, a.e->compare(Opcode::vcmp_##op##_u32, a.v, b.v)}; } \
  inline B name(I a, uint32_t b) { return name(a, constant(a.e, b)); }
TPU_CMPU(ltu, lt)
TPU_CMPU(leu, le)
TPU_CMPU(gtu, gt)
TPU_CMPU(geu, ge)
#undef TPU_CMPU
inline B operator&(B a, B b) { return {a.e, a.e->code().m(Opcode::mand, {a.m, b.m})}; }
inline B operator|(B a, B b) { return {a.e, a.e->code().m(Opcode::mor, {a.m, b.m})}; }
inline B operator^(B a, B b) { return {a.e, a.e->code().m(Opcode::mxor, {a.m, b.m})}; }
inline B operator!(B a) { return {a.e, a.e->code().m(Opcode::mnot, {a.m})}; }
inline F select(B m, F a, F b) { return {m.e, m.e->select(m.m, a.v, b.v)}; }
inline F select(B m, float a, F b) { return select(m, constant(m.e, a), b); }
inline F select(B m, F a, float b) { return select(m, a, constant(m.e, b)); }
inline F select(B m, float a, float b) { return select(m, constant(m.e, a), constant(m.e, b)); }
inline I select(B m, I a, I b) { return {m.e, m.e->select(m.m, a.v, b.v)}; }
inline I select(B m, uint32_t a, I b) { return select(m, constant(m.e, a), b); }
inline I select(B m, I a, uint32_t b) { return select(m, a, constant(m.e, b)); }
inline I select(B m, uint32_t a, uint32_t b) { return select(m, constant(m.e, a), constant(m.e, b)); }

inline F operator-(F a) { return asF(asI(a) ^ 0x80000000u); }
inline F abs(F a) { return asF(asI(a) & 0x7fffffffu); }
inline I signBit(F a) { return asI(a) & 0x80000000u; }
/// |magnitude| must have a clear sign.
inline F withSign(F magnitude, I sign) { return asF(asI(magnitude) | sign); }
#define TPU_ROUND(name, op) inline F name(F a) { return {a.e, a.e->unary(Opcode::op, a.v)}; }
TPU_ROUND(floor, vfloor_f32)
TPU_ROUND(ceil, vceil_f32)
TPU_ROUND(trunc, vtrunc_f32)
TPU_ROUND(roundEven, vround_f32)
#undef TPU_ROUND
inline I toS32(F a) { return {a.e, a.e->unary(Opcode::vcvt_f32_s32, a.v)}; }
inline I toU32(F a) { return {a.e, a.e->unary(Opcode::vcvt_f32_u32, a.v)}; }
inline F fromS32(I a) { return {a.e, a.e->unary(Opcode::vcvt_s32_f32, a.v)}; }
inline F fromU32(I a) { return {a.e, a.e->unary(Opcode::vcvt_u32_f32, a.v)}; }
inline I clz(I a) { return {a.e, a.e->unary(Opcode::vclz, a.v)}; }
inline I popCount(I a) { return {a.e, a.e->unary(Opcode::vpcnt, a.v)}; }
/// EUP results, good to about 2^-20 (pow2 of an integer is exact).
inline F seedRcp(F a) { return {a.e, a.e->eup(Opcode::vrcp, a.v)}; }
inline F seedRsqrt(F a) { return {a.e, a.e->eup(Opcode::vrsqrt, a.v)}; }
inline F pow2Int(F a) { return {a.e, a.e->eup(Opcode::vpow2, a.v)}; }
/// Nearest bf16, as f32.
inline F roundBf16(F a) {
  const V p = a.e->binary(Opcode::vpack_bf16, a.v, a.v);
  return {a.e, a.e->withImm(Opcode::vunpack_bf16, p, 0)};
}

}  // namespace tpu::lower::emit
