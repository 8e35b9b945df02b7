// One machine instruction of llo on the registers of a context.
#include <cstring>

#include "device.h"
#include "tpu/support/diagnostics.h"

namespace tpu::emulate::llo_run {

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
    case Opcode::vimm: vec(o[0]).fill(static_cast<uint32_t>(o[1].imm)); return Error::success();
    case Opcode::vsplat: vec(o[0]).fill(scalarOf(o[1])); return Error::success();
    case Opcode::vsel: {
      const Mask& m = mask(o[1]);
      const Vector &a = vec(o[2]), &b = vec(o[3]);
      Vector& d = vec(o[0]);
      for (int i = 0; i < kWords; ++i) d[i] = m[i] ? a[i] : b[i];
      return Error::success();
    }
    case Opcode::mand: case Opcode::mor: case Opcode::mxor: {
      const Mask &a = mask(o[1]), &b = mask(o[2]);
      Mask& d = mask(o[0]);
      for (int i = 0; i < kWords; ++i)
        d[i] = insn.op == Opcode::mand ? a[i] & b[i] : insn.op == Opcode::mor ? a[i] | b[i] : a[i] ^ b[i];
      return Error::success();
    }
    case Opcode::mnot: case Opcode::mmov: {
      const Mask& a = mask(o[1]);
      Mask& d = mask(o[0]);
      for (int i = 0; i < kWords; ++i) d[i] = insn.op == Opcode::mnot ? !a[i] : a[i];
      return Error::success();
    }
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
  if (row.slot == Slot::kValu && row.operands[0] == isa::OperandKind::Vd) {
    static const Vector none{};
    const Vector& a = insn.num_operands > 1 ? vec(o[1]) : none;
    const bool two = insn.num_operands > 2 && o[2].kind == Operand::kReg;
    const Vector& b = two ? vec(o[2]) : none;
    const int imm = insn.num_operands > 2 && !two ? static_cast<int>(o[2].imm) : 0;
    if (runVector(insn.op, vec(o[0]), a, b, imm)) return Error::success();
  }
  if (row.slot == Slot::kValu && row.operands[0] == isa::OperandKind::Md &&
      runCompare(insn.op, mask(o[0]), vec(o[1]), vec(o[2])))
    return Error::success();
  if (Error e = executeMemory(insn, &done)) return e;
  if (done) return Error::success();
  if (Error e = executeUnit(insn, &done)) return e;
  if (done) return Error::success();
  if (Error e = executeMatrix(insn, &done)) return e;
  if (done) return Error::success();
  return bad(Code::kInternalError, row.mnemonic + " has no meaning in llo");
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
    else std::memcpy(word, &reg, 4);
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
  const Mask* m = masked ? &mask(o[strided ? 4 : 2]) : nullptr;
  for (int s = 0; s < kSublanes; ++s) {
    uint32_t* words = &v[s * kLanes];
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
        if ((*m)[s * kLanes + l]) std::memcpy(row + l * 4, &words[l], 4);
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
      c.v2s.push_back(vec(o[0])[0]);
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
      std::memcpy(&c.xpose[o[0].reg].buffer[o[2].imm * kWords], vec(o[1]).data(), sizeof(Vector));
      return Error::success();
    case Opcode::vxpose_go: {
      auto& fifo = c.trf[o[0].reg];
      const auto& buffer = c.xpose[o[0].reg].buffer;
      const int entries = static_cast<int>(o[2].imm / 8);
      if (static_cast<int>(fifo.size()) + entries > chip.trf_depth) return full("transpose", chip.trf_depth);
      for (int j = 0; j < entries; ++j) {
        Vector& v = fifo.emplace_back();
        for (int s = 0; s < kSublanes; ++s)
          for (int l = 0; l < kLanes; ++l) v[s * kLanes + l] = buffer[l * kLanes + (o[1].imm + 8 * j + s) % kLanes];
      }
      return Error::success();
    }
    default: break;
  }
  const Slot slot = isa::info(insn.op).slot;
  Vector d;
  if (slot == Slot::kEup && runEup(insn.op, d, vec(o[0]))) {
    if (static_cast<int>(c.eup.size()) >= chip.eup_depth) return full("EUP", chip.eup_depth);
    c.eup.push_back(d);
    return Error::success();
  }
  if (slot == Slot::kXlu) {
    auto& fifo = c.xlu[o[0].reg];
    if (static_cast<int>(fifo.size()) >= chip.xlu_depth) return full("XLU", chip.xlu_depth);
    const bool perm = insn.op == Opcode::vperm_lane;
    const uint32_t n = !perm && insn.num_operands > 2 ? scalarOf(o[2]) : 0;
    if (runXlu(insn.op, d, vec(o[1]), perm ? vec(o[2]) : d, n)) {
      fifo.push_back(d);
      return Error::success();
    }
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
    mxu.push(insn.op, vec(o[1]), static_cast<int>(o[2].imm), static_cast<int>(o[3].imm), static_cast<int>(o[4].imm));
  } else if (cls == isa::LatencyClass::kLatch) {
    mxu.latch(static_cast<int>(o[1].imm));
  } else if (insn.op == Opcode::vpop_mrf || insn.op == Opcode::vpop_mrf_half) {
    if (mxu.fifo.empty()) return bad(Code::kLloFifo, isa::print(insn) + " finds its FIFO empty");
    Vector& d = vec(o[0]);
    const Vector& r = mxu.fifo.front();
    if (insn.op == Opcode::vpop_mrf) {
      d = r;
    } else {
      for (int i = 0; i < kWords; ++i)
        if (i % kLanes / 64 == o[2].imm) d[i] = r[i - o[2].imm * 64];
    }
    mxu.fifo.pop_front();
  } else if (insn.op == Opcode::vpop_mrb) {
    if (!mxu.popAccumulator(scalarOf(o[2]), vec(o[0])))
      return bad(Code::kLloFifo, isa::print(insn) + " names no accumulator");
  } else if (insn.num_operands == 4) {
    if (!mxu.accumulate(insn.op, vec(o[1]), static_cast<int>(o[2].imm), scalarOf(o[3])))
      return bad(Code::kLloFifo, isa::print(insn) + " names no accumulator");
  } else {
    std::vector<Vector> out;
    mxu.multiply(insn.op, vec(o[1]), static_cast<int>(o[2].imm), &out);
    for (Vector& v : out) mxu.fifo.push_back(v);
    if (static_cast<int>(mxu.fifo.size()) > chip.mrf_depth)
      return bad(Code::kLloFifo, isa::print(insn) + " exceeds the " + llvm::Twine(chip.mrf_depth) + " entries of the result FIFO");
  }
  return Error::success();
}

}  // namespace tpu::emulate::llo_run
