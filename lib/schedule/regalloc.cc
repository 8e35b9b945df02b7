#include "regalloc.h"

#include <algorithm>
#include <limits>

#include "liveness.h"
#include "spill.h"

namespace tpu::schedule {
namespace {

using isa::RegClass;

constexpr int kUncoloured = -1;
constexpr double kDear = 1e30;  // only where nothing else is left
constexpr double kNever = std::numeric_limits<double>::infinity();

struct Colouring {
  std::vector<int> colour;
  std::vector<int32_t> spilled;
};

// Colours registers in the order of their first mention, each with the free colour that was used longest ago:
// false dependences between neighbours would tie the list scheduler's hands.
bool colourInOrder(const RegIndex& index, const Interference& graph, const Machine& machine, Colouring* out) {
  std::vector<int32_t> order;
  for (int32_t r = 0; r < index.size(); ++r)
    if (graph.first[r] >= 0) order.push_back(r);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return graph.first[a] < graph.first[b]; });
  out->colour.assign(index.size(), kUncoloured);
  std::vector<int64_t> used_at[kNumClasses];
  for (int c = 0; c < kNumClasses; ++c) used_at[c].assign(machine.registers(static_cast<RegClass>(c)), -1);
  int64_t now = 0;
  std::vector<char> taken;
  for (int32_t r : order) {
    const int c = classIndex(index.classOf(r));
    taken.assign(used_at[c].size(), 0);
    for (int32_t n : graph.neighbours[r])
      if (out->colour[n] >= 0) taken[out->colour[n]] = 1;
    int best = -1;
    for (int k = 0; k < static_cast<int>(taken.size()); ++k)
      if (!taken[k] && (best < 0 || used_at[c][k] < used_at[c][best])) best = k;
    if (best < 0) return false;
    out->colour[r] = best;
    used_at[c][best] = now++;
  }
  return true;
}

// Of the free colours, the one whose registers are mentioned farthest away.
int farthest(const std::vector<char>& taken, const std::vector<std::vector<int32_t>>& mentions,
             int32_t here) {
  int best = kUncoloured;
  int32_t distance = -1;
  for (size_t k = 0; k < taken.size(); ++k) {
    if (taken[k]) continue;
    int32_t nearest = std::numeric_limits<int32_t>::max();
    for (int32_t there : mentions[k]) nearest = std::min(nearest, std::abs(there - here));
    if (nearest > distance) best = static_cast<int>(k), distance = nearest;
  }
  return best;
}

// Chaitin and Briggs: registers with few neighbours leave first; where none has, the cheapest per neighbour
// leaves and is spilled if it finds no colour when it comes back. With `spread`, colours are used again as
// far apart as possible, else the first free one is taken, which finds one for more registers.
void colourBySimplifying(const RegIndex& index, const Interference& graph, const Machine& machine,
                         const std::vector<double>& cost, bool spread, Colouring* out) {
  const int32_t n = index.size();
  std::vector<int> degree(n), limit(n);
  std::vector<char> gone(n, 0);
  std::vector<int32_t> stack, low;
  int32_t left = 0;
  for (int32_t r = 0; r < n; ++r) {
    degree[r] = static_cast<int>(graph.neighbours[r].size());
    limit[r] = machine.registers(index.classOf(r));
    if (graph.first[r] < 0) {
      gone[r] = 1;
      continue;
    }
    ++left;
    if (degree[r] < limit[r]) low.push_back(r);
  }
  auto leave = [&](int32_t r) {
    gone[r] = 1;
    --left;
    stack.push_back(r);
    for (int32_t m : graph.neighbours[r])
      if (!gone[m] && degree[m]-- == limit[m]) low.push_back(m);
  };
  while (left > 0) {
    while (!low.empty()) {
      const int32_t r = low.back();
      low.pop_back();
      if (!gone[r]) leave(r);
    }
    if (left == 0) break;
    int32_t pick = -1;
    double best = 0;
    for (int32_t r = 0; r < n; ++r) {
      if (gone[r]) continue;
      const double price = cost[r] / std::max(degree[r], 1);
      if (pick < 0 || price < best) pick = r, best = price;
    }
    leave(pick);
  }
  out->colour.assign(n, kUncoloured);
  out->spilled.clear();
  std::vector<char> taken;
  std::vector<std::vector<int32_t>> mentions[kNumClasses];
  for (int c = 0; c < kNumClasses; ++c) mentions[c].resize(machine.registers(static_cast<RegClass>(c)));
  for (size_t k = stack.size(); k-- > 0;) {
    const int32_t r = stack[k];
    taken.assign(limit[r], 0);
    for (int32_t m : graph.neighbours[r])
      if (out->colour[m] >= 0) taken[out->colour[m]] = 1;
    auto& of_class = mentions[classIndex(index.classOf(r))];
    int colour = static_cast<int>(std::find(taken.begin(), taken.end(), 0) - taken.begin());
    if (colour == limit[r]) {
      out->spilled.push_back(r);
      continue;
    }
    if (spread) colour = farthest(taken, of_class, graph.first[r]);
    out->colour[r] = colour;
    of_class[colour].push_back(graph.first[r]);
  }
}

