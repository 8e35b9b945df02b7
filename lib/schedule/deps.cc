#include "deps.h"

#include <algorithm>
#include <map>

#include "address.h"

namespace tpu::schedule {
namespace {

using isa::Fifo;
using isa::Opcode;

struct RegState {
  int def = -1;  // node, iteration in the bit above
  llvm::SmallVector<int, 4> uses;
};

class Builder {
 public:
  Builder(llvm::ArrayRef<Insn> code, const Insn* term, const Machine& machine, bool loop, DepGraph* graph)
      : code_(code),
        term_(term),
        machine_(machine),
        loop_(loop),
        graph_(*graph),
        n_(static_cast<int>(code.size()) + (term ? 1 : 0)) {}

  bool run() {
    graph_.succ.resize(n_);
    graph_.pred.resize(n_);
    const int rounds = loop_ ? 2 : 1;
    for (int round = 0; round < rounds; ++round)
      for (int i = 0; i < n_; ++i) registers(i, round);
    memory();
    for (int round = 0; round < rounds; ++round)
      for (int i = 0; i < static_cast<int>(code_.size()); ++i) matrix(i, round);
    for (int round = 0; round < rounds; ++round) syncs(round);
    const bool balanced = fifos();
    if (term_ && term_->insn.op == Opcode::halt)
      for (int i = 0; i + 1 < n_; ++i) edge(i, n_ - 1, 0, 1, 1);
    index();
    return balanced;
  }

 private:
  const isa::Instruction& insn(int node) const {
    return node < static_cast<int>(code_.size()) ? code_[node].insn : term_->insn;
  }
  void edge(int from, int to, int distance, int latency, int must) {
    if (from == to && distance == 0) return;
    graph_.edges.push_back({from, to, std::max(latency, must), distance, must});
  }
  // Ids of (node, iteration); an edge is kept when it starts in iteration 0.
  int at(int node, int round) const { return node + round * n_; }
  void edgeAt(int from, int to, int latency, int must) {
    if (from < 0 || from >= n_) return;
    edge(from, to % n_, to / n_, latency, must);
  }

  void registers(int node, int round);
  void memory();
  void matrix(int node, int round);
  void syncs(int round);
  bool fifos();
  bool fifo(const std::vector<int>& pushes, const std::vector<int>& pops, const std::vector<int>& both,
            Fifo kind);
  void index();

  llvm::ArrayRef<Insn> code_;
  const Insn* term_;
  const Machine& machine_;
  bool loop_;
  DepGraph& graph_;
  int n_;

