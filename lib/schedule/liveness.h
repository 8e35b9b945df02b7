// Which virtual registers are live at the borders of blocks, and which are live together.
#pragma once
#include <vector>

#include "llvm/ADT/BitVector.h"
#include "mir.h"

namespace tpu::schedule {

/// Virtual registers of all classes in one numbering.
struct RegIndex {
  explicit RegIndex(const Func& func) {
    for (int c = 0; c < kNumClasses; ++c) base[c + 1] = base[c] + func.num_regs[c];
  }
  int32_t of(isa::RegClass cls, int32_t reg) const { return base[classIndex(cls)] + reg; }
  isa::RegClass classOf(int32_t index) const {
    int c = 0;
    while (index >= base[c + 1]) ++c;
    return static_cast<isa::RegClass>(c);
  }
  int32_t size() const { return base[kNumClasses]; }
  int32_t base[kNumClasses + 1] = {0, 0, 0, 0, 0};
};

/// Calls f(index, is_read, is_write, partial) for the virtual registers of an instruction. A predicated write
/// is partial where the old value may stay and be read.
template <class F>
void forEachVirtual(const Insn& insn, const RegIndex& index, F&& f) {
  const bool partial = !insn.fresh && (insn.insn.pred_virt || insn.insn.pred != isa::kAlways);
  isa::forEachRegister(insn.insn, [&](isa::RegClass cls, int num, bool virt, bool is_read, bool is_write) {
    if (virt) f(index.of(cls, num), is_read && !(is_write && insn.fresh), is_write, partial);
  });
}

/// Blocks that may run after block `b`.
llvm::SmallVector<int, 2> successors(const Func& func, int b);

/// Registers live after each block.
std::vector<llvm::BitVector> liveOut(const Func& func, const RegIndex& index);

/// Interference: for each register, those of its class that hold another value somewhere while it is live.
struct Interference {
  std::vector<std::vector<int32_t>> neighbours;  // ascending, without duplicates
  std::vector<char> across_call;                 // live over a call
  std::vector<double> cost;                      // reads and writes, loops counted
  std::vector<int32_t> first;                    // position of the first mention, -1: never
};
Interference interference(const Func& func, const RegIndex& index);

}  // namespace tpu::schedule