void apply(Func& func, const RegIndex& index, const std::vector<int>& colour) {
  auto physical = [&](RegClass cls, int32_t& reg) { reg = std::max(colour[index.of(cls, reg)], 0); };
  auto rename = [&](Insn& i) {
    for (int k = 0; k < i.insn.num_operands; ++k) {
      isa::Operand& o = i.insn.operands[k];
      if (!o.virt) continue;
      if (o.kind == isa::Operand::kReg)
        physical(o.cls, o.reg);
      else if (o.kind == isa::Operand::kMem)
        physical(RegClass::kScalar, o.reg);
      o.virt = false;
    }
    if (i.insn.pred_virt) physical(RegClass::kPred, i.insn.pred);
    i.insn.pred_virt = false;
  };
  for (Block& b : func.blocks) {
    for (Insn& i : b.code) rename(i);
    if (b.has_term) rename(b.term);
  }
}

/// Registers that fixed blocks mention: their code has no room for spills.
std::vector<char> mentionedByFixed(const Func& func, const RegIndex& index) {
  std::vector<char> out(index.size(), 0);
  for (const Block& b : func.blocks) {
    if (!b.fixed) continue;
    auto mark = [&](const Insn& i) {
      forEachVirtual(i, index, [&](int32_t r, bool, bool, bool) { out[r] = 1; });
    };
    for (const Insn& i : b.code) mark(i);
    if (b.has_term) mark(b.term);
  }
  return out;
}

/// With every register coloured: physical registers, and spilled vectors inside VMEM.
llvm::Error finish(Func& func, const RegIndex& index, const Colouring& colouring, int64_t spills_start) {
  if (func.vmem_spill_end > func.vmem_spill_limit) shareSpillSlots(func, spills_start);
  if (func.vmem_spill_end > func.vmem_spill_limit)
    return fail(Code::kVmemFull, "",
                "kernel " + func.name + " has no VMEM left for spilled vector registers",
                ExitStatus::kDoesNotFit);
  apply(func, index, colouring.colour);
  return llvm::Error::success();
}

}  // namespace

llvm::Error allocateRegisters(Func& func, Context& ctx, const Machine& machine, AllocStats* stats,
                              bool* unfix) {
  *unfix = false;
  Spiller spiller(func, ctx);
  const int64_t spills_start = func.vmem_spill_end;
  for (int round = 0; round < 64; ++round) {
    const RegIndex index(func);
    Interference graph = interference(func, index);
    Colouring colouring;
    std::vector<int32_t> forced;
    const std::vector<char> fixed = mentionedByFixed(func, index);
    for (int32_t r = 0; r < index.size(); ++r)
      if (graph.across_call[r]) forced.push_back(r);
    if (forced.empty()) {
      if (colourInOrder(index, graph, machine, &colouring)) {
        stats->rounds = round;
        return finish(func, index, colouring, spills_start);
      }
      std::vector<double> cost = graph.cost;
      for (int32_t r = 0; r < index.size(); ++r) {
        if (fixed[r]) cost[r] += kDear;
        if (spiller.isTemporary(index.classOf(r), r - index.base[classIndex(index.classOf(r))]))
          cost[r] = kNever;
      }
      colourBySimplifying(index, graph, machine, cost, true, &colouring);
      if (!colouring.spilled.empty()) colourBySimplifying(index, graph, machine, cost, false, &colouring);
      if (colouring.spilled.empty()) {
        stats->rounds = round;
        return finish(func, index, colouring, spills_start);
      }
      forced = colouring.spilled;
    }
    if (std::any_of(forced.begin(), forced.end(), [&](int32_t r) { return fixed[r]; })) {
      *unfix = true;
      return llvm::Error::success();
    }
    std::sort(forced.begin(), forced.end());
    for (int32_t r : forced) ++stats->spilled[classIndex(index.classOf(r))];
    spiller.spill(forced, index);
  }
  return fail(Code::kRegistersFull, "", "registers of " + func.name + " cannot be assigned");
}

}  // namespace tpu::schedule
