// Propagation over factors with a worklist. Rounds by user priority; inside a round operations join by class:
// first those whose dimensions correspond one to one, then contractions and reductions, then broadcasts and
// shifts. A sharding is only ever extended, so the fixed point is reached after a number of steps linear in
// the program.
#include "propagate.h"

#include <algorithm>
#include <deque>

namespace tpu::partition {

using hlo::DimSharding;
using hlo::Opcode;
using sharding::Axes;
using sharding::FactorAxes;
using sharding::FactorKind;
using sharding::OpRule;

namespace {

constexpr int kClasses = 3;

int classOf(Opcode opcode) {
  if (hlo::hasTrait(opcode, hlo::kElementwise)) return 0;
  switch (opcode) {
    case Opcode::transpose:
    case Opcode::reshape:
    case Opcode::bitcast_convert:
    case Opcode::sdy_sharding_constraint:
    case Opcode::sdy_reshard:
    case Opcode::optimization_barrier:
    case Opcode::dynamic_slice:
    case Opcode::dynamic_update_slice:
      return 0;
    case Opcode::broadcast:
    case Opcode::broadcast_in_dim:
    case Opcode::slice:
    case Opcode::pad:
    case Opcode::concatenate:
    case Opcode::reverse:
      return 2;
    default:
      return 1;
  }
}

/// A tensor of an operation or edge while it is worked on.
struct Tensor {
  Slot slot;
  const sharding::TensorFactors* map;
  llvm::ArrayRef<int64_t> sizes;
};

class Propagator {
 public:
  Propagator(const hlo::Module& m, hlo::MeshId mesh) : m_(m), mesh_(mesh) {}

  Propagated run() {
    p_.flow = findFlow(m_);
    p_.free = findFreeValues(m_);
    initStates();
    collectOps();
    for (int round : rounds_) {
      round_ = round;
      for (class_ = 0; class_ < kClasses; ++class_) fixedPoint();
    }
    alignBorders();
    return std::move(p_);
  }

 private:
  void initStates() {
    const hlo::Func& entry = m_.func(m_.entry);
    p_.dims.resize(p_.flow.num_slots);
    fixed_.resize(p_.flow.num_slots);
    for (Slot s = 0; s < p_.flow.num_slots; ++s) {
      bool is_value = s < p_.flow.num_values;
      hlo::TypeId type =
          is_value ? m_.value(hlo::ValueId(s)).type : entry.result_types[s - p_.flow.num_values];
      const hlo::Type& t = m_.type(type);
      if (t.kind != hlo::TypeKind::kTensor) continue;
      DimStates& dims = p_.dims[s];
      dims.resize(t.rank());
      hlo::ShardingId id =
          is_value ? m_.value(hlo::ValueId(s)).sharding : entry.result_ports[s - p_.flow.num_values].sharding;
      if (!id) {
        for (DimSharding& d : dims) d.open = true;
        continue;
      }
      const hlo::Sharding& wish = m_.sharding(id);
      for (size_t d = 0; d < dims.size() && d < wish.dims.size(); ++d) {
        dims[d] = wish.dims[d];
        if (dims[d].priority > 0) rounds_.push_back(dims[d].priority);
      }
      fixed_[s].append(wish.replicated.begin(), wish.replicated.end());
      fixed_[s].append(wish.unreduced.begin(), wish.unreduced.end());
    }
    // Inside a manual region the manual axes are taken.
    markManual(entry.body, {});
    rounds_.push_back(0);
    std::sort(rounds_.begin(), rounds_.end());
    rounds_.erase(std::unique(rounds_.begin(), rounds_.end()), rounds_.end());
    // The wish on any member of a tied group is the group's.
    for (const Edge& e : p_.flow.edges) {
      for (Slot t : e.targets) merge(e.owner, t);
    }
  }

  void merge(Slot owner, Slot other) {
    for (size_t d = 0; d < p_.dims[owner].size() && d < p_.dims[other].size(); ++d) {
      if (p_.dims[owner][d].axes.empty()) p_.dims[owner][d] = p_.dims[other][d];
    }
  }

  void markManual(hlo::RegionId region, Axes manual) {
    if (!manual.empty()) {
      for (hlo::ValueId v : m_.region(region).args) fixed_[v.v].append(manual.begin(), manual.end());
    }
    for (hlo::OpId id : m_.region(region).ops) {
      const hlo::Op& op = m_.op(id);
      if (!manual.empty()) {
        for (hlo::ValueId v : op.results) fixed_[v.v].append(manual.begin(), manual.end());
      }
      if (!hasPartitionedRegions(op.opcode)) continue;
      Axes inner = manual;
      if (op.opcode == Opcode::sdy_manual_computation) {
        if (const hlo::Attr* a = m_.findAttr(id, hlo::AttrKey::manual_axes))
          inner.append(a->axes.begin(), a->axes.end());
      }
      for (hlo::RegionId r : op.regions) markManual(r, inner);
    }
  }

