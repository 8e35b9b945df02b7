// The texts of --explain, by kind of operation.
#include "causes.h"

namespace tpu::partition {

using hlo::Opcode;

Cause operandCause(const hlo::Module& m, hlo::OpId id, hlo::LocId asked, llvm::StringRef note) {
  if (!note.empty()) {
    return {"whole-dim", id, asked, note, "leave the dimension that this operation needs whole unsharded"};
  }
  switch (m.op(id).opcode) {
    case Opcode::dot_general:
    case Opcode::dot:
    case Opcode::convolution:
      return {"operand", id, asked, "the operand is sharded over axes that this contraction uses otherwise",
              "shard the operand like the other operand or the result"};
    case Opcode::gather:
    case Opcode::scatter:
      return {"operand", id, asked, "indices may touch any part of this dimension",
              "shard the dimensions that are not indexed"};
    default:
      return {"operand", id, asked, "the operands of this operation are sharded differently",
              "give them the same sharding"};
  }
}

Cause resultCause(hlo::OpId id, hlo::LocId asked) {
  return {"result", id, asked, "the result is wanted in another sharding than the operands give",
          "ask for the sharding that the operands give"};
}

Cause partialCause(const hlo::Module& m, hlo::OpId id, hlo::LocId asked, bool scattered) {
  auto scalar = [&](hlo::ValueId v) { return m.typeOf(v).numElements() == 1; };
  const bool all_reduce = !scattered && !llvm::all_of(m.op(id).results, scalar);  // which a reduce_scatter could take the place of
  switch (m.op(id).opcode) {
    case Opcode::dot_general:
    case Opcode::dot:
    case Opcode::convolution:
      return {"contract-dim", id, asked,
              "a contracted dimension is sharded, so every device has a partial sum",
              all_reduce ? "shard the result over the same axes for a reduce_scatter, or leave the contracted dimension whole"
                         : "leave the contracted dimension whole"};
    case Opcode::gather:
      return {"gather-dim", id, asked,
              "the indexed dimension is sharded, so every device finds only its own rows",
              "shard another dimension of the operand"};
    case Opcode::slice:
    case Opcode::dynamic_slice:
      return {"slice-dim", id, asked, "the sliced dimension is sharded, so only some devices have the box",
              "leave the sliced dimension whole, or shard another one"};
    case Opcode::scatter:
      return {"scatter-dim", id, asked, "updates are sharded over indices, so every device has a partial sum",
              all_reduce ? "shard the updated operand over the same axes for a reduce_scatter"
                         : "shard the updates along the dimensions that they write whole"};
    default:
      return {"reduce-dim", id, asked, "a reduced dimension is sharded, so every device has a partial result",
              all_reduce ? "shard the result over the same axes for a reduce_scatter, or leave the reduced dimension whole"
                         : "leave the reduced dimension whole"};
  }
}

Cause expansionCause(hlo::OpId op, llvm::StringRef code) {
  struct Row {
    llvm::StringLiteral code, reason, remove_by;
  };
  static constexpr Row kRows[] = {
      {"halo", "elements at the borders of shards are needed by the neighbours", "leave the shifted dimension whole"},
      {"mirror", "a reversed dimension is sharded, so shards change places", "leave the reversed dimension whole"},
      {"sort", "sorted shards are merged pairwise", "leave the sorted dimension whole, or shard another one"},
      {"running-total", "a running total continues from shard to shard",
       "leave the dimension along which it runs whole"},
      {"top-k", "the best of every shard are compared", "leave the last dimension whole"},
      {"reduce-dim", "a reduced dimension is sharded, so every device has a partial result",
       "leave the reduced dimension whole"},
  };
  for (const Row& r : kRows) {
    if (r.code == code) return {code, op, hlo::LocId(), r.reason, r.remove_by};
  }
  return {code, op, hlo::LocId(), "", ""};
}

}  // namespace tpu::partition
