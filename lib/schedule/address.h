// Symbolic addresses: what two memory operands of a block have in common.
//
// A value is symbol + offset. Additions and multiplications by constants keep the symbol, so that addresses
// computed from the same registers by different routes can be compared; anything else is a new symbol.
#pragma once
#include <map>
#include <tuple>

#include "mir.h"

namespace tpu::schedule {

struct SymbolicValue {
  int32_t symbol = 0;  // 0: a constant
  int64_t offset = 0;
};

class ValueNumbers {
 public:
  /// Value of a scalar register here; registers never written so far have a symbol of their own.
  SymbolicValue value(int32_t reg, bool virt);
  /// Follows one instruction.
  void apply(const isa::Instruction& insn);

 private:
  SymbolicValue of(const isa::Operand& o);
  SymbolicValue fresh() { return {next_++, 0}; }
  SymbolicValue combine(int kind, int64_t a, int64_t b, int64_t offset);
  std::map<std::pair<int32_t, bool>, SymbolicValue> regs_;
  std::map<std::tuple<int, int64_t, int64_t>, int32_t> known_;
  int32_t next_ = 1;
};

/// Bytes that a load or store may touch.
struct Access {
  bool smem = false, store = false;
  int32_t object = kAnyObject;
  SymbolicValue base;
  int64_t size = 0;
};
/// The access of a vld*, vst*, sld or sst; `numbers` as of just before it.
Access accessOf(const Insn& insn, ValueNumbers& numbers);
/// Whether the accesses may touch a common byte.
bool mayOverlap(const Access& a, const Access& b);
/// Whether their regions alone make them disjoint.
bool disjointRegions(const Access& a, const Access& b);

/// Gives every load and store of VMEM the region that its base register comes from.
void findObjects(Func& func);

}  // namespace tpu::schedule
