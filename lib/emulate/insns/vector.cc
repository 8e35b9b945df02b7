// The plumbing of vector instructions: where a body's sources stand and where its result goes - a register,
// or an entry of the EUP's or an XLU's FIFO - and, in strict runs, how definedness follows the values.
#include <algorithm>
#include <cstring>

#include "exec.h"
#include "flow.h"

namespace tpu::emulate {
namespace {

// Definedness of body(a, b, c, imm) into `out`, which may be the shadow of a source. Sources that an
// instruction does not have count as defined.
void follow(const Core& c, const Op& op, uint32_t imm, uint32_t* out) {
  static constexpr Vector kZero{};
  const int count = op.sources;
  const uint32_t* sa = count > 0 ? c.v_shadow[op.a].w : kZero.w;
  const uint32_t* sb = count > 1 ? c.v_shadow[op.b].w : kZero.w;
  const uint32_t* sc = count > 2 ? c.v_shadow[op.c].w : kZero.w;
  const uint32_t* a = c.v[op.a].w;
  const uint32_t* b = c.v[op.b].w;
  switch (op.flow) {
    case Flow::kDefined:
      std::memset(out, 0, sizeof(Vector));
      return;
    case Flow::kWords:
      return flowWords(out, sa, sb, sc);
    case Flow::kBits:
      return flowBits(out, sa, sb);
    case Flow::kAnd:
      return flowAnd(out, a, b, sa, sb);
    case Flow::kOr:
      return flowOr(out, a, b, sa, sb);
    case Flow::kSelect:
      return flowSelect(out, a, sa, sb, sc);
    case Flow::kMove:
      return op.body(out, sa, sb, sc, imm);
    case Flow::kShift:
    case Flow::kPermute: {
      Vector moved, spoilt;
      op.body(moved.w, sa, b, b, imm);
      flowWords(spoilt.w, sb, sb, sb);
      return flowBits(out, moved.w, spoilt.w);
    }
    case Flow::kHalves: {
      Vector wa, wb;
      flowWords(wa.w, sa, sa, sa);
      flowWords(wb.w, sb, sb, sb);
      return vectorBody(isa::Opcode::vpack_b16)(out, wa.w, wb.w, wb.w, imm);
    }
    case Flow::kLanes:
      for (int s = 0; s < 8; ++s) {
        const bool bad = std::any_of(sa + s * 128, sa + s * 128 + 128, [](uint32_t w) { return w != 0; });
        std::fill_n(out + s * 128, 128, bad ? ~0u : 0u);
      }
      return;
  }
}

template <bool kStrict>
void toRegister(Core& c, const Op& op) {
  const uint32_t imm = c.scalar(op);
  if constexpr (kStrict) {
    follow(c, op, imm, c.v_shadow[op.d].w);
  }
  op.body(c.v[op.d].w, c.v[op.a].w, c.v[op.b].w, c.v[op.c].w, imm);
}

template <bool kStrict>
void toFifo(Core& c, const Op& op) {
  if constexpr (kStrict) {
    if (op.sreg != kNoReg && c.s_shadow[op.sreg])
      return c.fail(op, tpu::Code::kEmuUndefined, "the lane number is undefined");
  }
  const int slot = c.push(op, op.push_fifo, 1);
  if (slot < 0) return;
  Fifo& f = c.fifos[op.push_fifo];
  const uint32_t imm = c.scalar(op);
  op.body(f.value[slot].w, c.v[op.a].w, c.v[op.b].w, c.v[op.c].w, imm);
  if constexpr (kStrict) follow(c, op, imm, f.shadow[slot].w);
}

// The buffer of a transposition, at its first use.
void fillBuffer(std::vector<Vector>& buffer) {
  if (!buffer.empty()) return;
  buffer.resize(16);
  for (Vector& v : buffer) std::fill_n(v.w, kVectorWords, ~0u);
}

template <bool kStrict>
void fromFifo(Core& c, const Op& op) {
  const int slot = c.pop(op.pop_fifo);
  const Fifo& f = c.fifos[op.pop_fifo];
  copyRegister(c.v[op.d].w, f.value[slot].w);
  if constexpr (kStrict) copyRegister(c.v_shadow[op.d].w, f.shadow[slot].w);
}

template <bool kStrict>
void copyVector(Core& c, const Op& op) {
  copyRegister(c.v[op.d].w, c.v[op.a].w);
  if constexpr (kStrict) copyRegister(c.v_shadow[op.d].w, c.v_shadow[op.a].w);
}
template <bool kStrict>
void copyScalar(Core& c, const Op& op) {
  c.s[op.d] = c.s[op.a];
  if constexpr (kStrict) c.s_shadow[op.d] = c.s_shadow[op.a];
}
template <bool kStrict>
void copyPred(Core& c, const Op& op) {
  c.p[op.d] = c.p[op.a];
  if constexpr (kStrict) c.p_shadow[op.d] = c.p_shadow[op.a];
}

}  // namespace

// Rows whose plumbing is their slot's.
#define TPU_TO_REGISTER(id) \
  TPU_EXEC(id) { toRegister<kStrict>(c, op); }
#define TPU_TO_FIFO(id) \
  TPU_EXEC(id) { toFifo<kStrict>(c, op); }
#define TPU_VCMP_ROWS(type)       \
  TPU_TO_REGISTER(vcmp_lt_##type) \
  TPU_TO_REGISTER(vcmp_le_##type) TPU_TO_REGISTER(vcmp_gt_##type) TPU_TO_REGISTER(vcmp_ge_##type)

TPU_TO_REGISTER(vadd_f32)
TPU_TO_REGISTER(vsub_f32) TPU_TO_REGISTER(vmul_f32) TPU_TO_REGISTER(vmax_f32) TPU_TO_REGISTER(vmin_f32)
    TPU_TO_REGISTER(vfloor_f32) TPU_TO_REGISTER(vceil_f32) TPU_TO_REGISTER(vtrunc_f32) TPU_TO_REGISTER(
        vround_f32) TPU_TO_REGISTER(vadd_s32) TPU_TO_REGISTER(vsub_s32) TPU_TO_REGISTER(vmul_s32)
        TPU_TO_REGISTER(vmulh_u32) TPU_TO_REGISTER(vmax_s32) TPU_TO_REGISTER(vmin_s32) TPU_TO_REGISTER(
            vmax_u32) TPU_TO_REGISTER(vmin_u32) TPU_TO_REGISTER(vand) TPU_TO_REGISTER(vor)
            TPU_TO_REGISTER(vxor) TPU_TO_REGISTER(vshl) TPU_TO_REGISTER(vshr) TPU_TO_REGISTER(vshra)
                TPU_TO_REGISTER(vclz) TPU_TO_REGISTER(vpcnt) TPU_TO_REGISTER(vcmp_eq_f32) TPU_TO_REGISTER(
                    vcmp_ne_f32) TPU_VCMP_ROWS(f32) TPU_TO_REGISTER(vcmp_eq_s32) TPU_TO_REGISTER(vcmp_ne_s32)
                    TPU_VCMP_ROWS(s32) TPU_VCMP_ROWS(u32) TPU_TO_REGISTER(vsel) TPU_TO_REGISTER(mand)
                        TPU_TO_REGISTER(mor) TPU_TO_REGISTER(mxor) TPU_TO_REGISTER(mnot) TPU_TO_REGISTER(mmov)
                            TPU_TO_REGISTER(vcvt_f32_s32) TPU_TO_REGISTER(vcvt_f32_u32) TPU_TO_REGISTER(
                                vcvt_s32_f32) TPU_TO_REGISTER(vcvt_u32_f32) TPU_TO_REGISTER(vpack_bf16)
                                TPU_TO_REGISTER(vunpack_bf16) TPU_TO_REGISTER(vpack_b16) TPU_TO_REGISTER(
                                    vunpack_s16) TPU_TO_REGISTER(vunpack_u16) TPU_TO_REGISTER(vpack_b8)
                                    TPU_TO_REGISTER(vunpack_s8) TPU_TO_REGISTER(vunpack_u8)
                                        TPU_TO_REGISTER(vmov) TPU_TO_REGISTER(vimm) TPU_TO_REGISTER(vlane)
                                            TPU_TO_REGISTER(vsublane) TPU_TO_REGISTER(vrot_sublane)
                                                TPU_TO_REGISTER(vbcast_sublane) TPU_TO_FIFO(vrcp)
                                                    TPU_TO_FIFO(vrsqrt) TPU_TO_FIFO(vpow2) TPU_TO_FIFO(vlog2)
                                                        TPU_TO_FIFO(vtanh) TPU_TO_FIFO(vadd_xlane_f32)
                                                            TPU_TO_FIFO(vmax_xlane_f32)
                                                                TPU_TO_FIFO(vmin_xlane_f32)
                                                                    TPU_TO_FIFO(vrot_lane)
                                                                        TPU_TO_FIFO(vbcast_lane)
                                                                            TPU_TO_FIFO(vperm_lane)

                                                                                TPU_EXEC(vsplat) {
  op.body(c.v[op.d].w, nullptr, nullptr, nullptr, c.s[op.a]);
  if constexpr (kStrict) std::fill_n(c.v_shadow[op.d].w, kVectorWords, c.s_shadow[op.a]);
}
TPU_EXEC(vtos) {
  const int slot = c.push(op, kV2sFifo, 1);
  if (slot < 0) return;
  c.fifos[kV2sFifo].value[slot].w[0] = c.v[op.a].w[0];
  if constexpr (kStrict) c.fifos[kV2sFifo].shadow[slot].w[0] = c.v_shadow[op.a].w[0];
}

TPU_EXEC(vxpose) {
  Xlu& x = c.xlu[op.unit];
  fillBuffer(x.buffer);
  copyRegister(x.buffer[op.small[0]].w, c.v[op.a].w);
  if constexpr (kStrict) {
    fillBuffer(x.shadow);
    copyRegister(x.shadow[op.small[0]].w, c.v_shadow[op.a].w);
  }
}
TPU_EXEC(vxpose_go) {
  Xlu& x = c.xlu[op.unit];
  fillBuffer(x.buffer);
  if constexpr (kStrict) {
    fillBuffer(x.shadow);
  }
  Fifo& f = c.fifos[op.push_fifo];
  const int before = f.count;
  if (c.push(op, op.push_fifo, op.entries) < 0) return;
  for (int j = 0; j < op.entries; ++j) {
    transposeEntry(f.value[f.slot(before + j)].w, x.buffer.front().w, op.small[0], j);
    if constexpr (kStrict) transposeEntry(f.shadow[f.slot(before + j)].w, x.shadow.front().w, op.small[0], j);
  }
}

TPU_EXEC(vpop_eup) { fromFifo<kStrict>(c, op); }
TPU_EXEC(vpop_xlu) { fromFifo<kStrict>(c, op); }
TPU_EXEC(vpop_trf) { fromFifo<kStrict>(c, op); }

Exec copyExec(isa::RegClass cls, bool strict) {
  switch (cls) {
    case isa::RegClass::kScalar:
      return strict ? &copyScalar<true> : &copyScalar<false>;
    case isa::RegClass::kPred:
      return strict ? &copyPred<true> : &copyPred<false>;
    case isa::RegClass::kVector:
    case isa::RegClass::kMask:
      return strict ? &copyVector<true> : &copyVector<false>;
  }
  return nullptr;
}

Exec execOf(isa::Opcode op, bool strict) {
  using Getter = Exec (*)(bool);
  static constexpr Getter kTable[] = {
#define TPU_INSN(id, mnemonic, slot, ...) &execOf_##id,
#include "tpu/isa/instructions.def"
  };
  return kTable[static_cast<size_t>(op)](strict);
}

Flow flowOf(isa::Opcode op) {
  using enum isa::Opcode;
  switch (op) {
    case vimm:
    case vlane:
    case vsublane:
      return Flow::kDefined;
    case vand:
    case mand:
      return Flow::kAnd;
    case vor:
    case mor:
      return Flow::kOr;
    case vxor:
    case mxor:
      return Flow::kBits;
    case vshl:
    case vshr:
    case vshra:
      return Flow::kShift;
    case mnot:
      return Flow::kBits;
    case vmov:
    case mmov:
    case vrot_sublane:
    case vbcast_sublane:
    case vpack_b16:
    case vpack_b8:
    case vunpack_bf16:
    case vunpack_s16:
    case vunpack_u16:
    case vunpack_s8:
    case vunpack_u8:
    case vrot_lane:
    case vbcast_lane:
      return Flow::kMove;
    case vpack_bf16:
      return Flow::kHalves;
    case vsel:
      return Flow::kSelect;
    case vadd_xlane_f32:
    case vmax_xlane_f32:
    case vmin_xlane_f32:
      return Flow::kLanes;
    case vperm_lane:
      return Flow::kPermute;
    default:
      return Flow::kWords;
  }
}

}  // namespace tpu::emulate
