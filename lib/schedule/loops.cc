// Rewrites innermost loops as software pipelines: which loops, their control, and the code around the kernel.
#include <algorithm>

#include "list.h"
#include "modulo.h"
#include "pointers.h"
#include "tpu/llo/builder.h"

namespace tpu::schedule {
namespace {

using isa::Opcode;
using llo::Arg;
using llo::P;
using llo::S;

Insn make(Opcode op, std::initializer_list<Arg> args, uint32_t slot) {
  Insn i;
  i.insn.op = op;
  for (const Arg& a : args) i.insn.operands[i.insn.num_operands++] = a.o;
  i.op = slot;
  return i;
}

Insn branch(int64_t target, uint32_t slot, int32_t pred = -1) {
  Insn i;
  i.insn.op = Opcode::br;
  i.insn.num_operands = 1;
  i.insn.operands[0].kind = isa::Operand::kLabel;
  i.insn.operands[0].imm = target;
  i.op = slot;
  if (pred >= 0) i.insn.pred = pred, i.insn.pred_virt = true;
  return i;
}

/// The blocks that replace a loop, with branch targets relative to the first of them where negative (~k:
/// block k).
struct Pipeline {
  std::vector<Block> blocks;
};

class LoopPipeliner {
 public:
  LoopPipeliner(Func& func, const Machine& machine) : func_(func), machine_(machine) {}

  bool run(const Block& loop, Pipeline* out) {
    std::vector<Insn> body, before;
    if (!stripControl(loop, body)) return false;
    for (const Insn& i : body)
      if (isSync(i.insn.op) || i.insn.op == Opcode::sst) return false;
    const int limit = plainCycles(loop);
    const std::vector<Insn> original = body;
    const int saved = func_.num_regs[0];
    ModuloSchedule s;
    bool found = false;
    for (int window : {limit / 3, 24, 8}) {
      body = original;
      before.clear();
      func_.num_regs[0] = saved;
      makePointers(func_, body, before, machine_, window);
      removeDead(body, loop);
      if (moduloSchedule(body, machine_, limit, &s)) {
        found = true;
        break;
      }
    }
    if (!found) {
      func_.num_regs[0] = saved;
      return false;
    }
    const int stages = s.stages();
    if (loop.trip_imm >= 0 &&
        (loop.trip_imm < stages || loop.trip_imm * limit <= (loop.trip_imm + stages - 1) * s.ii))
      return false;
    build(loop, body, before, s, out);
    return true;
  }

 private:
  // Takes out `sadd i,i,1; scmp.lt p,i,trip` where nothing else reads them.
  bool stripControl(const Block& loop, std::vector<Insn>& body) {
    const int32_t p = loop.term.insn.pred;
    int compares = 0;
    for (const Insn& i : loop.code) {
      bool reads_p = false;
      isa::forEachRegister(i.insn, [&](isa::RegClass cls, int num, bool virt, bool read, bool) {
        reads_p |= read && virt && cls == isa::RegClass::kPred && num == p;
      });
      if (reads_p) return false;
      if (i.insn.op == Opcode::scmp_lt && i.insn.operands[0].reg == p)
        ++compares;
      else
        body.push_back(i);
    }
    return compares == 1;
  }

  int plainCycles(const Block& loop) const {
    // Longest of the critical path and the resources: what one iteration takes when iterations do not
    // overlap.
    DepGraph graph;
    buildDeps(loop.code, nullptr, machine_, false, &graph);
    std::vector<int> time(loop.code.size(), 0);
    int end = 0;
    for (size_t i = 0; i < loop.code.size(); ++i) {
      end = std::max(end, time[i] + 1);
      for (int32_t e : graph.succ[i]) {
        int& t = time[graph.edges[e].to];
        t = std::max(t, time[i] + graph.edges[e].latency);
      }
    }
    Bundles bundles;
    listSchedule(loop, machine_, &bundles);
    return std::max(end, static_cast<int>(bundles.size())) + 1;
  }

  // Scalar arithmetic that pointers have replaced; registers that others read stay.
  void removeDead(std::vector<Insn>& body, const Block& loop) {
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<int> reads(func_.num_regs[0], 0);
      auto count = [&](const Insn& i, int by) {
        isa::forEachRegister(i.insn, [&](isa::RegClass cls, int num, bool virt, bool read, bool) {
          if (read && virt && cls == isa::RegClass::kScalar) reads[num] += by;
        });
      };
      for (const Block& b : func_.blocks) {
        for (const Insn& i : b.code)
          if (&b != &loop) count(i, 1);
        if (b.has_term) count(b.term, 1);
      }
      for (const Insn& i : body) count(i, 1);
      for (size_t k = 0; k < body.size(); ++k) {
        const isa::Instruction& i = body[k].insn;
        if (isa::info(i.op).slot != isa::Slot::kScalar || i.num_operands == 0 || i.op == Opcode::spop)
          continue;
        const isa::Operand& d = i.operands[0];
        if (isa::info(i.op).operands[0] != isa::OperandKind::Sd || !d.virt) continue;
        int own = 0;
        isa::forEachRegister(i, [&](isa::RegClass cls, int num, bool virt, bool read, bool) {
          own += read && virt && cls == isa::RegClass::kScalar && num == d.reg;
        });
        if (reads[d.reg] != own) continue;
        body.erase(body.begin() + static_cast<ptrdiff_t>(k));
        changed = true;
        break;
      }
    }
  }

