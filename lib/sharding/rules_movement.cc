// Rules of data movement: broadcast, reshape, transpose, slice, pad, concatenate, reverse, dynamic slices.
#include <numeric>

#include "rules.h"
#include "tpu/hlo/analysis.h"

namespace tpu::sharding {

using hlo::AttrKey;

void broadcastRule(const RuleInput& in, OpRule& rule) {
  const hlo::Type& from = in.operand(0);
  const hlo::Type& to = in.result(0);
  llvm::SmallVector<int64_t, 6> dims(in.m.getInts(in.id, AttrKey::broadcast_dimensions));
  if (in.op.opcode == hlo::Opcode::broadcast) {
    dims.clear();
    for (int64_t d = 0; d < from.rank(); ++d) dims.push_back(to.rank() - from.rank() + d);
  }
  for (int64_t d = 0; d < to.rank(); ++d) rule.results[0][d].push_back(rule.addFactor(to.dims[d]));
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (from.dims[d] == to.dims[dims[d]]) rule.operands[0][d] = rule.results[0][dims[d]];
  }
}

void transposeRule(const RuleInput& in, OpRule& rule) {
  llvm::ArrayRef<int64_t> perm = in.m.getInts(in.id, AttrKey::permutation);
  for (size_t d = 0; d < perm.size(); ++d) {
    int f = rule.addFactor(in.result(0).dims[d]);
    rule.results[0][d].push_back(f);
    rule.operands[0][perm[d]].push_back(f);
  }
}

void reshapeRule(const RuleInput& in, OpRule& rule) {
  const hlo::Dims& a = in.operand(0).dims;
  const hlo::Dims& b = in.result(0).dims;
  if (in.op.opcode == hlo::Opcode::bitcast_convert) {
    for (size_t d = 0; d < a.size() && d < b.size() && a[d] == b[d]; ++d) {
      int f = rule.addFactor(a[d]);
      rule.operands[0][d].push_back(f);
      rule.results[0][d].push_back(f);
    }
    return;
  }
  // Walk both shapes: equal sizes are one factor, a multiple is split, anything else keeps its common major
  // factor and is skipped up to where the products meet again.
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i] == 1) {
      ++i;
      continue;
    }
    if (b[j] == 1) {
      ++j;
      continue;
    }
    int64_t left = a[i], right = b[j];
    if (left == 0 || right == 0) return;
    if (left == right) {
      int f = rule.addFactor(left);
      rule.operands[0][i++].push_back(f);
      rule.results[0][j++].push_back(f);
      continue;
    }
    bool open = true;  // still on a chain of exact splits
    while (true) {
      int64_t g = std::gcd(left, right);
      if (open && g > 1) {
        int f = rule.addFactor(g, FactorKind::kPass, true);
        rule.operands[0][i].push_back(f);
        rule.results[0][j].push_back(f);
        left /= g;
        right /= g;
        open = left == 1 || right == 1;
      } else {
        open = false;
      }
      if (left == right) break;
      if (!open) {  // skip: grow the smaller side
        if (left < right) {
          if (++i >= a.size()) return;
          left *= a[i];
        } else {
          if (++j >= b.size()) return;
          right *= b[j];
        }
        continue;
      }
      if (left == 1) {
        do {
          if (++i >= a.size()) return;
        } while (a[i] == 1);
        left = a[i];
      } else {
        do {
          if (++j >= b.size()) return;
        } while (b[j] == 1);
        right = b[j];
      }
    }
    ++i;
    ++j;
  }
}

namespace {

/// A factor that joins a dim of operand and result whose borders do not line up.
void joinNeighbour(OpRule& rule, int64_t size, DimFactors& a, DimFactors& b) {
  int f = rule.addFactor(size, FactorKind::kNeighbour);
  a.push_back(f);
  b.push_back(f);
}

}  // namespace