  void collectOps() {
    p_.rules.resize(m_.numOps());
    class_of_.resize(m_.numOps(), -1);
    ops_of_.resize(p_.flow.num_slots);
    walkPartitioned(m_, m_.func(m_.entry).body, [&](hlo::OpId id) {
      const hlo::Op& op = m_.op(id);
      if (hasPartitionedRegions(op.opcode) || hlo::hasTrait(op.opcode, hlo::kTerminator)) return;
      bool all_free = !op.results.empty();
      for (hlo::ValueId v : op.results) all_free &= p_.free[v.v];
      p_.rules[id.v] = sharding::ruleFor(m_, id);
      if (all_free || p_.rules[id.v].factors.empty()) return;
      class_of_[id.v] = classOf(op.opcode);
      order_.push_back(id);
      for (hlo::ValueId v : op.operands) {
        if (!p_.free[v.v]) ops_of_[p_.flow.owner[v.v]].push_back(id);
      }
      for (hlo::ValueId v : op.results) ops_of_[p_.flow.owner[v.v]].push_back(id);
    });
  }

  void fixedPoint() {
    queued_.assign(m_.numOps(), false);
    edge_queued_.assign(p_.flow.edges.size(), false);
    for (hlo::OpId id : order_) push(id);
    for (uint32_t e = 0; e < p_.flow.edges.size(); ++e) pushEdge(e);
    while (!queue_.empty() || !edge_queue_.empty()) {
      // Edges first: they are cheap and tie whole loops together.
      if (!edge_queue_.empty()) {
        uint32_t e = edge_queue_.front();
        edge_queue_.pop_front();
        edge_queued_[e] = false;
        runEdge(p_.flow.edges[e]);
        continue;
      }
      hlo::OpId id = queue_.front();
      queue_.pop_front();
      queued_[id.v] = false;
      runOp(id);
    }
  }

  void push(hlo::OpId id) {
    if (class_of_[id.v] > class_ || queued_[id.v]) return;
    queued_[id.v] = true;
    queue_.push_back(id);
  }
  void pushEdge(uint32_t e) {
    if (edge_queued_[e]) return;
    edge_queued_[e] = true;
    edge_queue_.push_back(e);
  }
  void changed(Slot owner) {
    for (hlo::OpId id : ops_of_[owner]) push(id);
    for (uint32_t e : p_.flow.edges_of[owner]) pushEdge(e);
  }

  void runOp(hlo::OpId id) {
    const hlo::Op& op = m_.op(id);
    const OpRule& rule = p_.rules[id.v];
    llvm::SmallVector<Tensor, 4> tensors;
    auto add = [&](hlo::ValueId v, const sharding::TensorFactors& map) {
      if (map.empty() || p_.free[v.v]) return;
      tensors.push_back({p_.flow.owner[v.v], &map, m_.typeOf(v).dims});
    };
    for (size_t i = 0; i < op.operands.size(); ++i) add(op.operands[i], rule.operands[i]);
    for (size_t i = 0; i < op.results.size(); ++i) add(op.results[i], rule.results[i]);
    bool forward = true, backward = true;
    if (op.opcode == Opcode::sdy_propagation_barrier) {
      llvm::StringRef allowed = m_.getString(id, hlo::AttrKey::allowed_direction);
      forward = allowed == "FORWARD" || allowed == "BOTH";
      backward = allowed == "BACKWARD" || allowed == "BOTH";
    }
    spread(rule, tensors, id, forward, backward, op.operands.size());
  }

  /// Extends what the factors allow. Operand tensors come first in `tensors`.
  void spread(const OpRule& rule, llvm::ArrayRef<Tensor> tensors, hlo::OpId op, bool forward, bool backward,
              size_t num_operands) {
    llvm::SmallVector<FactorAxes, 4> have(tensors.size());
    bool any = false;
    for (size_t t = 0; t < tensors.size(); ++t) {
      DimStates seen = visible(tensors[t].slot);
      for (const DimSharding& d : seen) any |= !d.axes.empty();
      project(rule, *tensors[t].map, seen, have[t]);
    }
    if (!any) return;
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      if (rule.factors[f].kind == FactorKind::kReplicate) continue;
      if (rule.factors[f].kind == FactorKind::kNeighbour && class_ + 1 < kClasses) continue;
      int best = -1;
      for (size_t t = 0; t < tensors.size(); ++t) {
        if (have[t][f].empty()) continue;
        if (best < 0 || better(have[t][f], have[best][f])) best = static_cast<int>(t);
      }
      if (best < 0) continue;
      Axes want = have[best][f];
      for (size_t t = 0; t < tensors.size(); ++t) {
        if (static_cast<int>(t) == best || have[t][f].size() > want.size()) continue;
        bool is_result = t >= num_operands;
        if ((is_result && !forward) || (!is_result && !backward)) continue;
        extend(rule, tensors[t], have[t], f, want, op, tensors[best].slot);
      }
    }
  }

  static bool better(const Axes& a, const Axes& b) { return sharding::product(a) > sharding::product(b); }

