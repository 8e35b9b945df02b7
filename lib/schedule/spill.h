// Rewrites a function so that given registers live in memory between their uses.
#pragma once
#include <vector>

#include "context.h"
#include "liveness.h"

namespace tpu::schedule {

/// Where spilled values of a function live, and which registers are short-lived temporaries of spills (never
/// spilled again).
class Spiller {
 public:
  Spiller(Func& func, Context& ctx) : func_(func), ctx_(ctx) {}
  /// `spilled` holds registers in the numbering of `index`.
  void spill(const std::vector<int32_t>& spilled, const RegIndex& index);
  bool isTemporary(isa::RegClass cls, int32_t reg) const {
    const std::vector<char>& t = temporary_[classIndex(cls)];
    return reg < static_cast<int32_t>(t.size()) && t[reg];
  }

 private:
  struct Home {
    bool rematerialize = false;
    Insn definition;       // rematerialize
    int64_t address = -1;  // SMEM or VMEM
  };
  int32_t temp(isa::RegClass cls);
  void load(std::vector<Insn>& out, isa::RegClass cls, int32_t reg, const Home& home, uint32_t op);
  void store(std::vector<Insn>& out, isa::RegClass cls, int32_t reg, const Home& home, uint32_t op);
  void rewrite(Insn& insn, std::vector<Insn>& out, bool is_term);
  void findHomes(const std::vector<int32_t>& spilled, const RegIndex& index);

  Func& func_;
  Context& ctx_;
  std::vector<char> temporary_[kNumClasses];
  std::vector<int32_t> home_of_[kNumClasses];  // by register: row of homes_, -1
  std::vector<Home> homes_;
};

/// Gives spilled vectors that are never live together one place. `start` is where the places begin; lowers
/// func.vmem_spill_end. Only before registers are physical.
void shareSpillSlots(Func& func, int64_t start);

}  // namespace tpu::schedule
