#include "pointers.h"

#include <algorithm>
#include <map>

#include "address.h"
#include "deps.h"
#include "tpu/llo/builder.h"

namespace tpu::schedule {
namespace {

using isa::Opcode;

bool isScalarArithmetic(const isa::Instruction& i) {
  if (i.pred_virt || i.pred != isa::kAlways || i.num_operands == 0) return false;
  if (isa::info(i.op).slot != isa::Slot::kScalar || isa::info(i.op).operands[0] != isa::OperandKind::Sd)
    return false;
  return i.op != Opcode::sld && i.op != Opcode::spop && i.op != Opcode::ssel;
}

/// A scalar operand of an instruction that is not itself address arithmetic.
struct Use {
  int insn, operand;
  bool memory;
  SymbolicValue now, next;  // in two iterations that follow each other
  int time;                 // when the instruction would like to run
};

class PointerMaker {
 public:
  PointerMaker(Func& func, std::vector<Insn>& body, std::vector<Insn>& before, const Machine& machine,
               int window)
      : func_(func), body_(body), before_(before), machine_(machine), window_(window) {}

  void run() {
    findWritten();
    findTimes();
    findUses();
    // Uses of one symbol that advance alike may share a pointer while they run at about the same time.
    std::stable_sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) {
      return std::make_tuple(a.now.symbol, a.next.offset - a.now.offset, a.time) <
             std::make_tuple(b.now.symbol, b.next.offset - b.now.offset, b.time);
    });
    std::vector<Insn> updates;
    for (size_t k = 0; k < uses_.size();) {
      size_t end = k + 1;
      while (end < uses_.size() && shares(uses_[k], uses_[end])) ++end;
      cluster(k, end, updates);
      k = end;
    }
    body_.insert(body_.end(), updates.begin(), updates.end());
  }

 private:
  bool shares(const Use& a, const Use& b) const {
    return a.now.symbol == b.now.symbol && a.next.offset - a.now.offset == b.next.offset - b.now.offset &&
           b.time - a.time <= window_ &&
           (b.now.offset == a.now.offset ||
            (b.memory && a.memory && std::abs(b.now.offset - a.now.offset) < (1 << 24)));
  }

  void findWritten() {
    written_.assign(func_.num_regs[0], 0);
    for (const Insn& i : body_)
      isa::forEachRegister(i.insn, [&](isa::RegClass cls, int num, bool virt, bool, bool write) {
        if (write && virt && cls == isa::RegClass::kScalar) ++written_[num];
      });
  }

  // A load would like to run just before its first reader.
  void findTimes() {
    DepGraph graph;
    buildDeps(body_, nullptr, machine_, false, &graph);
    const int n = static_cast<int>(body_.size());
    time_.assign(n, 0);
    for (int i = 0; i < n; ++i)
      for (int32_t e : graph.succ[i]) {
        const Edge& edge = graph.edges[e];
        if (edge.to > i) time_[edge.to] = std::max(time_[edge.to], time_[i] + edge.latency);
      }
    for (int i = n; i-- > 0;) {
      if (!isVmemLoad(body_[i].insn.op)) continue;
      int first = -1;
      for (int32_t e : graph.succ[i]) {
        const Edge& edge = graph.edges[e];
        if (edge.latency < machine_.latency(body_[i].insn.op)) continue;
        const int at = time_[edge.to] - edge.latency;
        if (first < 0 || at < first) first = at;
      }
      time_[i] = std::max(time_[i], first);
    }
  }