void sliceRule(const RuleInput& in, OpRule& rule) {
  const hlo::Type& from = in.operand(0);
  const hlo::Type& to = in.result(0);
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (from.dims[d] == to.dims[d]) {
      int f = rule.addFactor(from.dims[d]);
      rule.operands[0][d].push_back(f);
      rule.results[0][d].push_back(f);
    } else if (in.variant == 1) {
      rule.operands[0][d].push_back(rule.addFactor(from.dims[d], FactorKind::kReduction));
    } else if (to.dims[d] > 1) {
      joinNeighbour(rule, to.dims[d], rule.operands[0][d], rule.results[0][d]);
    }
  }
}

void padRule(const RuleInput& in, OpRule& rule) {
  const hlo::Type& from = in.operand(0);
  const hlo::Type& to = in.result(0);
  auto low = in.m.getInts(in.id, AttrKey::edge_padding_low),
       high = in.m.getInts(in.id, AttrKey::edge_padding_high);
  auto interior = in.m.getInts(in.id, AttrKey::interior_padding);
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (low[d] == 0 && high[d] == 0 && (interior.empty() || interior[d] == 0)) {
      int f = rule.addFactor(from.dims[d]);
      rule.operands[0][d].push_back(f);
      rule.results[0][d].push_back(f);
    } else if (from.dims[d] > 1 && to.dims[d] > 1) {
      joinNeighbour(rule, to.dims[d], rule.operands[0][d], rule.results[0][d]);
    }
  }
}

void concatenateRule(const RuleInput& in, OpRule& rule) {
  int64_t dim = in.m.getInt(in.id, AttrKey::dimension);
  const hlo::Type& to = in.result(0);
  for (int64_t d = 0; d < to.rank(); ++d) {
    int f = rule.addFactor(to.dims[d], d == dim ? FactorKind::kNeighbour : FactorKind::kPass);
    rule.results[0][d].push_back(f);
    for (TensorFactors& t : rule.operands) t[d].push_back(f);
  }
}

void reverseRule(const RuleInput& in, OpRule& rule) {
  llvm::ArrayRef<int64_t> dims = in.m.getInts(in.id, AttrKey::dimensions);
  const hlo::Type& to = in.result(0);
  for (int64_t d = 0; d < to.rank(); ++d) {
    bool reversed = llvm::is_contained(dims, d);
    int f = rule.addFactor(to.dims[d], reversed ? FactorKind::kNeighbour : FactorKind::kPass);
    rule.results[0][d].push_back(f);
    rule.operands[0][d].push_back(f);
  }
}

void dynamicSliceRule(const RuleInput& in, OpRule& rule) {
  const hlo::Type& from = in.operand(0);
  const hlo::Type& to = in.result(0);
  for (int64_t d = 0; d < from.rank(); ++d) {
    // The box of a sharded dimension comes from whoever has its elements.
    bool whole = from.dims[d] == to.dims[d];
    int f = rule.addFactor(from.dims[d], whole ? FactorKind::kPass : FactorKind::kReduction);
    rule.operands[0][d].push_back(f);
    if (whole) rule.results[0][d].push_back(f);
  }
}

void dynamicUpdateSliceRule(const RuleInput& in, OpRule& rule) {
  const hlo::Type& from = in.operand(0);
  const hlo::Type& update = in.operand(1);
  for (int64_t d = 0; d < from.rank(); ++d) {
    // A dim that is updated in part is shared by operand and result only: each device writes what falls into
    // its range. At a known place the update may be sharded as well: it is shifted to where it belongs.
    bool whole = update.dims[d] == from.dims[d], shifted = !whole && in.variant == 1;
    if (shifted && (update.dims[d] < 2 || !hlo::constantInt(in.m, in.op.operands[2 + d]))) continue;
    int f = rule.addFactor(from.dims[d], shifted ? FactorKind::kNeighbour : FactorKind::kPass);
    rule.operands[0][d].push_back(f);
    rule.results[0][d].push_back(f);
    if (whole || shifted) rule.operands[1][d].push_back(f);
  }
}

}  // namespace tpu::sharding
