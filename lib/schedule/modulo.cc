// Modulo scheduling with windows: every instruction has an earliest and a latest cycle that all edges allow.
// The one with the least slack is placed first, and each placement narrows the windows of the others, so that
// only a lack of slots or units can fail, never an edge. An II that fails gives way to the next one.
#include "modulo.h"

#include <algorithm>
#include <tuple>

#include "deps.h"

namespace tpu::schedule {
namespace {

/// Slots and units of one iteration's cycles, modulo II.
class Table {
 public:
  Table(const Machine& machine, int ii)
      : machine_(machine), ii_(ii), slots_(isa::kNumSlots * ii, 0), units_(machine.numUnits() * ii, 0) {}

  bool fits(const isa::Instruction& i, int time) const {
    const int slot = static_cast<int>(isa::info(i.op).slot), unit = machine_.unit(i);
    const int cycles = machine_.slotCycles(i), interval = machine_.interval(i.op);
    if (cycles > ii_ || (unit >= 0 && interval > ii_)) return false;
    for (int k = 0; k < cycles; ++k)
      if (slots_[at(slot, time + k)] >= machine_.slots(static_cast<isa::Slot>(slot))) return false;
    for (int k = 0; unit >= 0 && k < interval; ++k)
      if (units_[at(unit, time + k)]) return false;
    return true;
  }
  void take(const isa::Instruction& i, int time) {
    const int slot = static_cast<int>(isa::info(i.op).slot), unit = machine_.unit(i);
    for (int k = 0; k < machine_.slotCycles(i); ++k) ++slots_[at(slot, time + k)];
    for (int k = 0; unit >= 0 && k < machine_.interval(i.op); ++k) units_[at(unit, time + k)] = 1;
  }
  void reserve(isa::Slot slot, int time) { ++slots_[at(static_cast<int>(slot), time)]; }

 private:
  int at(int row, int time) const { return row * ii_ + time % ii_; }
  const Machine& machine_;
  int ii_;
  std::vector<int> slots_;
  std::vector<char> units_;
};

class Scheduler {
 public:
  Scheduler(llvm::ArrayRef<Insn> body, const DepGraph& graph, const Machine& machine, int ii)
      : body_(body),
        graph_(graph),
        machine_(machine),
        ii_(ii),
        n_(static_cast<int>(body.size())),
        table_(machine, ii) {}

  bool run(std::vector<int32_t>* time) {
    reserveControl();
    if (!windows()) return false;
    placed_.assign(n_, 0);
    for (int k = 0; k < n_; ++k)
      if (!placeOne()) return false;
    const int32_t first = *std::min_element(earliest_.begin(), earliest_.end());
    // Cycles keep their place relative to the branch: whole iterations may be taken off, nothing else.
    const int32_t shift = first / ii_ * ii_;
    time->clear();
    for (int32_t t : earliest_) time->push_back(t - shift);
    return true;
  }

 private:
  void reserveControl() {
    const int branch = ii_ - 1 - machine_.delay();
    table_.reserve(isa::Slot::kMisc, branch);
    table_.reserve(isa::Slot::kScalar, branch - 1);
    table_.reserve(isa::Slot::kScalar, branch - 2);
  }

  int weight(const Edge& e) const { return e.latency - e.distance * ii_; }

  // Longest paths from the start and to the end. A positive cycle means that a recurrence needs a longer
  // iteration.
  bool windows() {
    earliest_.assign(n_, 0);
    for (int round = 0;; ++round) {
      bool changed = false;
      for (const Edge& e : graph_.edges) {
        const int32_t t = earliest_[e.from] + weight(e);
        if (t > earliest_[e.to]) earliest_[e.to] = t, changed = true;
      }
      if (!changed) break;
      if (round > n_) return false;
    }
    const int32_t end = *std::max_element(earliest_.begin(), earliest_.end()) + std::min(ii_, 64);
    latest_.assign(n_, end);
    for (bool changed = true; changed;) {
      changed = false;
      for (const Edge& e : graph_.edges) {
        const int32_t t = latest_[e.to] - weight(e);
        if (t < latest_[e.from]) latest_[e.from] = t, changed = true;
      }
    }
    return true;
  }

  bool placeOne() {
    // Pointers advance last: wherever the accesses through one have found room, its update fits between two
    // iterations.
    int pick = -1;
    auto before = [&](int a, int b) {
      return std::make_tuple(advancesPointer(a), slack(a), earliest_[a]) <
             std::make_tuple(advancesPointer(b), slack(b), earliest_[b]);
    };
    for (int i = 0; i < n_; ++i)
      if (!placed_[i] && (pick < 0 || before(i, pick))) pick = i;
    const int32_t from = earliest_[pick], to = latest_[pick];
    const int32_t tries = std::min<int32_t>(to - from + 1, ii_);
    const bool down = wantsLate(pick);
    for (int32_t k = 0; k < tries; ++k) {
      const int32_t t = down ? to - k : from + k;
      if (!table_.fits(body_[pick].insn, t)) continue;
      const std::vector<int32_t> earliest = earliest_, latest = latest_;
      if (narrow(pick, t)) {
        table_.take(body_[pick].insn, t);
        placed_[pick] = 1;
        return true;
      }
      earliest_ = earliest;
      latest_ = latest;
    }
    return false;
  }
  int slack(int i) const { return latest_[i] - earliest_[i]; }
  bool advancesPointer(int i) const {
    const isa::Instruction& insn = body_[i].insn;
    return insn.op == isa::Opcode::sadd && insn.operands[0] == insn.operands[1];
  }

