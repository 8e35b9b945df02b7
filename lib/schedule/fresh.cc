#include "fresh.h"

#include <map>

namespace tpu::schedule {
namespace {

using isa::Opcode;
using isa::RegClass;

// Only registers that nothing but partial writes define: a first half, or the same half again, begins a new
// value.
void findHalves(Func& func) {
  std::vector<char> whole(func.num_regs[1], 0);
  for (const Block& b : func.blocks)
    for (const Insn& i : b.code)
      if (i.insn.num_operands > 0 && isa::info(i.insn.op).operands[0] == isa::OperandKind::Vd &&
          i.insn.operands[0].virt)
        whole[i.insn.operands[0].reg] = 1;
  for (Block& b : func.blocks) {
    std::map<int32_t, int64_t> first_half;
    for (Insn& i : b.code) {
      if (i.insn.op != Opcode::vpop_mrf_half || whole[i.insn.operands[0].reg]) continue;
      const auto [it, inserted] = first_half.try_emplace(i.insn.operands[0].reg, i.insn.operands[2].imm);
      i.fresh = inserted || it->second == i.insn.operands[2].imm;
    }
  }
}

/// What the instructions of one block do to one register, in order.
struct Mention {
  int position;
  bool read, write;
};
struct Mentions {
  int block = -1;
  bool elsewhere = false;  // in other blocks as well
  std::vector<Mention> list;
};

class PredicatedWrites {
 public:
  explicit PredicatedWrites(Func& func) : func_(func) {
    for (int c = 0; c < kNumClasses; ++c) mentions_[c].resize(func.num_regs[c]);
  }

  void run() {
    for (size_t b = 0; b < func_.blocks.size(); ++b) collect(static_cast<int>(b));
    for (auto& of_class : mentions_)
      for (const Mentions& m : of_class)
        for (size_t k = 0; k < m.list.size(); ++k)
          if (begins(m, k)) func_.blocks[m.block].code[m.list[k].position].fresh = true;
  }

 private:
  void collect(int b) {
    const Block& block = func_.blocks[b];
    const int n = static_cast<int>(block.code.size());
    for (int i = 0; i < n + (block.has_term ? 1 : 0); ++i)
      isa::forEachRegister((i < n ? block.code[i] : block.term).insn,
                           [&](RegClass cls, int num, bool virt, bool read, bool write) {
                             if (virt) add(mentions_[classIndex(cls)][num], b, {i, read, write});
                           });
  }
  static void add(Mentions& m, int block, Mention mention) {
    if (m.block >= 0 && m.block != block) {
      m.elsewhere = true;
      m.list.clear();
    }
    m.block = block;
    if (m.elsewhere) return;
    if (!m.list.empty() && m.list.back().position == mention.position) {
      m.list.back().read |= mention.read;
      m.list.back().write |= mention.write;
      return;
    }
    m.list.push_back(mention);
  }

  // Whether write k of the list is under a predicate, and its register's old contents are never seen.
  bool begins(const Mentions& m, size_t k) const {
    const Block& block = func_.blocks[m.block];
    const int count = static_cast<int>(block.code.size());
    const Mention& at = m.list[k];
    if (at.position >= count || !at.write || at.read) return false;
    const isa::Instruction& write = block.code[at.position].insn;
    if (!write.pred_virt) return false;
    for (size_t next = k + 1; next < m.list.size(); ++next) {
      const Mention& other = m.list[next];
      if (other.position >= count) return false;
      const isa::Instruction& i = block.code[other.position].insn;
      const bool same =
          i.pred_virt && i.pred == write.pred && !rewritten(block, write.pred, at.position, other.position);
      if (other.read && !(same && i.pred_neg == write.pred_neg)) return false;
      if (other.write && (!i.pred_virt || (same && i.pred_neg != write.pred_neg))) return true;
    }
    return k == 0;  // comes round to itself at the earliest
  }
  bool rewritten(const Block& block, int32_t pred, int from, int to) const {
    bool found = false;
    for (int i = from; i < to; ++i)
      isa::forEachRegister(block.code[i].insn, [&](RegClass cls, int num, bool virt, bool, bool write) {
        found |= write && virt && cls == RegClass::kPred && num == pred;
      });
    return found;
  }

  Func& func_;
  std::vector<Mentions> mentions_[kNumClasses];
};

}  // namespace

void findFreshWrites(Func& func) {
  findHalves(func);
  PredicatedWrites(func).run();
}

}  // namespace tpu::schedule
