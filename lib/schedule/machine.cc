#include "machine.h"

namespace tpu::schedule {

using isa::LatencyClass;
using isa::Opcode;

Machine::Machine(const target::Chip& chip) : chip_(chip), num_units_(2 * chip.mxus + chip.xlus + 1) {
  for (int c = 0; c < isa::kNumLatencyClasses; ++c)
    timing_[c] = chip.timing(isa::latencyClassName(static_cast<LatencyClass>(c)));
}

int Machine::depth(isa::Fifo fifo) const {
  switch (fifo) {
    case isa::Fifo::kV2s:
      return chip_.v2s_depth;
    case isa::Fifo::kEup:
      return chip_.eup_depth;
    case isa::Fifo::kXlu:
      return chip_.xlu_depth;
    case isa::Fifo::kTrf:
      return chip_.trf_depth;
    case isa::Fifo::kMrf:
      return chip_.mrf_depth;
    case isa::Fifo::kNone:
      break;
  }
  return 0;
}

int Machine::registers(isa::RegClass cls) const {
  switch (cls) {
    case isa::RegClass::kScalar:
      return chip_.scalar_regs - 1;  // the last one links calls
    case isa::RegClass::kVector:
      return chip_.vector_regs;
    case isa::RegClass::kMask:
      return chip_.mask_regs;
    case isa::RegClass::kPred:
      return chip_.predicate_regs;
  }
  return 0;
}

int Machine::unit(const isa::Instruction& insn) const {
  const isa::InstructionInfo& row = isa::info(insn.op);
  switch (row.slot) {
    case isa::Slot::kMxu:
      return 2 * insn.operands[0].reg + (isMatmul(insn.op) ? 1 : 0);
    case isa::Slot::kXlu:
      return 2 * chip_.mxus + insn.operands[0].reg;
    case isa::Slot::kEup:
      return 2 * chip_.mxus + chip_.xlus;
    default:
      return -1;
  }
}

bool isMatPush(Opcode op) {
  const LatencyClass c = isa::info(op).latency;
  return c == LatencyClass::kMatPush || c == LatencyClass::kMatPushT;
}

bool isMatmul(Opcode op) { return isa::info(op).latency >= LatencyClass::kMatmul_f32; }

bool isAccumulate(Opcode op) { return isMatmul(op) && isa::info(op).num_operands == 4; }

bool isVmemLoad(Opcode op) { return isa::info(op).slot == isa::Slot::kLoad; }
bool isVmemStore(Opcode op) { return isa::info(op).slot == isa::Slot::kStore; }

bool isSync(Opcode op) {
  switch (op) {
    case Opcode::dma_start:
    case Opcode::sem_wait:
    case Opcode::sem_add:
    case Opcode::sem_signal:
    case Opcode::sem_read:
    case Opcode::trap:
      return true;
    default:
      return false;
  }
}

}  // namespace tpu::schedule
