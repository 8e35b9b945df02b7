// Reshards in a row: a value that is only resharded again goes from its source directly where that is
// cheaper. This is how an all-reduce whose result is only cut becomes a reduce-scatter.
#include "context.h"
#include "tpu/hlo/analysis.h"
#include "tpu/sharding/text.h"

namespace tpu::partition {

using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;

namespace {

class ChainFolder {
 public:
  ChainFolder(hlo::Module& m, Context& ctx)
      : m_(m), ctx_(ctx), users_(m.numValues()), why_of_(m.numOps(), nullptr) {
    for (hlo::Why& w : m.whys) why_of_[w.op.v] = &w;
  }

  void run() {
    std::vector<OpId> reshards;
    hlo::walk(m_, [&](OpId id) {
      if (m_.op(id).opcode == Opcode::sdy_reshard) reshards.push_back(id);
      for (ValueId v : m_.op(id).operands) users_[v.v].push_back(id);
    });
    for (OpId id : reshards) fold(id);
  }

 private:
  Layout layout(ValueId v) const { return layoutOf(m_, m_.value(v).sharding, m_.typeOf(v).rank()); }
  double cost(ValueId from, ValueId to) {
    const hlo::Type& type = m_.typeOf(from);
    return ctx_.plans(m_).plan(type.dims, elementBits(type.element), layout(from), layout(to)).cost;
  }

  void fold(OpId id) {
    ValueId source = m_.op(id).operands[0], middle = m_.op(id).results[0];
    if (users_[middle.v].empty()) return;
    double through = cost(source, middle), direct = 0;
    for (OpId u : users_[middle.v]) {
      if (m_.op(u).opcode != Opcode::sdy_reshard) return;
      through += cost(middle, m_.op(u).results[0]);
      direct += cost(source, m_.op(u).results[0]);
    }
    if (direct >= through) return;
    for (OpId u : users_[middle.v]) {
      m_.op(u).operands[0] = source;
      users_[source.v].push_back(u);
      if (why_of_[u.v]) why_of_[u.v]->before = sharding::print(m_, m_.value(source).sharding);
    }
    users_[middle.v].clear();
  }

  hlo::Module& m_;
  Context& ctx_;
  std::vector<llvm::SmallVector<OpId, 2>> users_;
  std::vector<hlo::Why*> why_of_;
};

}  // namespace

void foldReshardChains(hlo::Module& m, Context& ctx) { ChainFolder(m, ctx).run(); }

}  // namespace tpu::partition