  std::map<std::tuple<int, bool, int>, RegState> regs_;
  // Matrix units: last push per staging register, latches, multiplications; cross-lane units: last push.
  struct MxuState {
    llvm::SmallVector<int, 16> staged[2];
    int latch_of[2] = {-1, -1};
    int latch = -1;
    llvm::SmallVector<int, 16> since_latch;  // multiplications with the current weights
    int last_push = -1, last_mul = -1;
    llvm::SmallVector<int, 16> accumulated, popped;  // users of addressed accumulators
  };
  std::map<int, MxuState> mxu_;
  struct XluState {
    int last = -1;
    llvm::SmallVector<int, 16> transposed;  // vxpose since the last vxpose.go
  };
  std::map<int, XluState> xlu_;
  int last_sync_ = -1, last_wait_ = -1, last_start_ = -1;
  std::vector<int> memory_ops_;
};

void Builder::registers(int node, int round) {
  const isa::Instruction& i = insn(node);
  const int here = at(node, round);
  const bool predicated = i.pred_virt || i.pred != isa::kAlways;
  const int latency = machine_.latency(i.op);
  auto read = [&](RegState& r) {
    if (r.def >= 0) edgeAt(r.def, here, machine_.latency(insn(r.def % n_).op), 1);
    r.uses.push_back(here);
  };
  // Reads first: an instruction may read what it writes.
  isa::forEachRegister(i, [&](isa::RegClass cls, int num, bool virt, bool is_read, bool is_write) {
    if (is_read || (is_write && predicated)) read(regs_[{static_cast<int>(cls), virt, num}]);
  });
  isa::forEachRegister(i, [&](isa::RegClass cls, int num, bool virt, bool is_read, bool is_write) {
    if (!is_write) return;
    RegState& r = regs_[{static_cast<int>(cls), virt, num}];
    for (int u : r.uses)
      if (u != here) edgeAt(u, here, 0, 0);
    if (r.def >= 0) edgeAt(r.def, here, machine_.latency(insn(r.def % n_).op) - latency, 1);
    r.def = here;
    r.uses.clear();
  });
}

void Builder::memory() {
  ValueNumbers numbers;
  struct Item {
    int node;
    Access now, next;  // in iterations 0 and 1
  };
  std::vector<Item> items;
  for (int round = 0; round < (loop_ ? 2 : 1); ++round) {
    size_t k = 0;
    for (int i = 0; i < static_cast<int>(code_.size()); ++i) {
      const Opcode op = code_[i].insn.op;
      if (isVmemLoad(op) || isVmemStore(op) || op == Opcode::sld || op == Opcode::sst) {
        const Access a = accessOf(code_[i], numbers);
        if (round == 0)
          items.push_back({i, a, a});
        else
          items[k].next = a;
        ++k;
      }
      numbers.apply(code_[i].insn);
    }
  }
  constexpr int kMaxDistance = 64;
  for (size_t y = 0; y < items.size(); ++y) {
    const Item& b = items[y];
    for (size_t x = 0; x < items.size(); ++x) {
      const Item& a = items[x];
      if (!a.now.store && !b.now.store) continue;
      const int must = 1;
      if (x < y && mayOverlap(a.now, b.now)) edge(a.node, b.node, 0, must, must);
      if (!loop_ || disjointRegions(a.now, b.now)) continue;
      // Loop-carried: a in this iteration, b in a later one.
      const bool affine = a.now.base.symbol == b.now.base.symbol && a.next.base.symbol == a.now.base.symbol &&
                          b.next.base.symbol == b.now.base.symbol;
      const int64_t stride = b.next.base.offset - b.now.base.offset;
      if (!affine || a.next.base.offset - a.now.base.offset != stride) {
        edge(a.node, b.node, 1, must, must);
        continue;
      }
      for (int d = 1; d <= kMaxDistance; ++d) {
        Access later = b.now;
        later.base.offset += d * stride;
        if (!mayOverlap(a.now, later)) continue;
        edge(a.node, b.node, d, must, must);
        break;
      }
    }
  }
}

void Builder::matrix(int node, int round) {
  const isa::Instruction& i = code_[node].insn;
  const isa::Slot slot = isa::info(i.op).slot;
  const int here = at(node, round);
  if (slot == isa::Slot::kXlu) {
    XluState& x = xlu_[i.operands[0].reg];
    if (x.last >= 0) edgeAt(x.last, here, machine_.interval(insn(x.last % n_).op), 1);
    x.last = here;
    if (i.op == Opcode::vxpose) x.transposed.push_back(here);
    if (i.op == Opcode::vxpose_go) {
      for (int push : x.transposed) edgeAt(push, here, machine_.latency(Opcode::vxpose), 1);
      x.transposed.clear();
    }
    return;
  }
  if (slot != isa::Slot::kMxu && i.op != Opcode::vpop_mrb) return;
  const int unit = isa::unitOf(i);
  MxuState& m = mxu_[unit];
  if (i.op == Opcode::vpop_mrb) {
    for (int a : m.accumulated) {
      const isa::Operand& x = insn(a % n_).operands[3];
      const isa::Operand& y = i.operands[2];
      const int n = isa::mxuRows(insn(a % n_).op) / 8 * isa::mxuPanels(machine_.chip().mxu_side);
      const bool known = x.kind == isa::Operand::kImm && y.kind == isa::Operand::kImm;
      if (!known || (y.imm >= x.imm && y.imm < x.imm + n))
        edgeAt(a, here, machine_.latency(insn(a % n_).op), 1);
    }
    for (int p : m.popped) edgeAt(p, here, 1, 1);
    m.popped.push_back(here);
    return;
  }
  if (isMatPush(i.op)) {
    const int stage = static_cast<int>(i.operands[2].imm & 1);
    if (m.last_push >= 0) edgeAt(m.last_push, here, machine_.interval(insn(m.last_push % n_).op), 1);
    edgeAt(m.latch_of[stage], here, machine_.interval(Opcode::vlatch), 1);
    m.staged[stage].push_back(here);
    m.last_push = here;
    return;
  }
  if (i.op == Opcode::vlatch) {
    const int stage = static_cast<int>(i.operands[1].imm & 1);
    for (int push : m.staged[stage]) edgeAt(push, here, machine_.latency(insn(push % n_).op), 1);
    edgeAt(m.latch, here, machine_.interval(Opcode::vlatch), 1);
    for (int mul : m.since_latch) edgeAt(mul, here, 1, 1);
    m.staged[stage].clear();
    m.since_latch.clear();
    m.latch = m.latch_of[stage] = here;
    return;
  }
  edgeAt(m.latch, here, machine_.latency(Opcode::vlatch), 1);
  if (m.last_mul >= 0) edgeAt(m.last_mul, here, machine_.interval(insn(m.last_mul % n_).op), 1);
  m.last_mul = here;
  m.since_latch.push_back(here);
  if (isAccumulate(i.op)) {
    for (int p : m.popped) edgeAt(p, here, 1, 1);
    m.accumulated.push_back(here);
  }
}

void Builder::syncs(int round) {
  for (int i = 0; i < static_cast<int>(code_.size()); ++i) {
    const Opcode op = code_[i].insn.op;
    const int here = at(i, round);
    const bool memory = isVmemLoad(op) || isVmemStore(op) || op == Opcode::sld || op == Opcode::sst;
    if (memory && code_[i].object == kSpillObject) continue;
    if (memory) {
      edgeAt(last_wait_, here, 1, 1);
      if (op == Opcode::sst) edgeAt(last_start_, here, 1, 1);
      memory_ops_.push_back(here);
      continue;
    }
    if (!isSync(op)) continue;
    edgeAt(last_sync_, here, 1, 1);
    if (op == Opcode::sem_wait || op == Opcode::sem_read) {
      last_wait_ = here;
    } else {
      const bool fetch = op == Opcode::dma_start && code_[i].fetch;
      for (int m : memory_ops_) {
        const Opcode before = insn(m % n_).op;
        if (fetch && before != Opcode::sst) continue;
        const bool store = before == Opcode::sst || isVmemStore(before);
        edgeAt(m, here, store ? machine_.latency(before) : 1, 1);
      }
    }
    if (op == Opcode::dma_start) last_start_ = here;
    last_sync_ = here;
  }
}

bool Builder::fifos() {
  std::map<std::pair<int, int>, std::vector<int>> users;
  const int side = machine_.chip().mxu_side;
  for (int i = 0; i < static_cast<int>(code_.size()); ++i) {
    const isa::FifoEffect e = isa::fifoEffect(code_[i].insn, side);
    if (e.push != Fifo::kNone) users[{static_cast<int>(e.push), isa::unitOf(code_[i].insn)}].push_back(i);
    if (e.pop != Fifo::kNone) users[{static_cast<int>(e.pop), isa::unitOf(code_[i].insn)}].push_back(i);
  }
  bool balanced = true;
  for (auto& [key, both] : users) {
    std::vector<int> pushes, pops;  // by entry; by pop
    bool carried = false;           // entries cross the block's borders
    for (int i : both) {
      const isa::FifoEffect e = isa::fifoEffect(code_[i].insn, side);
      for (int k = 0; k < e.entries; ++k) pushes.push_back(i);
      if (e.pop != Fifo::kNone) pops.push_back(i);
      carried |= pops.size() > pushes.size();
    }
    carried |= pops.size() != pushes.size();
    if (carried) {
      balanced = false;
      for (size_t k = 1; k < both.size(); ++k) edge(both[k - 1], both[k], 0, 1, 1);
      continue;
    }
    if (!fifo(pushes, pops, both, static_cast<Fifo>(key.first))) balanced = false;
  }
  return balanced;
}

bool Builder::fifo(const std::vector<int>& pushes, const std::vector<int>& pops, const std::vector<int>& both,
                   Fifo kind) {
  const int depth = machine_.depth(kind), count = static_cast<int>(pushes.size());
  std::vector<int> distinct;  // pushing instructions in order
  for (int p : pushes)
    if (distinct.empty() || distinct.back() != p) distinct.push_back(p);
  auto apart = [&](int push) {
    return machine_.unit(code_[push].insn) >= 0 ? machine_.interval(code_[push].insn.op) : 1;
  };
  for (size_t k = 1; k < distinct.size(); ++k)
    edge(distinct[k - 1], distinct[k], 0, apart(distinct[k - 1]), 1);
  for (int k = 1; k < count; ++k) edge(pops[k - 1], pops[k], 0, 1, 1);
  if (loop_) {
    edge(distinct.back(), distinct.front(), 1, apart(distinct.back()), 1);
    edge(pops.back(), pops.front(), 1, 1, 1);
  }
  for (int k = 0, first = 0; k < count; ++k) {
    if (pushes[k] != pushes[first]) first = k;
    int n = 0;
    while (first + n < count && pushes[first + n] == pushes[first]) ++n;
    const Opcode op = code_[pushes[k]].insn.op;
    const int i = k - first;
    const int more = kind == Fifo::kTrf ? i : i * machine_.interval(op) / n;
    edge(pushes[k], pops[k], 0, machine_.latency(op) + more, 1);
    // Entry k fits when entry k - depth is gone.
    const int gone = k - depth;
    if (gone >= 0) {
      edge(pops[gone], pushes[k], 0, 0, 0);
    } else if (loop_) {
      const int back = (-gone + count - 1) / count;  // iterations earlier
      edge(pops[gone + back * count], pushes[k], back, 0, 0);
    }
  }
  return true;
}

void Builder::index() {
  for (size_t e = 0; e < graph_.edges.size(); ++e) {
    graph_.succ[graph_.edges[e].from].push_back(static_cast<int32_t>(e));
    graph_.pred[graph_.edges[e].to].push_back(static_cast<int32_t>(e));
  }
}

}  // namespace

bool buildDeps(llvm::ArrayRef<Insn> code, const Insn* term, const Machine& machine, bool loop,
               DepGraph* graph) {
  return Builder(code, term, machine, loop, graph).run();
}

}  // namespace tpu::schedule
