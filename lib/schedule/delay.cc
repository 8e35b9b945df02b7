#include "delay.h"

#include <algorithm>

namespace tpu::schedule {
namespace {

using Bundle = Bundles::value_type;

bool isTerminator(const Insn& i) {
  switch (i.insn.op) {
    case isa::Opcode::br:
    case isa::Opcode::call:
    case isa::Opcode::ret:
    case isa::Opcode::halt:
      return true;
    default:
      return false;
  }
}

bool writesPredicate(const Bundle& bundle, int32_t pred) {
  bool found = false;
  for (const Insn& i : bundle)
    isa::forEachRegister(i.insn, [&](isa::RegClass cls, int num, bool, bool, bool write) {
      found |= write && cls == isa::RegClass::kPred && num == pred;
    });
  return found;
}

/// One branch with the bundles behind it.
class Filler {
 public:
  Filler(Bundles& block, size_t at, Insn& branch) : block_(block), at_(at), branch_(branch) {}

  void run(const Bundles& target) {
    const isa::Instruction& br = branch_.insn;
    const bool conditional = br.pred != isa::kAlways;
    size_t first = block_.size();  // of the empty bundles at the end
    while (first > at_ + 1 && block_[first - 1].empty()) --first;
    for (size_t b = at_; conditional && b < first; ++b)
      if (writesPredicate(block_[b], br.pred)) return;
    // The target's bundles are taken as they were: a loop may go to itself.
    std::vector<Bundle> taken;
    while (first + taken.size() < block_.size() && taken.size() < target.size()) {
      Bundle copy = target[taken.size()];
      if (!movable(copy, conditional)) break;
      for (Insn& i : copy)
        if (conditional) i.insn.pred = br.pred, i.insn.pred_neg = br.pred_neg;
      taken.push_back(std::move(copy));
      if (conditional && writesPredicate(taken.back(), br.pred)) break;
    }
    branch_.skip = static_cast<int32_t>(taken.size());
    for (Bundle& b : taken) block_[first++] = std::move(b);
  }

 private:
  // There is room for one predicate.
  static bool movable(const Bundle& bundle, bool conditional) {
    return std::all_of(bundle.begin(), bundle.end(), [&](const Insn& i) {
      return !isTerminator(i) && (!conditional || i.insn.pred == isa::kAlways);
    });
  }

  Bundles& block_;
  size_t at_;
  Insn& branch_;
};

}  // namespace

void fillDelayBundles(Scheduled& func, const Machine& machine) {
  for (size_t b = 0; b < func.blocks.size(); ++b) {
    Bundles& block = func.blocks[b];
    if (func.func.blocks[b].fixed || static_cast<int>(block.size()) <= machine.delay()) continue;
    const size_t at = block.size() - 1 - static_cast<size_t>(machine.delay());
    for (Insn& i : block[at])
      if (i.insn.op == isa::Opcode::br) {
        const Bundles target = func.blocks[static_cast<size_t>(labelOf(i))];
        Filler(block, at, i).run(target);
        break;
      }
  }
}

}  // namespace tpu::schedule