  // What only feeds instructions that are placed already comes as late as it may.
  bool wantsLate(int i) const {
    bool feeds = false;
    for (int32_t e : graph_.pred[i])
      if (placed_[graph_.edges[e].from] && graph_.edges[e].distance == 0 && graph_.edges[e].latency > 0)
        return false;
    for (int32_t e : graph_.succ[i]) feeds |= placed_[graph_.edges[e].to] && graph_.edges[e].distance == 0;
    return feeds;
  }

  bool narrow(int i, int32_t t) {
    earliest_[i] = latest_[i] = t;
    llvm::SmallVector<int, 32> work = {i};
    while (!work.empty()) {
      const int x = work.pop_back_val();
      for (int32_t k : graph_.succ[x]) {
        const Edge& e = graph_.edges[k];
        const int32_t bound = earliest_[x] + weight(e);
        if (bound <= earliest_[e.to]) continue;
        if (bound > latest_[e.to]) return false;
        earliest_[e.to] = bound;
        work.push_back(e.to);
      }
      for (int32_t k : graph_.pred[x]) {
        const Edge& e = graph_.edges[k];
        const int32_t bound = latest_[x] - weight(e);
        if (bound >= latest_[e.from]) continue;
        if (bound < earliest_[e.from]) return false;
        latest_[e.from] = bound;
        work.push_back(e.from);
      }
    }
    return true;
  }

  llvm::ArrayRef<Insn> body_;
  const DepGraph& graph_;
  const Machine& machine_;
  int ii_, n_;
  Table table_;
  std::vector<int32_t> earliest_, latest_;
  std::vector<char> placed_;
};

/// The shortest II that slots and units allow; the loop's control included.
int resourceBound(llvm::ArrayRef<Insn> body, const Machine& machine) {
  std::vector<int> slots(isa::kNumSlots, 0), units(machine.numUnits(), 0);
  slots[static_cast<int>(isa::Slot::kScalar)] = 2;
  slots[static_cast<int>(isa::Slot::kMisc)] = 1;
  for (const Insn& i : body) {
    slots[static_cast<int>(isa::info(i.insn.op).slot)] += machine.slotCycles(i.insn);
    if (const int u = machine.unit(i.insn); u >= 0) units[u] += machine.interval(i.insn.op);
  }
  int bound = machine.delay() + 3;
  for (int s = 0; s < isa::kNumSlots; ++s) {
    const int n = machine.slots(static_cast<isa::Slot>(s));
    if (n > 0) bound = std::max(bound, (slots[s] + n - 1) / n);
  }
  for (int u : units) bound = std::max(bound, u);
  return bound;
}

// Registers of the vector class that hold a value at the fullest cycle.
int vectorPressure(llvm::ArrayRef<Insn> body, const ModuloSchedule& s) {
  struct Range {
    int32_t def = -1, last = -1;
    bool carried = false;
  };
  std::vector<std::pair<int32_t, Range>> ranges;  // by register
  auto of = [&](int32_t r) -> Range& {
    for (auto& [reg, range] : ranges)
      if (reg == r) return range;
    return ranges.emplace_back(r, Range{}).second;
  };
  for (size_t i = 0; i < body.size(); ++i)
    isa::forEachRegister(body[i].insn, [&](isa::RegClass cls, int num, bool virt, bool read, bool write) {
      if (cls != isa::RegClass::kVector || !virt) return;
      Range& r = of(num);
      if (read && r.def < 0) r.carried = true;
      if (read) r.last = std::max(r.last, s.time[i]);
      if (write && r.def < 0) r.def = s.time[i];
    });
  std::vector<int> live(s.ii, 0);
  int always = 0;
  for (const auto& [reg, r] : ranges) {
    if (r.carried || r.def < 0 || r.last - r.def >= s.ii) {
      ++always;
      continue;
    }
    for (int32_t t = r.def; t < std::max(r.last, r.def + 1); ++t) ++live[t % s.ii];
  }
  return always + *std::max_element(live.begin(), live.end());
}

}  // namespace

int ModuloSchedule::stages() const {
  return time.empty() ? 0 : *std::max_element(time.begin(), time.end()) / ii + 1;
}

bool moduloSchedule(llvm::ArrayRef<Insn> body, const Machine& machine, int limit, ModuloSchedule* out) {
  DepGraph graph;
  constexpr size_t kMostInstructions = 1500;  // longer bodies have enough to do within one iteration
  if (body.empty() || body.size() > kMostInstructions || !buildDeps(body, nullptr, machine, true, &graph))
    return false;
  int step = 1;
  const int first = resourceBound(body, machine);
  for (int ii = first; ii < limit; ii += step) {
    out->ii = ii;
    if (Scheduler(body, graph, machine, ii).run(&out->time) &&
        vectorPressure(body, *out) <= machine.registers(isa::RegClass::kVector) - 1)
      return true;
    step = std::max(1, (ii - first) / 8);  // patience grows with the distance from the bound
  }
  return false;
}

}  // namespace tpu::schedule