  void build(const Block& loop, const std::vector<Insn>& body, const std::vector<Insn>& before,
             const ModuloSchedule& s, Pipeline* out) {
    const int stages = s.stages();
    const uint32_t op = loop.term.op;
    const bool dynamic = loop.trip_imm < 0;
    // By cycle within the iteration; of one cycle the older iterations first, for they read before younger
    // ones write.
    std::vector<int> order(body.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return std::make_pair(s.time[a] % s.ii, -s.time[a]) < std::make_pair(s.time[b] % s.ii, -s.time[b]);
    });
    const int32_t count = func_.num_regs[0]++, again = func_.num_regs[3]++;
    // 0: before the loop; 1: kernel; 2: epilogue; 3: the plain loop.
    Block start;
    start.depth = loop.depth - 1;
    start.code = before;
    if (dynamic) {
      const int32_t few = func_.num_regs[3]++;
      start.code.push_back(make(Opcode::scmp_lt, {P{few}, S{loop.trip_reg}, stages}, op));
      start.has_term = true;
      start.term = branch(~4, op, few);
      out->blocks.push_back(std::move(start));
      start = Block();
      start.depth = loop.depth - 1;
      start.code.push_back(make(Opcode::ssub, {S{count}, S{loop.trip_reg}, stages - 1}, op));
    } else {
      start.code.push_back(make(Opcode::smov, {S{count}, loop.trip_imm - (stages - 1)}, op));
    }
    for (int round = 0; round + 1 < stages; ++round)
      for (int i : order)
        if (s.time[i] / s.ii <= round) start.code.push_back(body[i]);
    out->blocks.push_back(std::move(start));
    Block kernel;
    kernel.depth = loop.depth;
    kernel.fixed = true;
    kernel.length = s.ii;
    kernel.term_cycle = s.ii - 1 - machine_.delay();
    auto put = [&](const Insn& i, int cycle) {
      kernel.code.push_back(i);
      kernel.cycle.push_back(cycle);
    };
    size_t next = 0;
    for (int cycle = 0; cycle < s.ii; ++cycle) {
      for (; next < order.size() && s.time[order[next]] % s.ii == cycle; ++next)
        put(body[order[next]], cycle);
      if (cycle == kernel.term_cycle - 2) put(make(Opcode::ssub, {S{count}, S{count}, 1}, op), cycle);
      if (cycle == kernel.term_cycle - 1) put(make(Opcode::scmp_gt, {P{again}, S{count}, 0}, op), cycle);
    }
    kernel.has_term = true;
    kernel.term = branch(~static_cast<int64_t>(out->blocks.size()), op, again);
    out->blocks.push_back(std::move(kernel));
    Block end;
    end.depth = loop.depth - 1;
    for (int round = 1; round < stages; ++round)
      for (int i : order)
        if (s.time[i] / s.ii >= round) end.code.push_back(body[i]);
    if (dynamic) {
      end.has_term = true;
      end.term = branch(~5, op);
    }
    out->blocks.push_back(std::move(end));
    if (!dynamic) return;
    Block plain = loop;
    plain.term.insn.operands[0].imm = ~4;
    plain.loop_body = false;
    out->blocks.push_back(std::move(plain));
    out->blocks.emplace_back().depth = loop.depth - 1;
  }

  Func& func_;
  const Machine& machine_;
};

}  // namespace

void pipelineLoops(Func& func, const Machine& machine, PipelineStats* stats) {
  std::vector<Block> blocks;
  std::vector<int64_t> moved(func.blocks.size());
  for (size_t b = 0; b < func.blocks.size(); ++b) {
    moved[b] = static_cast<int64_t>(blocks.size());
    Pipeline pipeline;
    const bool loop = func.blocks[b].loop_body;
    const bool done = loop && LoopPipeliner(func, machine).run(func.blocks[b], &pipeline);
    if (loop) ++(done ? stats->pipelined : stats->plain);
    if (!done) {
      blocks.push_back(func.blocks[b]);
      continue;
    }
    for (Block& p : pipeline.blocks) {
      // Targets within the pipeline are final already: mark them so that they are not moved again.
      if (p.has_term) p.term.insn.operands[0].imm = ~(moved[b] + ~p.term.insn.operands[0].imm);
      blocks.push_back(std::move(p));
    }
  }
  for (Block& b : blocks) {
    if (!b.has_term || b.term.insn.op != Opcode::br) continue;
    int64_t& target = b.term.insn.operands[0].imm;
    target = target < 0 ? ~target : moved[target];
  }
  func.blocks = std::move(blocks);
}

}  // namespace tpu::schedule
