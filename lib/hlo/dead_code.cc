// Dead code elimination: what is needed is marked from the roots, the rest is swept.
#include "tpu/hlo/analysis.h"

namespace tpu::hlo {
namespace {

// Names of functions that an op refers to.
void forEachCallee(const Module& m, OpId op, llvm::function_ref<void(FuncId)> visit) {
  for (AttrKey key : {AttrKey::callee, AttrKey::decomposition})
    if (const Attr* attr = m.findAttr(op, key))
      if (FuncId func = m.findFunc(attr->str)) visit(func);
  if (const Attr* attr = m.findAttr(op, AttrKey::called_computations))
    for (const std::string& name : attr->strs)
      if (FuncId func = m.findFunc(name)) visit(func);
}

class DeadCode {
 public:
  explicit DeadCode(Module& module)
      : m(module), keep_(m.numOps()), live_(m.numOps()), func_keep_(m.funcs.size()) {}

  size_t run() {
    findRoots();
    for (const Func& func : m.funcs) markRegion(func.body);
    while (!work_.empty()) {
      OpId op = work_.back();
      work_.pop_back();
      for (ValueId v : m.op(op).operands)
        if (OpId def = m.value(v).def) mark(def);
      for (RegionId region : m.op(op).regions) markRegion(region);
    }
    size_t removed = 0;
    for (const Func& func : m.funcs) removed += sweep(func.body);
    return removed;
  }

 private:
  bool keptByItself(OpId id) const {
    const Op& op = m.op(id);
    if (hasTrait(op.opcode, kTerminator)) return false;  // marked with its region
    if (op.results.empty() || hasTrait(op.opcode, kSideEffect)) return true;
    return op.opcode == Opcode::custom_call && m.getBool(id, AttrKey::has_side_effect);
  }

  bool computeKeep(RegionId region) {
    bool any = false;
    for (OpId id : m.region(region).ops) {
      bool keep = keptByItself(id);
      for (RegionId nested : m.op(id).regions) keep |= computeKeep(nested);
      if (!keep && m.op(id).opcode == Opcode::call)
        forEachCallee(m, id, [&](FuncId func) { keep |= func_keep_[func.v]; });
      keep_[id.v] = keep;
      any |= keep;
    }
    return any;
  }

  // Calls of functions with side effects are kept: repeat until no function's verdict changes.
  void findRoots() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < m.funcs.size(); ++i) {
        bool keep = computeKeep(m.funcs[i].body);
        changed |= keep != func_keep_[i];
        func_keep_[i] = keep;
      }
    }
  }

  void mark(OpId op) {
    if (live_[op.v]) return;
    live_[op.v] = true;
    work_.push_back(op);
  }

  void markRegion(RegionId region) {
    for (OpId op : m.region(region).ops)
      if (keep_[op.v] || hasTrait(m.op(op).opcode, kTerminator)) mark(op);
  }

  size_t sweep(RegionId region) {
    size_t removed = 0;
    std::vector<OpId> kept;
    for (OpId op : m.region(region).ops) {
      if (live_[op.v]) {
        kept.push_back(op);
        for (RegionId nested : m.op(op).regions) removed += sweep(nested);
      } else {
        discard(op, removed);
      }
    }
    m.region(region).ops = std::move(kept);
    return removed;
  }

  // Takes a dead op and all it holds out of the program.
  void discard(OpId op, size_t& removed) {
    m.op(op).parent = RegionId();
    ++removed;
    for (RegionId nested : m.op(op).regions)
      for (OpId inner : m.region(nested).ops) discard(inner, removed);
  }

  Module& m;
  std::vector<bool> keep_, live_, func_keep_;
  std::vector<OpId> work_;
};

}  // namespace

bool dropUnusedFunctions(Module& m) {
  std::vector<bool> reached(m.funcs.size());
  std::vector<FuncId> work;
  auto reach = [&](FuncId func) {
    if (reached[func.v]) return;
    reached[func.v] = true;
    work.push_back(func);
  };
  for (size_t i = 0; i < m.funcs.size(); ++i)
    if (!m.funcs[i].is_private) reach(FuncId(static_cast<uint32_t>(i)));
  if (m.entry) reach(m.entry);
  while (!work.empty()) {
    FuncId func = work.back();
    work.pop_back();
    walk(m, m.func(func).body, [&](OpId op) { forEachCallee(m, op, reach); });
  }
  std::vector<FuncId> renamed(m.funcs.size());
  std::vector<Func> kept;
  for (size_t i = 0; i < m.funcs.size(); ++i) {
    if (!reached[i]) {
      walk(m, m.funcs[i].body, [&](OpId op) { m.op(op).parent = RegionId(); });
      m.region(m.funcs[i].body).ops.clear();
      continue;
    }
    renamed[i] = FuncId(static_cast<uint32_t>(kept.size()));
    kept.push_back(std::move(m.funcs[i]));
  }
  bool dropped = kept.size() != m.funcs.size();
  m.funcs = std::move(kept);
  if (m.entry) m.entry = renamed[m.entry.v];
  for (uint32_t i = 0; i < m.numRegions(); ++i) {
    Region& region = m.region(RegionId(i));
    if (region.func) region.func = renamed[region.func.v];
  }
  return dropped;
}

size_t eliminateDeadCode(Module& module) {
  size_t removed = DeadCode(module).run();
  dropUnusedFunctions(module);
  return removed;
}

}  // namespace tpu::hlo
