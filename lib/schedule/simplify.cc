// Works on registers with one definition; a register written twice (a loop's counter) is left alone.
#include "simplify.h"

#include <optional>

#include "machine.h"

namespace tpu::schedule {
namespace {

using isa::Opcode;
using isa::OperandKind;

/// What is known of a scalar register: a constant, or another register plus a constant.
struct Known {
  int32_t base = -1;  // -1: constant
  int64_t offset = 0;
};

bool isPredicated(const isa::Instruction& i) { return i.pred_virt || i.pred != isa::kAlways; }

class Simplifier {
 public:
  explicit Simplifier(Func& func) : func_(func) {}
  void run() {
    countDefs();
    known_.assign(func_.num_regs[0], std::nullopt);
    for (Block& b : func_.blocks) {
      for (Insn& i : b.code) visit(i);
    }
    for (Block& b : func_.blocks) settleTrips(b);
    removeUnused();
  }

 private:
  void countDefs() {
    defs_.assign(func_.num_regs[0], 0);
    for (const Block& b : func_.blocks)
      for (const Insn& i : b.code)
        isa::forEachRegister(i.insn, [&](isa::RegClass cls, int num, bool virt, bool, bool write) {
          if (write && virt && cls == isa::RegClass::kScalar) ++defs_[num];
        });
  }
  bool stable(int32_t reg) const { return defs_[reg] == 1; }
  const std::optional<Known>& known(const isa::Operand& o) const {
    static const std::optional<Known> kNothing;
    return o.kind == isa::Operand::kReg && o.virt && o.cls == isa::RegClass::kScalar ? known_[o.reg]
                                                                                     : kNothing;
  }
  static void setImm(isa::Operand& o, int64_t value) {
    o = isa::Operand();
    o.kind = isa::Operand::kImm;
    o.imm = value;
  }

  void visit(Insn& insn) {
    isa::Instruction& i = insn.insn;
    const isa::InstructionInfo& row = isa::info(i.op);
    for (int k = 0; k < i.num_operands; ++k) {
      isa::Operand& o = i.operands[k];
      if (o.kind == isa::Operand::kMem) {
        foldAddress(insn, o);
        continue;
      }
      if (row.operands[k] == OperandKind::Sd) continue;
      const std::optional<Known>& value = known(o);
      if (!value) continue;
      const bool takes_imm =
          row.operands[k] == OperandKind::SI ||
          (row.operands[k] == OperandKind::S16 && value->offset >= 0 && value->offset < 65536);
      if (value->base < 0 && takes_imm)
        setImm(o, value->offset);
      else if (value->base >= 0 && value->offset == 0)
        o.reg = value->base;
    }
    swapConstant(i);
    learn(i);
  }

  // The register of a loop's trips follows what it copies, as its readers do.
  void settleTrips(Block& b) {
    if (b.trip_reg < 0 || !known_[b.trip_reg]) return;
    const Known& value = *known_[b.trip_reg];
    if (value.base >= 0 && value.offset == 0) b.trip_reg = value.base;
    if (value.base >= 0) return;
    b.trip_reg = -1;
    b.trip_imm = value.offset;
  }

  void foldAddress(Insn& insn, isa::Operand& o) {
    if (!o.has_base || !o.virt || !known_[o.reg]) return;
    const Known& value = *known_[o.reg];
    const int64_t imm = o.imm + value.offset;
    const int64_t unit = isa::info(insn.insn.op).slot == isa::Slot::kScalar ? 4 : 512;
    const int64_t field = int64_t{1} << 17;  // signed with a base, twice as much without
    if (imm % unit != 0) return;
    const int64_t scaled = imm / unit;
    if (value.base < 0 ? scaled < 0 || scaled >= 2 * field : scaled < -field || scaled >= field) return;
    o.imm = imm;
    o.has_base = value.base >= 0;
    o.virt = o.has_base;
    o.reg = o.has_base ? value.base : 0;
  }

  // Only the second operand of scalar arithmetic may be an immediate.
  void swapConstant(isa::Instruction& i) {
    switch (i.op) {
      case Opcode::sadd:
      case Opcode::smul:
      case Opcode::sand:
      case Opcode::sor:
      case Opcode::sxor:
      case Opcode::smin:
      case Opcode::smax:
        break;
      default:
        return;
    }
    const std::optional<Known>& a = known(i.operands[1]);
    if (!a || a->base >= 0 || i.operands[2].kind == isa::Operand::kImm) return;
    const int64_t value = a->offset;
    i.operands[1] = i.operands[2];
    setImm(i.operands[2], value);
  }