  void extend(const OpRule& rule, const Tensor& t, FactorAxes& have, size_t f, const Axes& want, hlo::OpId op,
              Slot from) {
    int dim = -1;
    for (size_t d = 0; d < t.map->size(); ++d) {
      if (llvm::is_contained((*t.map)[d], static_cast<int16_t>(f))) dim = static_cast<int>(d);
    }
    if (dim < 0 || !sharding::isPrefix(have[f], want)) return;
    DimStates& state = p_.dims[t.slot];
    if (!state[dim].open || state[dim].priority > round_) return;
    Axes used = fixed_[t.slot];
    for (const DimSharding& d : state) used.append(d.axes.begin(), d.axes.end());
    Axes more = sharding::prefixWithout(sharding::dropPrefix(want, have[f]), used);
    if (more.empty()) return;
    FactorAxes next = have;
    sharding::append(next[f], more);
    Axes after = dimsOf(rule, *t.map, next)[dim];
    if (!sharding::isPrefix(state[dim].axes, after)) return;
    Axes added = sharding::dropPrefix(after, state[dim].axes);
    if (added.empty()) return;
    int64_t shards = sharding::product(after);
    bool same = t.sizes[dim] == rule.factors[f].size || rule.factors[f].kind == FactorKind::kNeighbour;
    if (t.sizes[dim] % shards != 0 && (!same || t.sizes[dim] < shards)) return;
    state[dim].axes = after;
    have = next;
    p_.steps.push_back({t.slot, from, dim, added, op});
    changed(t.slot);
  }

  /// Dims as this round sees them: those of a later priority are hidden.
  DimStates visible(Slot slot) {
    DimStates out = p_.dims[slot];
    for (DimSharding& d : out) {
      if (d.priority > round_) d.axes.clear();
    }
    return out;
  }

  /// Behind manual axes a dimension is cut evenly or not at all: padding inside would shift what stands
  /// outside.
  void alignBorders() {
    for (const Edge& e : p_.flow.edges) {
      if (!e.manual) continue;
      const hlo::Dims& inner = m_.typeOf(hlo::ValueId(e.enters ? e.owner : e.sources[0])).dims;
      DimStates& state = p_.dims[e.owner];
      for (size_t d = 0; d < state.size(); ++d) {
        sharding::AxesRef prefix;
        if (!e.enters) prefix = e.prefix[d];
        Axes free = sharding::dropPrefix(state[d].axes, prefix);
        if (inner[d] % sharding::product(free) != 0) state[d].axes = Axes(prefix.begin(), prefix.end());
      }
    }
  }

  void runEdge(const Edge& e) {
    Slot owner = e.owner;
    for (Slot raw : e.sources) {
      if (raw < p_.flow.num_values && p_.free[raw]) continue;
      Slot source = p_.flow.owner[raw];
      for (size_t d = 0; d < p_.dims[owner].size() && d < p_.dims[source].size(); ++d) {
        // Outside of a manual region a dimension leads with the manual axes.
        sharding::AxesRef drop_owner, drop_source;
        if (e.manual) (e.enters ? drop_source : drop_owner) = e.prefix[d];
        follow(owner, source, d, drop_owner, drop_source, e.op);
        follow(source, owner, d, drop_source, drop_owner, e.op);
      }
    }
  }

  void follow(Slot to, Slot from, size_t d, sharding::AxesRef to_prefix, sharding::AxesRef from_prefix,
              hlo::OpId op) {
    DimSharding& state = p_.dims[to][d];
    const DimSharding& other = p_.dims[from][d];
    if (!state.open || state.priority > round_ || other.priority > round_) return;
    if (!sharding::isPrefix(from_prefix, other.axes) || !sharding::isPrefix(to_prefix, state.axes)) return;
    Axes want = sharding::concat(to_prefix, sharding::dropPrefix(other.axes, from_prefix));
    if (!sharding::isPrefix(state.axes, want)) return;
    Axes used = fixed_[to];
    for (const DimSharding& s : p_.dims[to]) used.append(s.axes.begin(), s.axes.end());
    Axes more = sharding::prefixWithout(sharding::dropPrefix(want, state.axes), used);
    if (more.empty()) return;
    sharding::append(state.axes, more);
    p_.steps.push_back({to, from, static_cast<int>(d), more, op});
    changed(to);
  }

  const hlo::Module& m_;
  hlo::MeshId mesh_;
  Propagated p_;
  std::vector<int> rounds_;
  int round_ = 0, class_ = 0;
  std::vector<Axes> fixed_;  // slot -> axes it must not use: replicated, unreduced, manual
  std::vector<int8_t> class_of_;
  std::vector<hlo::OpId> order_;
  std::vector<llvm::SmallVector<hlo::OpId, 2>> ops_of_;
  std::deque<hlo::OpId> queue_;
  std::deque<uint32_t> edge_queue_;
  std::vector<bool> queued_, edge_queued_;
};

}  // namespace

Propagated propagate(const hlo::Module& module, hlo::MeshId mesh) { return Propagator(module, mesh).run(); }

}  // namespace tpu::partition
