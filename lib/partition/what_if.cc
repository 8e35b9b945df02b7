// Tries requests one by one. A wrong constraint often shows far from where it stands: at the next contraction in either
// direction, with both sides looking equally entitled. Only the cost of the program without it tells.
#include "what_if.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "collectives.h"
#include "llvm/ADT/STLExtras.h"
#include "tpu/sharding/text.h"

namespace tpu::partition {

using hlo::OpId;
using hlo::ValueId;

namespace {

constexpr size_t kMaxTried = 16, kMaxWork = 800000;  // requests; of ops in all trials

using RecordKey = std::tuple<std::string, std::string, int64_t, std::vector<std::string>>;
RecordKey keyOf(const hlo::Module& m, const CollectiveRecord& r) {
  return {r.kind, m.loc(m.op(r.op).loc).str(), r.bytes, r.axes};
}

struct Trial {
  OpId request;
  std::string annotation;
  int64_t wire_bytes = 0;
  std::map<RecordKey, int64_t> records;
};

class WhatIf {
 public:
  WhatIf(const hlo::Module& requested, const State& state, PartitionReport& report)
      : requested_(requested), state_(state), report_(report) {}

  void run() {
    if (report_.wire_bytes == 0) return;
    std::vector<Trial> trials;
    for (OpId id : candidates()) {
      Trial t;
      t.request = id;
      if (attempt(t)) trials.push_back(std::move(t));
    }
    std::stable_sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.wire_bytes < b.wire_bytes; });
    for (Trial& t : trials) {
      std::string text = "write " + t.annotation + " at " + requested_.loc(requested_.op(t.request).loc).str();
      for (CollectiveRecord& r : report_.records) {
        if (--t.records[keyOf(state_.module, r)] < 0 && r.remove_by.empty()) r.remove_by = text;
      }
    }
  }

 private:
  /// Constraints, first those at lines that the costliest collectives point at.
  std::vector<OpId> candidates() const {
    std::vector<OpId> out;
    walkPartitioned(requested_, requested_.func(requested_.entry).body, [&](OpId id) {
      if (requested_.op(id).opcode == hlo::Opcode::sdy_sharding_constraint && requested_.op(id).loc &&
          requested_.value(requested_.op(id).results[0]).sharding)
        out.push_back(id);
    });
    std::map<std::string, size_t> named;
    for (const CollectiveRecord& r : report_.records) {
      if (r.why) named.try_emplace(r.why->asked_at, named.size());
    }
    auto rank = [&](OpId id) {
      auto it = named.find(requested_.loc(requested_.op(id).loc).str());
      return it == named.end() ? named.size() : it->second;
    };
    std::stable_sort(out.begin(), out.end(), [&](OpId a, OpId b) { return rank(a) < rank(b); });
    out.resize(std::min({out.size(), kMaxTried, kMaxWork / std::max<size_t>(1, requested_.numOps())}));
    return out;
  }

  void ask(State& s, OpId request, hlo::ShardingId sharding) const {
    s.module = requested_.clone();
    s.ctx.mesh = state_.ctx.mesh;
    s.module.value(s.module.op(request).results[0]).sharding = sharding;
  }

  /// True where the program sends less and no device computes more.
  bool attempt(Trial& t) const {
    ValueId v = requested_.op(t.request).results[0];
    hlo::Sharding asked = requested_.sharding(requested_.value(v).sharding);
    for (hlo::DimSharding& d : asked.dims) {
      d.axes.clear();
      d.open = true;
    }
    State without;
    ask(without, t.request, hlo::ShardingId());
    without.module.value(v).sharding = without.module.internSharding(asked);
    Propagated found = propagate(without.module, state_.ctx.mesh);
    const DimStates& dims = found.of(v.v);
    for (size_t d = 0; d < asked.dims.size() && d < dims.size(); ++d) {
      asked.dims[d].axes = dims[d].axes;
      asked.dims[d].open = false;
    }
    if (asked == requested_.sharding(requested_.value(v).sharding)) return false;
    State with;
    ask(with, t.request, hlo::ShardingId());
    with.module.value(v).sharding = with.module.internSharding(asked);
    for (auto* pass : {propagateShardings, insertReshards, localise, cleanUp}) {
      if (llvm::Error e = pass(with.module, with.ctx)) {
        llvm::consumeError(std::move(e));
        return false;
      }
    }
    PartitionReport report = makeReport(with.module, state_.target, state_.unpartitioned_ops);
    if (report.wire_bytes >= report_.wire_bytes || report.dot_flops > report_.dot_flops * 1.001) return false;
    t.wire_bytes = report.wire_bytes;
    t.annotation = sharding::print(with.ctx.meshOf(with.module), asked);
    for (const CollectiveRecord& r : report.records) ++t.records[keyOf(with.module, r)];
    return true;
  }

  const hlo::Module& requested_;
  const State& state_;
  PartitionReport& report_;
};

}  // namespace

void findRemovals(const hlo::Module& requested, const State& state, PartitionReport& report) {
  WhatIf(requested, state, report).run();
}

}  // namespace tpu::partition
