// Instructions of a timing-only run. Scalars are computed as in a strict run; of vectors only what has a time
// is kept: FIFO entries, accumulators, the time of the matrix units. A scalar that comes from a vector is
// undefined.
#include "exec.h"

namespace tpu::emulate {
namespace {

void nothing(Core&, const Op&) {}
void pushes(Core& c, const Op& op) { c.push(op, op.push_fifo, op.entries); }
void pops(Core& c, const Op& op) { c.pop(op.pop_fifo); }
void popScalar(Core& c, const Op& op) {
  c.pop(op.pop_fifo);
  c.s_shadow[op.d] = ~0u;
}
void matmul(Core& c, const Op& op) {
  c.countRows(op);
  if (op.entries) c.push(op, op.push_fifo, op.entries);
}
void matmulAcc(Core& c, const Op& op) {
  c.countRows(op);
  c.accumulate(op);
}

}  // namespace

Exec timingExecOf(isa::Opcode op) {
  const auto& row = isa::info(op);
  switch (row.slot) {
    case isa::Slot::kScalar:
      return op == isa::Opcode::spop ? &popScalar : execOf(op, true);
    case isa::Slot::kMisc:
      return execOf(op, true);
    case isa::Slot::kValu:
      return op == isa::Opcode::vtos ? &pushes : &nothing;
    case isa::Slot::kLoad:
    case isa::Slot::kStore:
      return &nothing;
    case isa::Slot::kEup:
      return &pushes;
    case isa::Slot::kXlu:
      return op == isa::Opcode::vxpose ? &nothing : &pushes;
    case isa::Slot::kPop:
      return op == isa::Opcode::vpop_mrb ? &nothing : &pops;
    case isa::Slot::kMxu:
      if (row.mnemonic.starts_with("vmatmul.acc")) return &matmulAcc;
      return row.mnemonic.starts_with("vmatmul") ? &matmul : &nothing;
  }
  return &nothing;
}

}  // namespace tpu::emulate
