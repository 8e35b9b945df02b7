// Spilled vectors of one function that are never live together share a place in VMEM. Each first gets a place of its
// own, which keeps the list scheduler free; only where VMEM is too short for that are places shared.
#include <algorithm>
#include <cassert>

#include "spill.h"

namespace tpu::schedule {
namespace {

constexpr int64_t kSlotBytes = 4096;

// The place that an instruction stores a spilled vector to or loads it from, else -1.
struct Access {
  int32_t slot = -1;
  bool store = false;
};

class SlotSharing {
 public:
  SlotSharing(Func& func, int64_t start)
      : func_(func), start_(start), slots_(static_cast<int32_t>((func.vmem_spill_end - start) / kSlotBytes)) {}

  void run() {
    findInterference();
    std::vector<int32_t> place(slots_, -1);
    int32_t places = 0;
    for (int32_t s = 0; s < slots_; ++s) {
      llvm::BitVector taken(slots_ + 1);
      for (int32_t other : together_[s].set_bits())
        if (place[other] >= 0) taken.set(place[other]);
      place[s] = taken.find_first_unset();
      places = std::max(places, place[s] + 1);
    }
    for (Block& b : func_.blocks)
      for (Insn& i : b.code)
        if (const Access a = access(i); a.slot >= 0) memoryOf(i)->imm = start_ + kSlotBytes * place[a.slot];
    func_.vmem_spill_end = start_ + kSlotBytes * places;
  }

 private:
  static isa::Operand* memoryOf(Insn& i) {
    for (int k = 0; k < i.insn.num_operands; ++k)
      if (i.insn.operands[k].kind == isa::Operand::kMem) return &i.insn.operands[k];
    return nullptr;
  }
  Access access(Insn& i) const {
    if (i.object != kSpillObject || (i.insn.op != isa::Opcode::vst && i.insn.op != isa::Opcode::vld)) return {};
    const int64_t address = memoryOf(i)->imm;
    assert(address >= start_ && (address - start_) % kSlotBytes == 0);
    return {static_cast<int32_t>((address - start_) / kSlotBytes), i.insn.op == isa::Opcode::vst};
  }

  // Steps a set of live places backwards over a block; `at_store` sees the set that a store meets.
  template <class F>
  void backwards(Block& block, llvm::BitVector& live, F&& at_store) {
    for (size_t k = block.code.size(); k-- > 0;) {
      const Access a = access(block.code[k]);
      if (a.slot < 0) continue;
      if (a.store) at_store(a.slot), live.reset(a.slot);
      else live.set(a.slot);
    }
  }

  void findInterference() {
    const int n = static_cast<int>(func_.blocks.size());
    std::vector<llvm::BitVector> in(n, llvm::BitVector(slots_));
    const auto liveAfter = [&](int b) {
      llvm::BitVector live(slots_);
      for (int s : successors(func_, b)) live |= in[s];
      return live;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (int b = n; b-- > 0;) {
        llvm::BitVector live = liveAfter(b);
        backwards(func_.blocks[b], live, [](int32_t) {});
        if (live == in[b]) continue;
        in[b] = std::move(live);
        changed = true;
      }
    }
    together_.assign(slots_, llvm::BitVector(slots_));
    for (int b = 0; b < n; ++b) {
      llvm::BitVector live = liveAfter(b);
      backwards(func_.blocks[b], live, [&](int32_t stored) {
        for (int32_t other : live.set_bits())
          if (other != stored) together_[stored].set(other), together_[other].set(stored);
      });
    }
  }

  Func& func_;
  const int64_t start_;
  const int32_t slots_;
  std::vector<llvm::BitVector> together_;
};

}  // namespace

void shareSpillSlots(Func& func, int64_t start) { SlotSharing(func, start).run(); }

}  // namespace tpu::schedule
