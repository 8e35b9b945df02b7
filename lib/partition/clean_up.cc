// Clean-up of the partitioned program: equal operations once, dead ones dropped, reasons kept for what is
// left.
#include <algorithm>

#include "collectives.h"
#include "context.h"
#include "llvm/ADT/StringMap.h"
#include "op_key.h"
#include "tpu/hlo/analysis.h"
#include "tpu/sharding/reducer.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;

namespace {

/// Scoped by region: what an outer region has computed is known inside.
class CommonOps {
 public:
  CommonOps(hlo::Module& m, bool collectives) : m_(m), collectives_(collectives), map_(m.numValues()) {}

  void run() {
    region(m_.func(m_.entry).body);
    for (hlo::Why& w : m_.whys) w.op = w.op.v < gone_.size() && gone_[w.op.v] ? OpId() : w.op;
    llvm::erase_if(m_.whys, [](const hlo::Why& w) { return !w.op; });
  }

 private:
  bool candidate(OpId id) const {
    const hlo::Op& op = m_.op(id);
    if (op.results.empty() || hlo::hasTrait(op.opcode, hlo::kSideEffect) ||
        hlo::hasTrait(op.opcode, hlo::kControl) || (!collectives_ && hlo::hasTrait(op.opcode, hlo::kCollective)))
      return false;
    switch (op.opcode) {
      case Opcode::custom_call:
      case Opcode::optimization_barrier:
      case Opcode::rng:
      case Opcode::after_all:
      case Opcode::create_token:
      case Opcode::reduce:
      case Opcode::scatter:
      case Opcode::sort:
      case Opcode::map:
      case Opcode::reduce_window:
      case Opcode::select_and_scatter:
        return false;
      case Opcode::all_reduce:
      case Opcode::reduce_scatter:
        return sharding::reducerOf(m_, op.regions[0]).has_value();
      case Opcode::broadcast_in_dim:
      case Opcode::iota:
      case Opcode::constant:
      case Opcode::broadcast:
        // Cheap to make again, expensive to keep.
        return m_.typeOf(op.results[0]).numElements() <= 4096;
      default:
        return op.regions.empty();
    }
  }

  std::string keyOf(OpId id) const {
    const hlo::Op& op = m_.op(id);
    OpKey key;
    for (ValueId v : op.operands) key.put(v.v);
    for (ValueId v : op.results) key.put(m_.value(v).type.v);
    key.put(m_, id);
    return std::move(key.text);
  }

  void region(hlo::RegionId r) {
    std::vector<std::string> mine;
    std::vector<OpId> after;
    after.reserve(m_.region(r).ops.size());
    for (OpId id : m_.region(r).ops) {
      for (ValueId& v : m_.op(id).operands) {
        if (map_[v.v]) v = map_[v.v];
      }
      if (candidate(id)) {
        std::string key = keyOf(id);
        auto [it, fresh] = known_.try_emplace(key, id);
        if (!fresh) {
          for (size_t i = 0; i < m_.op(id).results.size(); ++i) {
            map_[m_.op(id).results[i].v] = m_.op(it->second).results[i];
          }
          if (gone_.size() <= id.v) gone_.resize(m_.numOps());
          gone_[id.v] = true;
          continue;
        }
        mine.push_back(std::move(key));
      }
      after.push_back(id);
      for (hlo::RegionId inner : m_.op(id).regions) region(inner);
    }
    m_.region(r).ops = std::move(after);
    for (const std::string& key : mine) known_.erase(key);
  }

  hlo::Module& m_;
  bool collectives_;
  std::vector<ValueId> map_;
  std::vector<bool> gone_;
  llvm::StringMap<OpId> known_;
};

/// Reasons of ops that are gone go with them; references to requests that dissolved are cut.
void tidyWhys(hlo::Module& m) {
  std::vector<bool> live(m.numOps(), false);
  std::vector<uint32_t> place(m.numOps(), 0);
  uint32_t next = 0;
  hlo::walk(m, [&](OpId id) {
    live[id.v] = true;
    place[id.v] = next++;
  });
  llvm::erase_if(m.whys, [&](const hlo::Why& w) { return !live[w.op.v]; });
  for (hlo::Why& w : m.whys) {
    if (w.needed_by && !live[w.needed_by.v]) w.needed_by = OpId();
  }
  std::stable_sort(m.whys.begin(), m.whys.end(),
                   [&](const hlo::Why& a, const hlo::Why& b) { return place[a.op.v] < place[b.op.v]; });
}

}  // namespace

llvm::Error cleanUp(hlo::Module& m, Context&) {
  hlo::eliminateDeadCode(m);
  CommonOps(m, false).run();
  dropDead(m);
  return llvm::Error::success();
}

llvm::Error shareCollectives(hlo::Module& m, Context&) {
  CommonOps(m, true).run();
  dropDead(m);
  return llvm::Error::success();
}

void dropDead(hlo::Module& m) {
  hlo::eliminateDeadCode(m);
  tidyWhys(m);
}

}  // namespace tpu::partition
