// What a loop reads slice by slice along a sharded dimension. Each slice is on some devices only and would be sent in every
// trip as an all-reduce, both ways round; sent as a whole once, in front of the loop, the same elements cost half. That is
// done for values that no trip changes, where the slices of all trips together outweigh the whole and the devices have room.
#include "context.h"
#include "tpu/hlo/analysis.h"

namespace tpu::partition {

using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;

namespace {

class LoopSlices {
 public:
  LoopSlices(hlo::Module& m, Context& ctx) : m_(m), ctx_(ctx), uses_(m) {}

  std::vector<ValueId> run() {
    hlo::walk(m_, m_.func(m_.entry).body, [&](OpId id) {
      if (m_.op(id).opcode == hlo::Opcode::while_) loop(id);
    });
    return std::move(whole_);
  }

 private:
  void loop(OpId id) {
    std::optional<int64_t> trips = hlo::tripCount(m_, id);
    if (trips.value_or(0) < 2) return;
    const hlo::Region& body = m_.region(m_.op(id).regions[1]);
    for (size_t i = 0; i < body.args.size(); ++i) {
      ValueId arg = body.args[i];
      if (m_.op(body.ops.back()).operands[i] != arg || m_.typeOf(arg).kind != hlo::TypeKind::kTensor) continue;
      carried(arg, m_.op(id).regions[1], static_cast<double>(*trips));
    }
  }

  void carried(ValueId arg, RegionId body, double trips) {
    const hlo::Type& type = m_.typeOf(arg);
    Layout have = layoutOf(m_, m_.value(arg).sharding, type.rank()), need = have;
    double sliced = 0;  // bytes of one trip's slices that cut a sharded dimension
    for (const hlo::Use& use : uses_.of(arg)) {
      const hlo::Op& op = m_.op(use.op);
      if (op.opcode == hlo::Opcode::return_) continue;
      if (op.opcode != hlo::Opcode::dynamic_slice || use.operand != 0 || op.parent != body) return;
      const hlo::Type& part = m_.typeOf(op.results[0]);
      bool cuts = false;
      for (int64_t d = 0; d < type.rank(); ++d) {
        if (part.dims[d] == type.dims[d] || have.dims[d].empty()) continue;
        need.dims[d].clear();
        cuts = true;
      }
      if (cuts) sliced += heldBytes(part, need);
    }
    const double bytes = heldBytes(type, need);
    if (need == have || 2 * trips * sliced <= bytes || bytes > static_cast<double>(ctx_.loop_budget)) return;
    ctx_.loop_budget -= static_cast<int64_t>(bytes);
    m_.value(arg).sharding = internLayout(m_, ctx_.mesh, need);
    whole_.push_back(arg);
  }

  static double heldBytes(const hlo::Type& type, const Layout& layout) {
    return elementsHeld(type.dims, layout) * elementBits(type.element) / 8;
  }

  hlo::Module& m_;
  Context& ctx_;
  const hlo::Uses uses_;
  std::vector<ValueId> whole_;
};

}  // namespace

std::vector<ValueId> wholeWhereLoopsSlice(hlo::Module& m, Context& ctx) { return LoopSlices(m, ctx).run(); }

}  // namespace tpu::partition
