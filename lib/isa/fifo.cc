// Which FIFO an instruction pushes to or pops from and how many entries it yields: the emulator, the
// scheduler and the checks of hand-written programs must count alike.
#include "tpu/isa/isa.h"

namespace tpu::isa {
namespace {

bool isMatmul(Opcode op) {
  switch (op) {
#define TPU_MATMUL(type)       \
  case Opcode::vmatmul_##type: \
    return true;
    TPU_MATMUL(f32)
    TPU_MATMUL(bf16)
    TPU_MATMUL(s8) TPU_MATMUL(u8) TPU_MATMUL(f8e4m3fn) TPU_MATMUL(f8e5m2)
#undef TPU_MATMUL
        default : return false;
  }
}

Fifo popOf(Opcode op) {
  switch (op) {
    case Opcode::spop:
      return Fifo::kV2s;
    case Opcode::vpop_eup:
      return Fifo::kEup;
    case Opcode::vpop_xlu:
      return Fifo::kXlu;
    case Opcode::vpop_trf:
      return Fifo::kTrf;
    case Opcode::vpop_mrf:
    case Opcode::vpop_mrf_half:
      return Fifo::kMrf;
    default:
      return Fifo::kNone;
  }
}

}  // namespace

int mxuRows(Opcode op) {
  switch (op) {
#define TPU_ROWS(type, rows)       \
  case Opcode::vmatpush_##type:    \
  case Opcode::vmatpusht_##type:   \
  case Opcode::vmatmul_##type:     \
  case Opcode::vmatmul_acc_##type: \
    return rows;
    TPU_ROWS(f32, 8)
    TPU_ROWS(bf16, 16)
    TPU_ROWS(s8, 32) TPU_ROWS(u8, 32) TPU_ROWS(f8e4m3fn, 32) TPU_ROWS(f8e5m2, 32)
#undef TPU_ROWS
        default : return 0;
  }
}

int unitOf(const Instruction& insn) {
  for (const Operand& o : insn.ops())
    if (o.kind == Operand::kUnit) return o.reg;
  return -1;
}

FifoEffect fifoEffect(const Instruction& insn, int mxu_side) {
  FifoEffect effect;
  effect.pop = popOf(insn.op);
  const InstructionInfo& row = info(insn.op);
  if (insn.op == Opcode::vtos) {
    effect.push = Fifo::kV2s, effect.entries = 1;
  } else if (row.latency == LatencyClass::kEupPush) {
    effect.push = Fifo::kEup, effect.entries = 1;
  } else if (row.latency == LatencyClass::kXluReduce || row.latency == LatencyClass::kXluPermute) {
    effect.push = Fifo::kXlu, effect.entries = 1;
  } else if (insn.op == Opcode::vxpose_go) {
    effect.push = Fifo::kTrf, effect.entries = static_cast<int>(insn.operands[2].imm / 8);
  } else if (isMatmul(insn.op) && (mxu_side < 128 || insn.operands[2].imm == mxuPanels(mxu_side) - 1)) {
    effect.push = Fifo::kMrf, effect.entries = mxuRows(insn.op) / 8 * mxuPanels(mxu_side);
  }
  return effect;
}

}  // namespace tpu::isa