  void findUses() {
    ValueNumbers numbers;
    for (int round = 0; round < 2; ++round) {
      size_t k = 0;
      for (int i = 0; i < static_cast<int>(body_.size()); ++i) {
        const isa::Instruction& insn = body_[i].insn;
        if (!isScalarArithmetic(insn)) {
          for (int o = 0; o < insn.num_operands; ++o) {
            const isa::Operand& operand = insn.operands[o];
            const bool memory = operand.kind == isa::Operand::kMem && operand.has_base;
            const bool scalar = operand.kind == isa::Operand::kReg && operand.cls == isa::RegClass::kScalar &&
                                !isa::isDef(isa::info(insn.op).operands[o]);
            if ((!memory && !scalar) || !operand.virt || !written_[operand.reg]) continue;
            const SymbolicValue value = numbers.value(operand.reg, true);
            if (round == 0)
              uses_.push_back({i, o, memory, value, value, time_[i]});
            else
              uses_[k].next = value;
            ++k;
          }
        }
        numbers.apply(insn);
      }
    }
    uses_.erase(std::remove_if(uses_.begin(), uses_.end(),
                               [](const Use& u) { return u.now.symbol != u.next.symbol; }),
                uses_.end());
  }

  // The value of `reg` just before instruction `at` of the first iteration, computed before the loop. -1
  // where that needs more than arithmetic.
  int32_t cloneBefore(int32_t reg, int at) {
    int def = at - 1;
    auto writes = [&](const Insn& i) {
      const isa::Operand& d = i.insn.operands[0];
      return i.insn.num_operands > 0 && isa::info(i.insn.op).operands[0] == isa::OperandKind::Sd && d.virt &&
             d.reg == reg;
    };
    while (def >= 0 && !writes(body_[def])) --def;
    if (def < 0) return reg;  // what it holds on entry
    if (auto it = cloned_.find(def); it != cloned_.end()) return it->second;
    if (!isScalarArithmetic(body_[def].insn)) return -1;
    Insn copy = body_[def];
    for (int o = 1; o < copy.insn.num_operands; ++o) {
      isa::Operand& operand = copy.insn.operands[o];
      if (operand.kind != isa::Operand::kReg) continue;
      if (operand.cls != isa::RegClass::kScalar || !operand.virt) return -1;
      operand.reg = cloneBefore(operand.reg, def);
      if (operand.reg < 0) return -1;
    }
    copy.insn.operands[0].reg = func_.num_regs[0]++;
    before_.push_back(copy);
    return cloned_[def] = copy.insn.operands[0].reg;
  }

  void cluster(size_t begin, size_t end, std::vector<Insn>& updates) {
    const Use& first = uses_[begin];
    const isa::Operand& operand = body_[first.insn].insn.operands[first.operand];
    const int32_t start = cloneBefore(operand.reg, first.insn);
    if (start < 0) return;
    const int64_t stride = first.next.offset - first.now.offset;
    const int32_t pointer = func_.num_regs[0]++;
    Insn move;
    move.op = body_[first.insn].op;
    move.insn.op = Opcode::smov;
    move.insn.num_operands = 2;
    move.insn.operands[0] = llo::Arg(llo::S{pointer}).o;
    move.insn.operands[1] = llo::Arg(llo::S{start}).o;
    before_.push_back(move);
    for (size_t k = begin; k < end; ++k) {
      isa::Operand& o = body_[uses_[k].insn].insn.operands[uses_[k].operand];
      o.reg = pointer;
      if (uses_[k].memory) o.imm += uses_[k].now.offset - first.now.offset;
    }
    if (stride == 0) return;
    Insn update = move;
    update.insn.op = Opcode::sadd;
    update.insn.num_operands = 3;
    update.insn.operands[1] = llo::Arg(llo::S{pointer}).o;
    update.insn.operands[2] = llo::Arg(stride).o;
    updates.push_back(update);
  }

  Func& func_;
  std::vector<Insn>& body_;
  std::vector<Insn>& before_;
  const Machine& machine_;
  int window_;
  std::vector<int> written_, time_;
  std::vector<Use> uses_;
  std::map<int, int32_t> cloned_;
};

}  // namespace

void makePointers(Func& func, std::vector<Insn>& body, std::vector<Insn>& before, const Machine& machine,
                  int window) {
  PointerMaker(func, body, before, machine, window).run();
}

}  // namespace tpu::schedule
