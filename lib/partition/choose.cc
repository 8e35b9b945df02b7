// The per-operation choice. Costs are bytes: wire bytes as planned, memory traffic and arithmetic weighed
// against them.
#include "choose.h"

#include <algorithm>

#include "neighbour.h"

namespace tpu::partition {

using hlo::Opcode;
using sharding::Axes;
using sharding::FactorAxes;
using sharding::FactorKind;
using sharding::OpRule;

namespace {

// A byte of HBM traffic costs about a sixteenth of a byte on a link. Matrix work done twice is never worth
// what it saves: its weight is far above the ratio of a chip's FLOPs to its link rate.
constexpr double kPerMemoryByte = 1.0 / 16;
constexpr double kPerFlop = 1.0 / 4;

/// Sharding it makes the operation itself send.
bool exchanges(const sharding::Factor& f) { return f.kind == FactorKind::kNeighbour || f.shifted; }

}  // namespace

struct Chooser::Problem {
  hlo::OpId op;
  const OpRule& rule;
  llvm::ArrayRef<TensorView> operands, results;
  bool heavy;  // a contraction
};

Layout Chooser::layoutFor(const OpRule& rule, const sharding::TensorFactors& map, const FactorAxes& axes) {
  Layout l;
  l.dims = dimsOf(rule, map, axes);
  return l;
}

Axes Chooser::partialAxes(const OpRule& rule, const FactorAxes& axes) {
  Axes out;
  for (size_t f = 0; f < axes.size(); ++f) {
    if (rule.factors[f].kind == FactorKind::kReduction) sharding::append(out, axes[f]);
  }
  return out;
}

/// Drops what cannot be computed: an axis in two factors, minor factors behind unfilled major ones, uneven
/// parts of factors that must divide, whole factors, and shifts without a known exchange.
void Chooser::normalise(const Problem& p, FactorAxes& axes) {
  Axes used;
  for (size_t f = 0; f < axes.size(); ++f) {
    const sharding::Factor& factor = p.rule.factors[f];
    if (axes[f].empty()) continue;
    bool bad = factor.kind == FactorKind::kReplicate || sharding::overlaps(axes[f], used) ||
               (factor.even && factor.size % sharding::product(axes[f]) != 0) ||
               (exchanges(factor) &&
                !neighbourSupported(m_, p.op, p.rule, static_cast<int>(f), sharding::product(axes[f])));
    if (bad) axes[f].clear();
    used.append(axes[f].begin(), axes[f].end());
  }
  bool again = true;
  while (again) {
    again = false;
    auto visit = [&](const sharding::TensorFactors& map) {
      for (const sharding::DimFactors& dim : map) {
        bool filled = true;
        for (int16_t f : dim) {
          if (!filled && !axes[f].empty()) {
            axes[f].clear();
            again = true;
          }
          filled &= sharding::product(axes[f]) == p.rule.factors[f].size;
        }
      }
    };
    for (const TensorView& t : p.operands) visit(*t.map);
    for (const TensorView& t : p.results) visit(*t.map);
  }
}

/// Adds what another tensor wishes where it fits behind what is chosen already. True where something was
/// added.
bool Chooser::merge(const Problem& p, FactorAxes& axes, const FactorAxes& more) {
  bool changed = false;
  for (size_t f = 0; f < axes.size(); ++f) {
    if (more[f].empty() || !sharding::isPrefix(axes[f], more[f])) continue;
    Axes rest = sharding::dropPrefix(more[f], axes[f]);
    Axes used;
    for (const Axes& a : axes) used.append(a.begin(), a.end());
    Axes add = sharding::prefixWithout(rest, used);
    if (add.empty()) continue;
    sharding::append(axes[f], add);
    changed = true;
  }
  return changed;
}

double Chooser::operandCost(const TensorView& t, const Layout& need) {
  auto move = [&](const Layout& from, const Layout& to) {
    return from == to ? 0 : planner_.plan(t.sizes, t.element_bits, from, to).cost;
  };
  double cost = move(t.layout, need);
  if (!t.source) return cost;
  return std::min(move(*t.source, need), cost + move(*t.source, t.layout));
}

double Chooser::cost(const Problem& p, const FactorAxes& axes) {
  double total = 0;
  double memory = 0;
  for (const TensorView& t : p.operands) {
    Layout need = layoutFor(p.rule, *t.map, axes);
    memory += elementsHeld(t.sizes, need) * t.element_bits / 8;
    if (!t.free) total += operandCost(t, need);
  }
  Axes partial = partialAxes(p.rule, axes);
  for (const TensorView& t : p.results) {
    Layout made = layoutFor(p.rule, *t.map, axes);
    made.unreduced = partial;
    memory += elementsHeld(t.sizes, made) * t.element_bits / 8;
    if (t.free || made == t.layout) continue;
    total += planner_.plan(t.sizes, t.element_bits, made, t.layout).cost;
  }
  total += memory * kPerMemoryByte;
  for (size_t f = 0; f < axes.size(); ++f) {
    if (exchanges(p.rule.factors[f]) && !axes[f].empty()) {
      total += neighbourBytes(m_, p.op, p.rule, static_cast<int>(f), axes);
      if (m_.op(p.op).opcode == Opcode::sort)
        total += kPerCollective * static_cast<double>(sortRounds(sharding::product(axes[f])).size() * p.operands.size());
    }
  }
  if (p.heavy) total += flops(p, axes) * kPerFlop;
  return total;
}

/// Multiplications and additions of a contraction on a device.
double Chooser::flops(const Problem& p, const FactorAxes& axes) const {
  double n = 2;
  if (m_.op(p.op).opcode == Opcode::convolution) {
    const TensorView &kernel = p.operands[1], &out = p.results[0];
    const Layout in = layoutFor(p.rule, *kernel.map, axes);
    const int64_t features = m_.getInt(p.op, hlo::AttrKey::kernel_output_feature_dimension);
    n *= elementsHeld(out.sizes, layoutFor(p.rule, *out.map, axes)) * elementsHeld(kernel.sizes, in);
    return n / static_cast<double>(std::max<int64_t>(1, sharding::shardSize(kernel.sizes[features], sharding::product(in.dims[features]))));
  }
  for (size_t f = 0; f < axes.size(); ++f)
    n *= static_cast<double>(sharding::shardSize(p.rule.factors[f].size, sharding::product(axes[f])));
  return n;
}

double Chooser::wireBytes(const Problem& p, const FactorAxes& axes) {
  double total = 0;
  auto move = [&](const TensorView& t, const Layout& from, const Layout& to) {
    if (from != to) total += static_cast<double>(planner_.plan(t.sizes, t.element_bits, from, to).wire_bytes);
  };
  for (const TensorView& t : p.operands) {
    if (!t.free) move(t, t.layout, layoutFor(p.rule, *t.map, axes));
  }
  for (const TensorView& t : p.results) {
    Layout made = layoutFor(p.rule, *t.map, axes);
    made.unreduced = partialAxes(p.rule, axes);
    if (!t.free) move(t, made, t.layout);
  }
  for (size_t f = 0; f < axes.size(); ++f) {
    if (exchanges(p.rule.factors[f]) && !axes[f].empty())
      total += neighbourBytes(m_, p.op, p.rule, static_cast<int>(f), axes);
  }
  return total;
}

Choice Chooser::choose(hlo::OpId op, const OpRule& rule, llvm::ArrayRef<TensorView> operands,
                       llvm::ArrayRef<TensorView> results) {
  Opcode opcode = m_.op(op).opcode;
  Problem p{op, rule, operands, results,
            opcode == Opcode::dot_general || opcode == Opcode::dot || opcode == Opcode::convolution};
  llvm::SmallVector<FactorAxes, 6> wishes;
  llvm::SmallVector<Axes, 6> lost;  // by wish: axes of the tensor that the factors cannot take
  bool any = false, agree = true;
  auto wish = [&](const TensorView& t, const Layout& plain) {
    FactorAxes axes;
    llvm::SmallVector<hlo::DimSharding, 4> dims(plain.dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      dims[d].axes = plain.dims[d];
      any |= !plain.dims[d].empty();
    }
    agree &= project(rule, *t.map, dims, axes);
    normalise(p, axes);
    Axes kept, rest;
    for (const Axes& a : axes) sharding::append(kept, a);
    for (const Axes& a : plain.dims) {
      if (!sharding::overlaps(a, kept)) sharding::append(rest, a);
    }
    lost.push_back(std::move(rest));
    wishes.push_back(std::move(axes));
  };
  bool detour = false;
  for (const TensorView& t : results) {
    if (!t.free) wish(t, t.layout);
  }
  for (const TensorView& t : operands) {
    if (t.free) continue;
    wish(t, t.layout);
    detour |= t.source.has_value();
    if (t.source) wish(t, *t.source);
  }
  FactorAxes none(rule.factors.size());
  if (!any) return {none, 0, 0};

  FactorAxes all = none;
  for (const FactorAxes& w : wishes) merge(p, all, w);
  normalise(p, all);
  // The usual case: everybody agrees and nothing moves.
  if (agree && !detour && partialAxes(rule, all).empty()) {
    bool same = true;
    for (size_t f = 0; f < all.size(); ++f)
      same &= all[f].empty() || rule.factors[f].kind != FactorKind::kNeighbour;
    for (const TensorView& t : operands) same &= t.free || layoutFor(rule, *t.map, all) == t.layout;
    for (const TensorView& t : results) same &= t.free || layoutFor(rule, *t.map, all) == t.layout;
    if (same && !collect) return {all, 0, 0};
  }
  llvm::SmallVector<FactorAxes, 12> candidates = {all};
  auto consider = [&](FactorAxes axes) {
    normalise(p, axes);
    if (!llvm::is_contained(candidates, axes)) candidates.push_back(std::move(axes));
  };
  for (size_t lead = 0; lead < wishes.size(); ++lead) {
    FactorAxes axes = wishes[lead];
    consider(axes);
    for (size_t i = 0; i < wishes.size(); ++i) merge(p, axes, wishes[i]);
    consider(axes);
    if (wishes.size() < 3) continue;
    axes = wishes[lead];
    for (size_t i = wishes.size(); i-- > 0;) merge(p, axes, wishes[i]);
    consider(axes);
  }
  for (size_t i = 0; i < wishes.size(); ++i) {
    if (lost[i].empty()) continue;
    // A dimension that must be whole gives its axes to one that need not be.
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      const sharding::Factor& factor = rule.factors[f];
      if (factor.kind != FactorKind::kPass || factor.size % sharding::product(lost[i]) != 0) continue;
      FactorAxes axes = wishes[i];
      sharding::append(axes[f], lost[i]);
      consider(axes);
    }
  }
  consider(none);
  Choice best;
  bool first = true;
  for (const FactorAxes& axes : candidates) {
    double c = cost(p, axes);
    if (collect) collect->push_back({axes, c, wireBytes(p, axes)});
    if (!first && c >= best.cost) continue;
    best = {axes, c, 0};
    first = false;
  }
  return best;
}

}  // namespace tpu::partition
