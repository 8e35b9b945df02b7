// Costs of instructions on a chip, as tpu/emulate/timing.h counts them.
#pragma once
#include <array>

#include "mir.h"
#include "tpu/target/chip.h"

namespace tpu::schedule {

class Machine {
 public:
  explicit Machine(const target::Chip& chip);

  const target::Chip& chip() const { return chip_; }
  int latency(isa::Opcode op) const { return timing_[static_cast<int>(isa::info(op).latency)].latency; }
  int latency(isa::LatencyClass c) const { return timing_[static_cast<int>(c)].latency; }
  int interval(isa::Opcode op) const { return timing_[static_cast<int>(isa::info(op).latency)].interval; }
  int slots(isa::Slot slot) const { return chip_.slots[static_cast<int>(slot)]; }
  int delay() const { return chip_.branch_delay_bundles; }
  int depth(isa::Fifo fifo) const;
  int registers(isa::RegClass cls) const;

  /// The unit that an instruction keeps busy for its interval: paths of MXUs, XLUs, the EUP; -1 for slots
  /// that take one each cycle. MXU paths are numbered 2 * unit (loading) and 2 * unit + 1 (multiplying).
  int unit(const isa::Instruction& insn) const;
  int numUnits() const { return num_units_; }
  /// Cycles that the instruction keeps a slot of its kind (more than 1 for scalar divisions, say).
  int slotCycles(const isa::Instruction& insn) const { return unit(insn) >= 0 ? 1 : interval(insn.op); }

 private:
  const target::Chip& chip_;
  std::array<target::Timing, isa::kNumLatencyClasses> timing_;
  int num_units_;
};

bool isMatPush(isa::Opcode op);     // vmatpush*, vmatpush.t.*
bool isMatmul(isa::Opcode op);      // vmatmul*, accumulating ones included
bool isAccumulate(isa::Opcode op);  // vmatmul.acc*
/// Reads or writes VMEM (SMEM for scalar ones); stores are those that write.
bool isVmemLoad(isa::Opcode op);
bool isVmemStore(isa::Opcode op);
/// dma.start, sem.*: kept in program order, barriers for memory.
bool isSync(isa::Opcode op);

}  // namespace tpu::schedule
