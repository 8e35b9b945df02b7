#include "address.h"

#include "machine.h"

namespace tpu::schedule {

using isa::Opcode;

SymbolicValue ValueNumbers::value(int32_t reg, bool virt) {
  auto [it, inserted] = regs_.try_emplace({reg, virt});
  if (inserted) it->second = fresh();
  return it->second;
}

SymbolicValue ValueNumbers::of(const isa::Operand& o) {
  if (o.kind == isa::Operand::kImm) return {0, o.imm};
  return value(o.reg, o.virt);
}

SymbolicValue ValueNumbers::combine(int kind, int64_t a, int64_t b, int64_t offset) {
  auto [it, inserted] = known_.try_emplace({kind, a, b}, next_);
  if (inserted) ++next_;
  return {it->second, offset};
}

void ValueNumbers::apply(const isa::Instruction& insn) {
  if (insn.num_operands == 0 || isa::info(insn.op).operands[0] != isa::OperandKind::Sd) return;
  const isa::Operand& d = insn.operands[0];
  SymbolicValue result;
  enum { kAdd, kSub, kMul };
  const bool predicated = insn.pred_virt || insn.pred != isa::kAlways;
  switch (predicated ? Opcode::halt : insn.op) {
    case Opcode::smov:
      result = of(insn.operands[1]);
      break;
    case Opcode::sadd: {
      SymbolicValue a = of(insn.operands[1]), b = of(insn.operands[2]);
      if (a.symbol > b.symbol) std::swap(a, b);
      result = a.symbol == 0 ? SymbolicValue{b.symbol, a.offset + b.offset}
                             : combine(kAdd, a.symbol, b.symbol, a.offset + b.offset);
      break;
    }
    case Opcode::ssub: {
      const SymbolicValue a = of(insn.operands[1]), b = of(insn.operands[2]);
      if (b.symbol == 0)
        result = {a.symbol, a.offset - b.offset};
      else if (a.symbol == b.symbol)
        result = {0, a.offset - b.offset};
      else
        result = combine(kSub, a.symbol, b.symbol, a.offset - b.offset);
      break;
    }
    case Opcode::smul:
    case Opcode::sshl: {
      const SymbolicValue a = of(insn.operands[1]), b = of(insn.operands[2]);
      if (b.symbol != 0 || (insn.op == Opcode::sshl && (b.offset < 0 || b.offset > 31))) {
        result = fresh();
        break;
      }
      const int64_t factor = insn.op == Opcode::sshl ? int64_t{1} << b.offset : b.offset;
      result = a.symbol == 0 ? SymbolicValue{0, a.offset * factor}
                             : combine(kMul, a.symbol, factor, a.offset * factor);
      break;
    }
    default:
      result = fresh();
      break;
  }
  regs_[{d.reg, d.virt}] = result;
}

Access accessOf(const Insn& insn, ValueNumbers& numbers) {
  const isa::InstructionInfo& row = isa::info(insn.insn.op);
  Access a;
  a.smem = row.slot == isa::Slot::kScalar;
  a.store = row.operands[0] == isa::OperandKind::Mem;
  a.object = insn.object;
  const isa::Operand& mem = insn.insn.operands[a.store ? 0 : 1];
  if (mem.has_base) a.base = numbers.value(mem.reg, mem.virt);
  a.base.offset += mem.imm;
  if (a.smem) {
    a.size = 4;
    return a;
  }
  int strided = -1;  // operand of the stride, the mask after it
  if (insn.insn.op == Opcode::vld_strided) strided = 2;
  if (insn.insn.op == Opcode::vst_strided || insn.insn.op == Opcode::vst_strided_msk) strided = 2;
  if (strided < 0) {
    a.size = 4096;
    return a;
  }
  const int64_t stride = insn.insn.operands[strided].imm, mask = insn.insn.operands[strided + 1].imm & 0xff;
  int last = 0;
  for (int s = 0; s < 8; ++s)
    if (mask >> s & 1) last = s;
  a.size = last * stride * 512 + 512;
  return a;
}

bool disjointRegions(const Access& a, const Access& b) {
  if (a.smem != b.smem) return true;
  if ((a.object == kSpillObject) != (b.object == kSpillObject)) return true;
  return a.object != kAnyObject && b.object != kAnyObject && a.object != b.object;
}

bool mayOverlap(const Access& a, const Access& b) {
  if (disjointRegions(a, b)) return false;
  if (a.base.symbol != b.base.symbol) return true;
  return a.base.offset < b.base.offset + b.size && b.base.offset < a.base.offset + a.size;
}

namespace {

constexpr int32_t kUnset = -3;

// The region of the value an instruction defines: that of the one operand that has a region.
int32_t regionOfResult(const isa::Instruction& insn, const std::vector<int32_t>& region) {
  auto of = [&](const isa::Operand& o) {
    return o.kind == isa::Operand::kReg && o.cls == isa::RegClass::kScalar && o.virt ? region[o.reg]
                                                                                     : kAnyObject;
  };
  switch (insn.op) {
    case Opcode::smov:
      return of(insn.operands[1]);
    case Opcode::ssub:
      return of(insn.operands[1]);
    case Opcode::sadd: {
      const int32_t a = of(insn.operands[1]), b = of(insn.operands[2]);
      if (a == kUnset || b == kUnset) return kUnset;
      if (a == kAnyObject || b == kAnyObject) return a == kAnyObject ? b : a;
      return kAnyObject;
    }
    case Opcode::ssel: {
      const int32_t a = of(insn.operands[2]), b = of(insn.operands[3]);
      if (a == kUnset) return b;
      return b == kUnset || a == b ? a : kAnyObject;
    }
    default:
      return kAnyObject;
  }
}

}  // namespace

void findObjects(Func& func) {
  // Registers are optimistically in no region yet, and fall until all their definitions agree.
  std::vector<int32_t> region(func.num_regs[0], kUnset);
  std::vector<char> fixed(func.num_regs[0], 0);
  for (size_t r = 0; r < func.base_object.size(); ++r)
    if (func.base_object[r] != kAnyObject) region[r] = func.base_object[r], fixed[r] = 1;
  // A constant says nothing about a register that is also written otherwise (a pointer that starts as 0).
  std::vector<char> varies(func.num_regs[0], 0);
  auto isConstant = [](const isa::Instruction& i) {
    return i.op == Opcode::smov && i.operands[1].kind == isa::Operand::kImm;
  };
  for (const Block& b : func.blocks)
    for (const Insn& i : b.code)
      if (i.insn.num_operands > 0 && isa::info(i.insn.op).operands[0] == isa::OperandKind::Sd &&
          i.insn.operands[0].virt && !isConstant(i.insn))
        varies[i.insn.operands[0].reg] = 1;
  for (size_t r = 0; r < region.size(); ++r)
    if (!varies[r] && !fixed[r]) region[r] = kAnyObject;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Block& b : func.blocks)
      for (const Insn& i : b.code) {
        if (i.insn.num_operands == 0 || isa::info(i.insn.op).operands[0] != isa::OperandKind::Sd) continue;
        const isa::Operand& d = i.insn.operands[0];
        if (!d.virt || fixed[d.reg] || region[d.reg] == kAnyObject || isConstant(i.insn)) continue;
        const int32_t now = regionOfResult(i.insn, region);
        if (now == kUnset || now == region[d.reg]) continue;
        region[d.reg] = region[d.reg] == kUnset ? now : kAnyObject;
        changed = true;
      }
  }
  for (Block& b : func.blocks)
    for (Insn& i : b.code) {
      if (!isVmemLoad(i.insn.op) && !isVmemStore(i.insn.op)) continue;
      const isa::Operand& mem = i.insn.operands[isVmemStore(i.insn.op) ? 0 : 1];
      if (i.object == kAnyObject && mem.has_base && mem.virt && region[mem.reg] >= 0)
        i.object = region[mem.reg];
    }
}

}  // namespace tpu::schedule
