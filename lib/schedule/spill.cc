#include "spill.h"

#include "machine.h"
#include "tpu/llo/builder.h"

namespace tpu::schedule {

using isa::Opcode;
using isa::RegClass;
using llo::Addr;
using llo::Arg;
using llo::M;
using llo::P;
using llo::S;
using llo::V;

namespace {

Insn make(Opcode op, std::initializer_list<Arg> args, uint32_t slot) {
  Insn i;
  i.insn.op = op;
  for (const Arg& a : args) i.insn.operands[i.insn.num_operands++] = a.o;
  i.op = slot;
  return i;
}
Insn memory(Opcode op, std::initializer_list<Arg> args, uint32_t slot) {
  Insn i = make(op, args, slot);
  i.object = kSpillObject;
  return i;
}

bool isConstant(const isa::Instruction& insn) {
  if (insn.pred_virt || insn.pred != isa::kAlways) return false;
  switch (insn.op) {
    case Opcode::vimm:
    case Opcode::vlane:
    case Opcode::vsublane:
    case Opcode::pset:
      return true;
    case Opcode::smov:
      return insn.operands[1].kind == isa::Operand::kImm;
    default:
      return false;
  }
}

}  // namespace

int32_t Spiller::temp(RegClass cls) {
  const int c = classIndex(cls);
  const int32_t r = func_.num_regs[c]++;
  temporary_[c].resize(r + 1, 0);
  temporary_[c][r] = 1;
  home_of_[c].resize(r + 1, -1);
  return r;
}

// A register that one constant instruction defines needs no memory.
void Spiller::findHomes(const std::vector<int32_t>& spilled, const RegIndex& index) {
  for (int c = 0; c < kNumClasses; ++c) home_of_[c].assign(func_.num_regs[c], -1);
  homes_.assign(spilled.size(), {});
  std::vector<int> defs(spilled.size(), 0);
  for (size_t k = 0; k < spilled.size(); ++k) {
    const int c = classIndex(index.classOf(spilled[k]));
    home_of_[c][spilled[k] - index.base[c]] = static_cast<int32_t>(k);
  }
  for (const Block& b : func_.blocks)
    for (const Insn& i : b.code)
      isa::forEachRegister(i.insn, [&](RegClass cls, int num, bool virt, bool, bool write) {
        const int32_t home = virt && write ? home_of_[classIndex(cls)][num] : -1;
        if (home >= 0 && ++defs[home] == 1) homes_[home].definition = i;
      });
  for (size_t k = 0; k < spilled.size(); ++k) {
    Home& home = homes_[k];
    home.rematerialize = defs[k] == 1 && isConstant(home.definition.insn);
    if (home.rematerialize) continue;
    const RegClass cls = index.classOf(spilled[k]);
    if (cls == RegClass::kScalar || cls == RegClass::kPred) {
      home.address = ctx_.allocSmem(4);
    } else {
      home.address = func_.vmem_spill_end;
      func_.vmem_spill_end += 4096;
    }
  }
}

void Spiller::load(std::vector<Insn>& out, RegClass cls, int32_t reg, const Home& home, uint32_t op) {
  if (home.rematerialize) {
    Insn again = home.definition;
    again.insn.operands[0].reg = reg;
    out.push_back(again);
    return;
  }
  const Addr at{{}, home.address};
  switch (cls) {
    case RegClass::kScalar:
      out.push_back(memory(Opcode::sld, {S{reg}, at}, op));
      return;
    case RegClass::kVector:
      out.push_back(memory(Opcode::vld, {V{reg}, at}, op));
      return;
    case RegClass::kPred: {
      const S word{temp(RegClass::kScalar)};
      out.push_back(memory(Opcode::sld, {word, at}, op));
      out.push_back(make(Opcode::scmp_ne, {P{reg}, word, 0}, op));
      return;
    }
    case RegClass::kMask: {
      const V bits{temp(RegClass::kVector)}, zero{temp(RegClass::kVector)};
      out.push_back(make(Opcode::vimm, {zero, 0}, op));
      out.push_back(memory(Opcode::vld, {bits, at}, op));
      out.push_back(make(Opcode::vcmp_ne_s32, {M{reg}, bits, zero}, op));
      return;
    }
  }
}

void Spiller::store(std::vector<Insn>& out, RegClass cls, int32_t reg, const Home& home, uint32_t op) {
  const Addr at{{}, home.address};
  switch (cls) {
    case RegClass::kScalar:
      out.push_back(memory(Opcode::sst, {at, S{reg}}, op));
      return;
    case RegClass::kVector:
      out.push_back(memory(Opcode::vst, {at, V{reg}}, op));
      return;
    case RegClass::kPred: {
      const S one{temp(RegClass::kScalar)}, word{temp(RegClass::kScalar)};
      out.push_back(make(Opcode::smov, {one, 1}, op));
      out.push_back(make(Opcode::ssel, {word, P{reg}, one, 0}, op));
      out.push_back(memory(Opcode::sst, {at, word}, op));
      return;
    }
    case RegClass::kMask: {
      const V one{temp(RegClass::kVector)}, zero{temp(RegClass::kVector)}, bits{temp(RegClass::kVector)};
      out.push_back(make(Opcode::vimm, {one, 1}, op));
      out.push_back(make(Opcode::vimm, {zero, 0}, op));
      out.push_back(make(Opcode::vsel, {bits, M{reg}, one, zero}, op));
      out.push_back(memory(Opcode::vst, {at, bits}, op));
      return;
    }
  }
}

// Appends loads, the instruction on temporaries, and stores. A register read twice gets one temporary.
void Spiller::rewrite(Insn& insn, std::vector<Insn>& out, bool is_term) {
  struct Use {
    RegClass cls;
    int32_t reg, temp;
    bool read, write;
  };
  llvm::SmallVector<Use, 6> uses;
  const bool partial = !insn.fresh && (insn.insn.pred_virt || insn.insn.pred != isa::kAlways);
  isa::forEachRegister(insn.insn, [&](RegClass cls, int num, bool virt, bool read, bool write) {
    read = read && !(write && insn.fresh);
    if (!virt || home_of_[classIndex(cls)][num] < 0) return;
    for (Use& u : uses)
      if (u.cls == cls && u.reg == num) {
        u.read |= read || (write && partial);
        u.write |= write;
        return;
      }
    uses.push_back({cls, num, -1, read || (write && partial), write});
  });
  if (uses.empty()) {
    if (!is_term) out.push_back(insn);
    return;
  }
  // The one definition of a constant goes away; every use makes it again.
  for (const Use& u : uses)
    if (u.write && homes_[home_of_[classIndex(u.cls)][u.reg]].rematerialize) return;
  for (Use& u : uses) u.temp = temp(u.cls);
  auto replace = [&](RegClass cls, int32_t& reg) {
    for (const Use& u : uses)
      if (u.cls == cls && u.reg == reg) {
        reg = u.temp;
        return;
      }
  };
  for (Use& u : uses)
    if (u.read) load(out, u.cls, u.temp, homes_[home_of_[classIndex(u.cls)][u.reg]], insn.op);
  for (int k = 0; k < insn.insn.num_operands; ++k) {
    isa::Operand& o = insn.insn.operands[k];
    if (!o.virt) continue;
    if (o.kind == isa::Operand::kReg) replace(o.cls, o.reg);
    if (o.kind == isa::Operand::kMem && o.has_base) replace(RegClass::kScalar, o.reg);
  }
  if (insn.insn.pred_virt) replace(RegClass::kPred, insn.insn.pred);
  if (!is_term) out.push_back(insn);
  for (Use& u : uses)
    if (u.write) store(out, u.cls, u.temp, homes_[home_of_[classIndex(u.cls)][u.reg]], insn.op);
}

void Spiller::spill(const std::vector<int32_t>& spilled, const RegIndex& index) {
  findHomes(spilled, index);
  for (Block& b : func_.blocks) {
    std::vector<Insn> code;
    code.reserve(b.code.size() + 16);
    for (Insn& i : b.code) rewrite(i, code, false);
    if (b.has_term) rewrite(b.term, code, true);
    b.code = std::move(code);
  }
}

}  // namespace tpu::schedule
