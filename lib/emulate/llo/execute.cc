// One machine instruction of llo on the registers of a context.
#include <cstring>

#include "device.h"
#include "scalar_ops.h"
#include "tpu/support/diagnostics.h"

namespace tpu::emulate::llo_run {

namespace {
constexpr int kLanes = 128, kSublanes = 8;
}

using isa::Opcode;
using isa::Operand;
using isa::Slot;
using llvm::Error;

Error Device::execute(const isa::Instruction& insn) {
  Context& c = top();
  if (insn.pred_virt && (c.p[insn.pred] != 0) == insn.pred_neg) return Error::success();
  const auto& o = insn.operands;
  bool done = true;
  switch (insn.op) {
    case Opcode::smov: c.s[o[0].reg] = scalarOf(o[1]); return Error::success();
    case Opcode::ssel: c.s[o[0].reg] = c.p[o[1].reg] ? scalarOf(o[2]) : scalarOf(o[3]); return Error::success();
    case Opcode::pand: c.p[o[0].reg] = c.p[o[1].reg] & c.p[o[2].reg]; return Error::success();
    case Opcode::por: c.p[o[0].reg] = c.p[o[1].reg] | c.p[o[2].reg]; return Error::success();
    case Opcode::pxor: c.p[o[0].reg] = c.p[o[1].reg] ^ c.p[o[2].reg]; return Error::success();
    case Opcode::pmov: c.p[o[0].reg] = c.p[o[1].reg]; return Error::success();
    case Opcode::pset: c.p[o[0].reg] = o[1].imm != 0; return Error::success();
    case Opcode::trap: return bad(Code::kLloTrap, "trap " + llvm::Twine(o[0].imm));
    default: break;
  }
  const isa::InstructionInfo& row = isa::info(insn.op);
  if (row.slot == Slot::kScalar && insn.num_operands == 3) {
    const uint32_t a = scalarOf(o[1]), b = scalarOf(o[2]);
    uint32_t d;
    bool p;
    if (runScalar(insn.op, d, a, b)) c.s[o[0].reg] = d;
    else if (runScalarCompare(insn.op, p, a, b)) c.p[o[0].reg] = p;
    else return bad(Code::kInternalError, row.mnemonic + " has no meaning in llo");
    return Error::success();
  }
  if (row.slot == Slot::kValu && insn.op != Opcode::vtos && executeVector(insn, vec(o[0]))) return Error::success();
  if (Error e = executeMemory(insn, &done)) return e;
  if (done) return Error::success();
  if (Error e = executeUnit(insn, &done)) return e;
  if (done) return Error::success();
  if (Error e = executeMatrix(insn, &done)) return e;
  if (done) return Error::success();
  return bad(Code::kInternalError, row.mnemonic + " has no meaning in llo");
}

// Runs the body of a VALU, EUP or XLU instruction; `d` may be a register or a FIFO's next entry.
bool Device::executeVector(const isa::Instruction& insn, Vector& d) {
  const VectorBody body = vectorBody(insn.op);
  if (!body) return false;
  const isa::InstructionInfo& row = isa::info(insn.op);
  const uint32_t* source[3] = {};
  uint32_t imm = 0;
  int n = 0;
  for (int i = 0; i < insn.num_operands; ++i) {
    const Operand& o = insn.operands[i];
    if (isa::isDef(row.operands[i]) || o.kind == Operand::kUnit) continue;
    if (o.kind == Operand::kReg && o.cls != isa::RegClass::kScalar) source[n++] = vec(o).w;
    else imm = scalarOf(o);
  }
  body(d.w, source[0], source[1], source[2], imm);
  return true;
}

Error Device::executeMemory(const isa::Instruction& insn, bool* done) {
  const auto& o = insn.operands;
  *done = true;
  if (insn.op == Opcode::sld || insn.op == Opcode::sst) {
    const int mem = insn.op == Opcode::sld ? 1 : 0;
    uint8_t* word = smem_.at(addressOf(o[mem]), 4);
    if (!word || addressOf(o[mem]) % 4) return bad(Code::kLloAccess, isa::print(insn) + " addresses no word of SMEM");
    uint32_t& reg = top().s[o[1 - mem].reg];
    if (mem) std::memcpy(&reg, word, 4);
    else std::memcpy(word, &reg, 4), ++effects_;
    return Error::success();
  }
  const bool load = insn.op == Opcode::vld || insn.op == Opcode::vld_strided;
  const bool masked = insn.op == Opcode::vst_msk || insn.op == Opcode::vst_strided_msk;
  const bool strided = insn.op == Opcode::vld_strided || insn.op == Opcode::vst_strided || insn.op == Opcode::vst_strided_msk;
  if (!load && insn.op != Opcode::vst && !masked && !strided) {
    *done = false;
    return Error::success();
  }
  const int mem = load ? 1 : 0;
  const int64_t base = addressOf(o[mem]);
  const int64_t stride = strided ? o[2].imm : 1, rows = strided ? o[3].imm : 0xff;
  Vector& v = vec(o[1 - mem]);
  const Vector* m = masked ? &vec(o[strided ? 4 : 2]) : nullptr;
  for (int s = 0; s < kSublanes; ++s) {
    uint32_t* words = &v.w[s * kLanes];
    if (!(rows >> s & 1)) {
      if (load) std::memset(words, 0, 512);
      continue;
    }
    uint8_t* row = vmem_.at(base + s * stride * 512, 512);
    if (!row || base % 512) return bad(Code::kLloAccess, isa::print(insn) + ", sublane " + llvm::Twine(s) + " addresses no row of VMEM");
    if (load) {
      std::memcpy(words, row, 512);
    } else if (!m) {
      std::memcpy(row, words, 512);
    } else {
      for (int l = 0; l < kLanes; ++l)
        if (m->w[s * kLanes + l]) std::memcpy(row + l * 4, &words[l], 4);
    }
  }
  return Error::success();
}

Error Device::executeUnit(const isa::Instruction& insn, bool* done) {
  Context& c = top();
  const auto& o = insn.operands;
  const target::Chip& chip = *pod_.chip;
  *done = true;
  auto full = [&](const char* name, int depth) { return bad(Code::kLloFifo, llvm::Twine(isa::print(insn)) + " exceeds the " + llvm::Twine(depth) + " entries of the " + name + " FIFO"); };
  auto empty = [&] { return bad(Code::kLloFifo, isa::print(insn) + " finds its FIFO empty"); };
  auto pop = [&](std::deque<Vector>& fifo) -> Error {
    if (fifo.empty()) return empty();
    vec(o[0]) = fifo.front();
    fifo.pop_front();
    return Error::success();
  };
  switch (insn.op) {
    case Opcode::vtos:
      if (static_cast<int>(c.v2s.size()) >= chip.v2s_depth) return full("vector-to-scalar", chip.v2s_depth);
      c.v2s.push_back(vec(o[0]).w[0]);
      return Error::success();
    case Opcode::spop:
      if (c.v2s.empty()) return empty();
      c.s[o[0].reg] = c.v2s.front();
      c.v2s.pop_front();
      return Error::success();
    case Opcode::vpop_eup: return pop(c.eup);
    case Opcode::vpop_xlu: return pop(c.xlu[o[1].reg]);
    case Opcode::vpop_trf: return pop(c.trf[o[1].reg]);
    case Opcode::vxpose:
      std::memcpy(&c.xpose[o[0].reg].buffer[o[2].imm * kVectorWords], vec(o[1]).w, sizeof(Vector));
      return Error::success();
    case Opcode::vxpose_go: {
      auto& fifo = c.trf[o[0].reg];
      const auto& buffer = c.xpose[o[0].reg].buffer;
      const int entries = static_cast<int>(o[2].imm / 8);
      if (static_cast<int>(fifo.size()) + entries > chip.trf_depth) return full("transpose", chip.trf_depth);
      for (int j = 0; j < entries; ++j) transposeEntry(fifo.emplace_back().w, buffer.data(), static_cast<int>(o[1].imm), j);
      return Error::success();
    }
    default: break;
  }
  const Slot slot = isa::info(insn.op).slot;
  if (slot == Slot::kEup || slot == Slot::kXlu) {
    auto& fifo = slot == Slot::kEup ? c.eup : c.xlu[o[0].reg];
    const int depth = slot == Slot::kEup ? chip.eup_depth : chip.xlu_depth;
    if (static_cast<int>(fifo.size()) >= depth) return full(slot == Slot::kEup ? "EUP" : "XLU", depth);
    Vector d;
    executeVector(insn, d);
    fifo.push_back(d);
    return Error::success();
  }
  *done = false;
  return Error::success();
}

Error Device::executeMatrix(const isa::Instruction& insn, bool* done) {
  Context& c = top();
  const auto& o = insn.operands;
  const target::Chip& chip = *pod_.chip;
  *done = true;
  const isa::LatencyClass cls = isa::info(insn.op).latency;
  const int unit = isa::unitOf(insn);
  if (unit < 0 || unit >= static_cast<int>(c.mxu.size())) {
    *done = false;
    return Error::success();
  }
  MatrixUnit& mxu = *c.mxu[unit];
  if (cls == isa::LatencyClass::kMatPush || cls == isa::LatencyClass::kMatPushT) {
    mxu.push(insn.op, vec(o[1]), cls == isa::LatencyClass::kMatPushT, static_cast<int>(o[2].imm),
             static_cast<int>(o[3].imm), static_cast<int>(o[4].imm));
  } else if (cls == isa::LatencyClass::kLatch) {
    mxu.latch(static_cast<int>(o[1].imm));
  } else if (insn.op == Opcode::vpop_mrf || insn.op == Opcode::vpop_mrf_half) {
    if (mxu.fifo.empty()) return bad(Code::kLloFifo, isa::print(insn) + " finds its FIFO empty");
    Vector& d = vec(o[0]);
    const Vector& r = mxu.fifo.front();
    if (insn.op == Opcode::vpop_mrf) {
      d = r;
    } else {
      for (int i = 0; i < kVectorWords; ++i)
        if (i % kLanes / 64 == o[2].imm) d.w[i] = r.w[i - o[2].imm * 64];
    }
    mxu.fifo.pop_front();
  } else if (insn.op == Opcode::vpop_mrb) {
    if (!mxu.popAccumulator(scalarOf(o[2]), vec(o[0])))
      return bad(Code::kLloFifo, isa::print(insn) + " names no accumulator");
  } else if (insn.num_operands == 4) {
    if (!mxu.accumulate(insn.op, vec(o[1]), static_cast<int>(o[2].imm), scalarOf(o[3])))
      return bad(Code::kLloFifo, isa::print(insn) + " names no accumulator");
  } else {
    mxu.multiply(insn.op, vec(o[1]), static_cast<int>(o[2].imm), mxu.fifo);
    if (static_cast<int>(mxu.fifo.size()) > chip.mrf_depth)
      return bad(Code::kLloFifo, isa::print(insn) + " exceeds the " + llvm::Twine(chip.mrf_depth) + " entries of the result FIFO");
  }
  return Error::success();
}

}  // namespace tpu::emulate::llo_run
