// Reshards become the planned sequence of collectives.
#include <numeric>

#include "causes.h"
#include "localise.h"
#include "tpu/sharding/reducer.h"
#include "tpu/sharding/text.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;
using sharding::Axes;
using sharding::AxesRef;

Opcode Localiser::reducerFor(ValueId v) const {
  OpId def = m_.value(v).def;
  if (!def) return Opcode::add;
  const hlo::Op& op = m_.op(def);
  if (op.opcode == Opcode::reduce || op.opcode == Opcode::scatter) {
    return sharding::reducerOf(m_, op.regions[0]).value_or(Opcode::add);
  }
  return Opcode::add;
}

void Localiser::noteWhy(OpId collective, llvm::StringRef code) {
  hlo::Why why;
  uint32_t row = reason_.v < why_of_.size() ? why_of_[reason_.v] : ~0u;
  if (row != ~0u) {
    why = m_.whys[row];
  } else {
    Cause cause = expansionCause(reason_, code);
    why.needed_by = reason_;
    why.asked_at = m_.loc(m_.op(reason_).loc).str();
    why.reason = cause.reason.str();
    why.remove_by = cause.remove_by.str();
  }
  if (why.code.empty()) why.code = code.str();
  why.op = collective;
  whys_.push_back(std::move(why));
}

ValueId Localiser::sliceTo(ValueId v, llvm::ArrayRef<int64_t> sizes, const Layout& before,
                           const Layout& after) {
  llvm::SmallVector<ValueId, 6> starts(sizes.size());
  llvm::SmallVector<int64_t, 6> local(m_.typeOf(v).dims.begin(), m_.typeOf(v).dims.end());
  bool any = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    Axes more = sharding::dropPrefix(after.dims[d], before.dims[d]);
    if (more.empty()) continue;
    int64_t shard = sharding::shardSize(sizes[d], sharding::product(after.dims[d]));
    v = padTo(v, d, shard * sharding::product(more));
    starts[d] = affine(more, shard, 0);
    local[d] = shard;
    any = true;
  }
  if (!any) return v;
  for (ValueId& s : starts) {
    if (!s) s = s32(0);
  }
  return b_.dynamicSlice(v, starts, local);
}

ValueId Localiser::permute(ValueId v, AxesRef axes, std::vector<int64_t> pairs) {
  OpId op = b_.create(Opcode::collective_permute, {v}, {m_.value(v).type});
  hlo::Groups groups;
  groups.rows = static_cast<int64_t>(pairs.size() / 2);
  groups.cols = 2;
  groups.ids = std::move(pairs);
  m_.setAxes(op, AttrKey::axes, ctx_.mesh, axes);
  m_.setGroups(op, AttrKey::source_target_pairs, std::move(groups));
  return m_.op(op).results[0];
}

ValueId Localiser::applyMove(ValueId v, llvm::ArrayRef<int64_t> sizes, const Layout& before, const Move& move,
                             Opcode reducer) {
  auto shard = [&](const Layout& l, int d) {
    return sharding::shardSize(sizes[d], sharding::product(l.dims[d]));
  };
  int64_t k = sharding::product(move.axes);
  ValueId out;
  switch (move.kind) {
    case MoveKind::kSlice:
      return sliceTo(v, sizes, before, move.after);
    case MoveKind::kGather:
      out = b_.allGather(v, ctx_.mesh, move.axes, move.from);
      noteWhy(m_.value(out).def, "reshard");
      return padTo(out, move.from, shard(move.after, move.from));
    case MoveKind::kAllToAll:
      v = padTo(v, move.to, shard(move.after, move.to) * k);
      out = b_.allToAll(v, ctx_.mesh, move.axes, move.to, move.from);
      noteWhy(m_.value(out).def, "reshard");
      return padTo(out, move.from, shard(move.after, move.from));
    case MoveKind::kPermute:
      out = permute(v, move.axes, permutePairs(mesh_, before, move.after, move.axes).pairs);
      noteWhy(m_.value(out).def, "reshard");
      return out;
    case MoveKind::kReduceScatter:
      v = padTo(v, move.to, shard(move.after, move.to) * k);
      out = b_.reduceScatter(v, ctx_.mesh, move.axes, move.to, reducer);
      noteWhy(m_.value(out).def, "reshard");
      return out;
    case MoveKind::kAllReduce:
      out = b_.allReduce(v, ctx_.mesh, move.axes, reducer);
      noteWhy(m_.value(out).def, "reshard");
      return out;
  }
  return v;
}

void Localiser::needsPadding(llvm::ArrayRef<int64_t> sizes, int64_t bits, const Layout& before, const Plan& plan) {
  llvm::SmallVector<const Layout*, 4> layouts = {&before};
  for (const Move& move : plan.moves) layouts.push_back(&move.after);
  llvm::SmallVector<int64_t, 6> finest(sizes.size(), 1);
  for (const Layout* l : layouts) {
    for (size_t d = 0; d < sizes.size(); ++d) finest[d] = std::lcm(finest[d], sharding::product(l->dims[d]));
  }
  for (const Layout* l : layouts) {
    int64_t n = bits;
    for (size_t d = 0; d < sizes.size(); ++d) n *= sharding::shardSize(sizes[d], finest[d]) * finest[d] / sharding::product(l->dims[d]);
    need_ = std::max(need_, n);
  }
}

llvm::Error Localiser::reshardOp(OpId id) {
  ValueId operand = m_.op(id).operands[0], result = m_.op(id).results[0];
  const hlo::Dims sizes = globalType(operand).dims;
  Layout now = layout(operand);
  const Plan plan = ctx_.plans(m_).plan(sizes, elementBits(globalType(operand).element), now, layout(result));
  Opcode reducer = reducerFor(operand);
  ValueId v = current(operand);
  for (const Move& move : plan.moves) {
    v = applyMove(v, sizes, now, move, reducer);
    now = move.after;
    if (&move != &plan.moves.back()) m_.value(v).sharding = internLayout(m_, ctx_.mesh, now);
  }
  if (ctx_.held && !plan.full_copy) needsPadding(sizes, elementBits(globalType(operand).element), layout(operand), plan);
  reported_ = plan.full_copy;
  if (plan.full_copy && why_of_[id.v] != ~0u) {
    const hlo::Why& why = m_.whys[why_of_[id.v]];
    ctx_.full_copies.push_back({m_.loc(m_.op(id).loc).str(), why.before, why.after,
                                "no sequence of exchanges keeps to the larger of both shards", plan.largest_bytes});
    if (ctx_.sink) ctx_.sink->warn(Code::kGathered, m_.loc(m_.op(id).loc),
                    "this value is gathered on every device to go from " + why.before + " to " + why.after);
  }
  finish(id, 0, v);
  return llvm::Error::success();
}

}  // namespace tpu::partition
