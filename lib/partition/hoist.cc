// Collectives whose operand a loop does not change need be met once, in front of it. Only where the loop is known to run:
// otherwise the wires would carry what nobody asked for.
#include "collectives.h"
#include "tpu/hlo/analysis.h"

namespace tpu::partition {

using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;

namespace {

class Hoist {
 public:
  Hoist(hlo::Module& m, int64_t budget) : m_(m), budget_(budget), inside_(m.numValues(), 0) {}

  void run() {
    region(m_.func(m_.entry).body);
    if (changed_) dropDead(m_);
  }

 private:
  /// `depth_` of a value: number of loops that the region which defines it stands in.
  void region(RegionId r) {
    for (ValueId v : m_.region(r).args) inside_[v.v] = depth_;
    std::vector<OpId> after;
    for (OpId id : std::vector<OpId>(m_.region(r).ops)) {
      bool loop = m_.op(id).opcode == Opcode::while_;
      depth_ += loop;
      for (RegionId inner : std::vector<RegionId>(m_.op(id).regions.begin(), m_.op(id).regions.end())) region(inner);
      if (loop) clear(id, r, after);
      depth_ -= loop;
      after.push_back(id);
      for (ValueId v : m_.op(id).results) inside_[v.v] = depth_;
    }
    m_.region(r).ops = std::move(after);
  }

  /// Takes what can be taken out of the body.
  void clear(OpId loop, RegionId outside, std::vector<OpId>& before) {
    if (hlo::tripCount(m_, loop).value_or(0) < 1) return;
    RegionId body = m_.op(loop).regions[1];
    std::vector<OpId> stay;
    for (OpId id : std::vector<OpId>(m_.region(body).ops)) {
      bool candidate = hlo::hasTrait(m_.op(id).opcode, hlo::kCollective) && m_.op(id).operands.size() == 1 &&
                       fixed(m_.op(id).operands[0], loop, 0);
      int64_t more = candidate ? bytesOf(m_.typeOf(m_.op(id).results[0])) : 0;
      if (!candidate || held_ + more > budget_) {
        stay.push_back(id);
        continue;
      }
      held_ += more;
      m_.op(id).operands[0] = outer(m_.op(id).operands[0], loop, outside, before);
      m_.op(id).parent = outside;
      before.push_back(id);
      inside_[m_.op(id).results[0].v] = depth_ - 1;
      changed_ = true;
    }
    m_.region(body).ops = std::move(stay);
  }

  /// What an argument of the body is in every trip; itself where it is none that stays.
  ValueId carried(ValueId v, OpId loop) const {
    const hlo::Region& body = m_.region(m_.op(loop).regions[1]);
    for (size_t i = 0; i < body.args.size(); ++i) {
      if (body.args[i] == v && m_.op(body.ops.back()).operands[i] == v) return m_.op(loop).operands[i];
    }
    return v;
  }

  bool movesData(Opcode opcode) const {
    return opcode == Opcode::convert || opcode == Opcode::reshape || opcode == Opcode::transpose || opcode == Opcode::slice ||
           opcode == Opcode::negate;
  }

  /// The same in every trip, and cheap to have outside.
  bool fixed(ValueId v, OpId loop, int steps) const {
    v = carried(v, loop);
    if (inside_[v.v] < depth_) return true;
    OpId def = m_.value(v).def;
    return def && steps < 4 && movesData(m_.op(def).opcode) && m_.op(def).parent == m_.op(loop).regions[1] &&
           fixed(m_.op(def).operands[0], loop, steps + 1);
  }

  ValueId outer(ValueId v, OpId loop, RegionId outside, std::vector<OpId>& before) {
    v = carried(v, loop);
    if (inside_[v.v] < depth_) return v;
    OpId def = m_.value(v).def;
    ValueId x = outer(m_.op(def).operands[0], loop, outside, before);
    OpId copy = m_.create(outside, m_.op(def).opcode, {x}, {m_.value(v).type}, m_.op(def).loc);
    m_.copyAttrs(def, copy);
    before.push_back(copy);
    ValueId result = m_.op(copy).results[0];
    m_.value(result).sharding = m_.value(v).sharding;
    inside_.resize(m_.numValues());
    inside_[result.v] = depth_ - 1;
    return result;
  }

  hlo::Module& m_;
  int64_t budget_, held_ = 0;
  std::vector<int> inside_;
  int depth_ = 0;
  bool changed_ = false;
};

}  // namespace

void hoistCollectives(hlo::Module& m, int64_t budget) { Hoist(m, budget).run(); }

}  // namespace tpu::partition
