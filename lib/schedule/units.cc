// A virtual unit is a queue of its own: its pops take its pushes' results in order. Two virtual units may
// share a physical one where, in program order, their pushes and pops interleave like one queue, and where
// neither disturbs the other's state (staged and latched weights, the transpose buffer). Units of matrix code
// keep state over loops, so they get a physical unit each while there are enough; cross-lane groups are
// short, and are dealt out by load.
#include "units.h"

#include <algorithm>
#include <deque>

namespace tpu::schedule {
namespace {

using isa::Fifo;

struct Event {
  int virt;
  int entries;  // > 0: pushes, -1: pop, 0: state only
  Fifo fifo;
  int block;
  int64_t weight;  // cycles, loops counted
};
struct UnitUse {
  std::vector<Event> events;         // of all virtual units, in program order
  std::vector<int64_t> weight;       // by virtual unit
  std::vector<int64_t> first, last;  // events
};

UnitUse collect(const Func& func, const Machine& machine, bool xlu) {
  UnitUse use;
  for (size_t bi = 0; bi < func.blocks.size(); ++bi) {
    const Block& b = func.blocks[bi];
    int64_t frequency = 1;
    for (int d = 0; d < std::min(b.depth, 6); ++d) frequency *= 10;
    for (const Insn& i : b.code) {
      const isa::InstructionInfo& row = isa::info(i.insn.op);
      for (int k = 0; k < i.insn.num_operands; ++k) {
        const isa::Operand& o = i.insn.operands[k];
        if (o.kind != isa::Operand::kUnit || !o.virt || (row.operands[k] == isa::OperandKind::Xlu) != xlu)
          continue;
        const isa::FifoEffect e = isa::fifoEffect(i.insn, machine.chip().mxu_side);
        Event event{o.reg, 0, Fifo::kNone, static_cast<int>(bi), frequency * machine.interval(i.insn.op)};
        if (e.push != Fifo::kNone) event.entries = e.entries, event.fifo = e.push;
        if (e.pop != Fifo::kNone) event.entries = -1, event.fifo = e.pop;
        if (o.reg >= static_cast<int>(use.weight.size())) {
          use.weight.resize(o.reg + 1, 0);
          use.first.resize(o.reg + 1, -1);
          use.last.resize(o.reg + 1, -1);
        }
        use.weight[o.reg] += event.weight;
        if (use.first[o.reg] < 0) use.first[o.reg] = static_cast<int64_t>(use.events.size());
        use.last[o.reg] = static_cast<int64_t>(use.events.size());
        use.events.push_back(event);
      }
    }
  }
  return use;
}

// Whether the virtual units of `sharing` may live on one physical unit: walking the program, every pop must
// find its own unit's entry in front, and the state of one must not be in use while another works.
bool compatible(const UnitUse& use, const std::vector<char>& sharing) {
  std::deque<int> queue[6];
  for (size_t k = 0; k < use.events.size(); ++k) {
    const Event& e = use.events[k];
    if (!sharing[e.virt]) continue;
    std::deque<int>& q = queue[static_cast<int>(e.fifo)];
    if (e.entries == 0) {
      for (size_t other = 0; other < sharing.size(); ++other)
        if (sharing[other] && static_cast<int>(other) != e.virt &&
            use.first[other] < static_cast<int64_t>(k) && use.last[other] > static_cast<int64_t>(k))
          return false;
    }
    for (int n = 0; n < e.entries; ++n) q.push_back(e.virt);
    if (e.entries >= 0) continue;
    if (q.empty()) continue;  // pushed in another iteration: units with such loops never share (see below)
    if (q.front() != e.virt) return false;
    q.pop_front();
  }
  return true;
}

llvm::Error assign(Func& func, const Machine& machine, bool xlu, int physical) {
  const UnitUse use = collect(func, machine, xlu);
  const int n = static_cast<int>(use.weight.size());
  std::vector<int> of(n, 0);
  std::vector<int> order;
  for (int v = 0; v < n; ++v)
    if (use.first[v] >= 0) order.push_back(v);
  std::vector<int64_t> load(physical, 0);
  std::vector<std::vector<char>> members(physical, std::vector<char>(n, 0));
  for (int v : order) {
    std::vector<int> choice(physical);
    for (int p = 0; p < physical; ++p) choice[p] = p;
    std::stable_sort(choice.begin(), choice.end(), [&](int a, int b) { return load[a] < load[b]; });
    int found = -1;
    for (int p : choice) {
      std::vector<char> sharing = members[p];
      sharing[v] = 1;
      if (load[p] == 0 || compatible(use, sharing)) {
        found = p;
        break;
      }
    }
    if (found < 0)
      return fail(Code::kUnitsInterleaved, "",
                  "in " + func.name + ", virtual " + (xlu ? "xlu" : "mxu") + std::to_string(v) +
                      " cannot share any of the chip's " + std::to_string(physical) + " units");
    of[v] = found;
    members[found][v] = 1;
    load[found] += std::max<int64_t>(use.weight[v], 1);
  }
  for (Block& b : func.blocks)
    for (Insn& i : b.code) {
      const isa::InstructionInfo& row = isa::info(i.insn.op);
      for (int k = 0; k < i.insn.num_operands; ++k) {
        isa::Operand& o = i.insn.operands[k];
        if (o.kind != isa::Operand::kUnit || !o.virt || (row.operands[k] == isa::OperandKind::Xlu) != xlu)
          continue;
        o.reg = of[o.reg];
        o.virt = false;
      }
    }
  return llvm::Error::success();
}

}  // namespace

llvm::Error assignUnits(Func& func, const Machine& machine) {
  if (llvm::Error e = assign(func, machine, false, machine.chip().mxus)) return e;
  return assign(func, machine, true, machine.chip().xlus);
}

}  // namespace tpu::schedule
