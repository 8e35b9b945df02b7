// Sums of sums over devices: the devices' parts are added first and go over the wires once.
#include "collectives.h"
#include "tpu/hlo/analysis.h"
#include "tpu/sharding/reducer.h"

namespace tpu::partition {

using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;

namespace {

class Reassociate {
 public:
  explicit Reassociate(hlo::Module& m) : m_(m), replacements_(m) {}

  void run() {
    const hlo::Uses uses(m_);
    uses_.resize(m_.numValues());
    for (uint32_t v = 0; v < uses_.size(); ++v) uses_[v] = uses.of(ValueId(v)).size();
    region(m_.func(m_.entry).body);
    if (!changed_) return;
    replacements_.apply();
    dropDead(m_);
  }

 private:
  /// The collective that makes `v` for this use alone.
  OpId reduction(ValueId v, hlo::RegionId r) const {
    v = replacements_.of(v);
    OpId def = m_.value(v).def;
    if (!def || m_.op(def).parent != r || m_.op(def).operands.size() != 1 || uses_[v.v] != 1) return OpId();
    bool reduces = m_.op(def).opcode == Opcode::all_reduce || m_.op(def).opcode == Opcode::reduce_scatter;
    return reduces ? def : OpId();
  }

  bool joins(Opcode op, OpId collective) const {
    auto reducer = sharding::reducerOf(m_, m_.op(collective).regions[0]);
    return reducer && (*reducer == op || (*reducer == Opcode::add && op == Opcode::subtract));
  }

  void region(hlo::RegionId r) {
    std::vector<OpId> after;
    for (OpId id : std::vector<OpId>(m_.region(r).ops)) {
      for (hlo::RegionId inner : std::vector<hlo::RegionId>(m_.op(id).regions.begin(), m_.op(id).regions.end())) region(inner);
      if (!rewrite(id, r, after)) after.push_back(id);
    }
    m_.region(r).ops = std::move(after);
  }

  bool rewrite(OpId id, hlo::RegionId r, std::vector<OpId>& after) {
    if (m_.op(id).operands.size() != 2 || !hlo::hasTrait(m_.op(id).opcode, hlo::kElementwise)) return false;
    OpId a = reduction(m_.op(id).operands[0], r), b = reduction(m_.op(id).operands[1], r);
    if (!a || !b || a == b || !joins(m_.op(id).opcode, a) || collectiveKey(m_, a) != collectiveKey(m_, b)) return false;
    ValueId x = m_.op(a).operands[0], y = m_.op(b).operands[0], result = m_.op(id).results[0];
    if (m_.value(x).type != m_.value(y).type || m_.value(m_.op(b).results[0]).type != m_.value(result).type) return false;
    OpId local = m_.create(r, m_.op(id).opcode, {x, y}, {m_.value(x).type}, m_.op(id).loc);
    m_.copyAttrs(id, local);
    ValueId sum = m_.op(local).results[0];
    m_.value(sum).sharding = m_.value(x).sharding;
    uses_.resize(m_.numValues());
    uses_[sum.v] = 1;
    // The second collective moves here and reduces the sum; its only user was this op.
    m_.op(b).operands[0] = sum;
    std::erase(after, a);
    std::erase(after, b);
    after.push_back(local);
    after.push_back(b);
    ValueId made = m_.op(b).results[0];
    m_.value(made).sharding = m_.value(result).sharding;
    replacements_.replace(result, made);
    uses_[made.v] = uses_[result.v];
    changed_ = true;
    return true;
  }

  hlo::Module& m_;
  Replacements replacements_;
  std::vector<size_t> uses_;
  bool changed_ = false;
};

}  // namespace

void reassociateCollectives(hlo::Module& m) { Reassociate(m).run(); }

}  // namespace tpu::partition