  void learn(isa::Instruction& i) {
    if (i.num_operands < 2 || isa::info(i.op).operands[0] != OperandKind::Sd || isPredicated(i)) return;
    const isa::Operand& d = i.operands[0];
    if (!d.virt || !stable(d.reg)) return;
    auto value = [&](const isa::Operand& o) -> std::optional<Known> {
      if (o.kind == isa::Operand::kImm) return Known{-1, o.imm};
      if (o.kind != isa::Operand::kReg || !o.virt) return std::nullopt;
      if (known_[o.reg]) return known_[o.reg];
      if (stable(o.reg)) return Known{o.reg, 0};
      return std::nullopt;
    };
    const std::optional<Known> a = value(i.operands[1]);
    if (!a) return;
    if (i.op == Opcode::smov) {
      set(i, *a);
      return;
    }
    if (i.num_operands != 3) return;
    const std::optional<Known> b = value(i.operands[2]);
    if (!b || b->base >= 0) return;
    const int64_t x = a->offset, y = b->offset;
    if (i.op == Opcode::sadd) return set(i, {a->base, x + y});
    if (i.op == Opcode::ssub) return set(i, {a->base, x - y});
    if (a->base >= 0) return;
    switch (i.op) {
      case Opcode::smul:
        return set(i, {-1, static_cast<int32_t>(static_cast<uint32_t>(x) * static_cast<uint32_t>(y))});
      case Opcode::sshl:
        return set(i, {-1, y < 0 || y > 31 ? 0 : static_cast<int32_t>(static_cast<uint32_t>(x) << y)});
      case Opcode::sand:
        return set(i, {-1, x & y});
      case Opcode::sor:
        return set(i, {-1, x | y});
      case Opcode::sxor:
        return set(i, {-1, x ^ y});
      default:
        return;
    }
  }

  void set(isa::Instruction& i, Known value) {
    if (value.base < 0) {
      value.offset = static_cast<int32_t>(value.offset);
      i.op = Opcode::smov;
      i.num_operands = 2;
      setImm(i.operands[1], value.offset);
    }
    if (value.offset != static_cast<int32_t>(value.offset)) return;
    known_[i.operands[0].reg] = value;
  }

  // Values that nobody reads, of any class, where the instruction does nothing else.
  void removeUnused() {
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<int32_t> uses[kNumClasses];
      for (int c = 0; c < kNumClasses; ++c) uses[c].assign(func_.num_regs[c], 0);
      auto count = [&](const Insn& i) {
        isa::forEachRegister(i.insn, [&](isa::RegClass cls, int num, bool virt, bool read, bool) {
          if (read && virt) ++uses[classIndex(cls)][num];
        });
      };
      for (Block& b : func_.blocks) {
        for (const Insn& i : b.code) count(i);
        if (b.has_term) count(b.term);
        if (b.trip_reg >= 0) ++uses[classIndex(isa::RegClass::kScalar)][b.trip_reg];
      }
      for (Block& b : func_.blocks) {
        size_t kept = 0;
        for (Insn& i : b.code) {
          if (removable(i, uses)) {
            changed = true;
            continue;
          }
          if (&b.code[kept] != &i) b.code[kept] = std::move(i);
          ++kept;
        }
        b.code.resize(kept);
      }
    }
  }

  bool removable(const Insn& i, const std::vector<int32_t>* uses) const {
    if (isSync(i.insn.op) || i.insn.num_operands == 0) return false;
    const isa::FifoEffect e = isa::fifoEffect(i.insn, 128);
    if (e.push != isa::Fifo::kNone || e.pop != isa::Fifo::kNone || i.insn.op == Opcode::vpop_mrb)
      return false;
    switch (isa::info(i.insn.op).operands[0]) {
      case OperandKind::Vd:
      case OperandKind::Sd:
      case OperandKind::Md:
      case OperandKind::Pd:
        break;
      default:
        return false;
    }
    const isa::Operand& d = i.insn.operands[0];
    if (!d.virt) return false;
    int32_t own = 0;  // a counter that only counts itself is not used
    isa::forEachRegister(i.insn, [&](isa::RegClass cls, int num, bool virt, bool read, bool) {
      own += read && virt && cls == d.cls && num == d.reg;
    });
    return uses[classIndex(d.cls)][d.reg] == own;
  }

  Func& func_;
  std::vector<int> defs_;
  std::vector<std::optional<Known>> known_;
};

}  // namespace

void simplify(Func& func) { Simplifier(func).run(); }

}  // namespace tpu::schedule
