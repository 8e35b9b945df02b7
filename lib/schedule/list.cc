#include "list.h"

#include <algorithm>
#include <set>

namespace tpu::schedule {
namespace {

/// Slots and units taken, cycle by cycle from the current one.
class Reservations {
 public:
  explicit Reservations(const Machine& machine) : machine_(machine), unit_free_(machine.numUnits(), 0) {}

  bool fits(const isa::Instruction& insn, int cycle) const {
    const isa::Slot slot = isa::info(insn.op).slot;
    const int unit = machine_.unit(insn);
    if (unit >= 0 && unit_free_[unit] > cycle) return false;
    int taken = used_[static_cast<int>(slot)];
    for (int until : busy_[static_cast<int>(slot)]) taken += until > cycle;
    return taken < machine_.slots(slot);
  }
  void take(const isa::Instruction& insn, int cycle) {
    const int slot = static_cast<int>(isa::info(insn.op).slot);
    const int unit = machine_.unit(insn);
    if (unit >= 0) unit_free_[unit] = cycle + machine_.interval(insn.op);
    const int cycles = machine_.slotCycles(insn);
    if (cycles > 1)
      busy_[slot].push_back(cycle + cycles);
    else
      ++used_[slot];
  }
  void nextCycle(int cycle) {
    used_.fill(0);
    for (auto& b : busy_)
      b.erase(std::remove_if(b.begin(), b.end(), [&](int until) { return until <= cycle; }), b.end());
  }

 private:
  const Machine& machine_;
  std::array<int, isa::kNumSlots> used_{};
  std::array<llvm::SmallVector<int, 4>, isa::kNumSlots> busy_;
  std::vector<int> unit_free_;
};

std::vector<int> heights(const DepGraph& graph, int n, bool* acyclic) {
  std::vector<int> height(n, 0), waiting(n, 0), order;
  for (int i = 0; i < n; ++i) waiting[i] = static_cast<int>(graph.succ[i].size());
  for (int i = n; i-- > 0;)
    if (waiting[i] == 0) order.push_back(i);
  for (size_t k = 0; k < order.size(); ++k) {
    const int i = order[k];
    for (int32_t e : graph.pred[i]) {
      const Edge& edge = graph.edges[e];
      height[edge.from] = std::max(height[edge.from], height[i] + edge.latency);
      if (--waiting[edge.from] == 0) order.push_back(edge.from);
    }
  }
  *acyclic = static_cast<int>(order.size()) == n;
  return height;
}

// Where a branch stands so that its delay bundles hold the end of the block.
void placeTerminator(const Block& block, const DepGraph& graph, const Machine& machine,
                     const std::vector<int>& bundle_of, Bundles* out) {
  const int n = static_cast<int>(block.code.size());
  const bool halts = block.term.insn.op == isa::Opcode::halt;
  const int delay = halts ? 0 : machine.delay();
  int at = std::max(0, static_cast<int>(out->size()) - 1 - delay);
  for (int32_t e : graph.pred[n]) at = std::max(at, bundle_of[graph.edges[e].from] + graph.edges[e].must);
  auto miscTaken = [&](int b) {
    int taken = 0;
    for (const Insn& i : (*out)[b]) taken += isa::info(i.insn.op).slot == isa::Slot::kMisc;
    return taken >= machine.slots(isa::Slot::kMisc);
  };
  while (at < static_cast<int>(out->size()) && miscTaken(at)) ++at;
  out->resize(std::max<size_t>(out->size(), at + 1 + delay));
  (*out)[at].push_back(block.term);
}

}  // namespace

bool listSchedule(const Block& block, const Machine& machine, Bundles* out) {
  out->clear();
  const int n = static_cast<int>(block.code.size());
  DepGraph graph;
  buildDeps(block.code, block.has_term ? &block.term : nullptr, machine, false, &graph);
  bool acyclic = true;
  const std::vector<int> height = heights(graph, n + (block.has_term ? 1 : 0), &acyclic);
  if (!acyclic) return false;
  std::vector<int> earliest(n, 0), waiting(n, 0), bundle_of(n, -1);
  for (int i = 0; i < n; ++i) waiting[i] = static_cast<int>(graph.pred[i].size());
  auto before = [&](int a, int b) { return height[a] != height[b] ? height[a] > height[b] : a < b; };
  std::set<int, decltype(before)> ready(before);
  for (int i = 0; i < n; ++i)
    if (waiting[i] == 0) ready.insert(i);
  Reservations taken(machine);
  int done = 0;
  for (int cycle = 0; done < n; ++cycle) {
    taken.nextCycle(cycle);
    llvm::SmallVector<Insn, 4> bundle;
    // Placing one may make another ready in the same cycle (order only, no latency).
    for (auto it = ready.begin(); it != ready.end();) {
      const int i = *it;
      if (earliest[i] > cycle || !taken.fits(block.code[i].insn, cycle)) {
        ++it;
        continue;
      }
      taken.take(block.code[i].insn, cycle);
      bundle_of[i] = static_cast<int>(out->size());
      bundle.push_back(block.code[i]);
      ++done;
      ready.erase(it);
      for (int32_t e : graph.succ[i]) {
        const Edge& edge = graph.edges[e];
        if (edge.to >= n) continue;
        earliest[edge.to] = std::max(earliest[edge.to], cycle + edge.latency);
        if (--waiting[edge.to] == 0) ready.insert(edge.to);
      }
      it = ready.begin();
    }
    if (!bundle.empty()) out->push_back(std::move(bundle));
  }
  if (block.has_term) placeTerminator(block, graph, machine, bundle_of, out);
  return true;
}

void layOutFixed(const Block& block, const Machine& machine, Bundles* out) {
  out->assign(block.length, {});
  for (size_t i = 0; i < block.code.size(); ++i) (*out)[block.cycle[i]].push_back(block.code[i]);
  if (block.has_term) (*out)[block.term_cycle].push_back(block.term);
}

}  // namespace tpu::schedule
