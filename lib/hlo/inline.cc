// Call inlining: callees first, so that every body is copied once per call and never again.
#include "tpu/hlo/analysis.h"
#include "tpu/support/diagnostics.h"

namespace tpu::hlo {
namespace {

// A program whose calls unfold to more ops than this, about 3 GB of them, is refused before they are made.
constexpr size_t kMaxOps = size_t{1} << 23;
// Longest chain of calls.
constexpr int kMaxDepth = 1000;
// Deepest nesting of regions.
constexpr int kMaxNesting = 300;

ValueId lookUp(const std::vector<ValueId>& map, ValueId v) {
  return v.v < map.size() && map[v.v] ? map[v.v] : v;
}

void set(std::vector<ValueId>& map, ValueId from, ValueId to) {
  if (from.v >= map.size()) map.resize(from.v + from.v / 2 + 16);
  map[from.v] = to;
}

class Inliner {
 public:
  Inliner(Module& module, bool composites)
      : m(module), composites_(composites), state_(m.funcs.size(), kNew), nesting_(m.funcs.size()), sizes_(m.funcs.size()) {}

  llvm::Error run(FuncId func) {
    state_[func.v] = kOpen;
    if (auto e = inlineRegion(m.func(func).body, 0, nesting_[func.v])) return e;
    walk(m, m.func(func).body, [&](OpId) { ++sizes_[func.v]; });
    state_[func.v] = kDone;
    return llvm::Error::success();
  }

 private:
  enum State : uint8_t { kNew, kOpen, kDone };

  llvm::StringRef calleeName(OpId op) const {
    if (m.op(op).opcode == Opcode::call) return m.getString(op, AttrKey::callee);
    if (composites_ && m.op(op).opcode == Opcode::composite) return m.getString(op, AttrKey::decomposition);
    return {};
  }

  // `deepest` becomes the depth of the deepest region, those of inlined bodies included.
  llvm::Error inlineRegion(RegionId region, int depth, int& deepest) {
    deepest = std::max(deepest, depth);
    std::vector<OpId> old = std::move(m.region(region).ops);
    std::vector<OpId> ops;
    ops.reserve(old.size());
    for (OpId op : old) {
      for (ValueId& v : m.op(op).operands) v = lookUp(replaced_, v);
      llvm::StringRef name = calleeName(op);
      if (name.empty()) {
        ops.push_back(op);
        llvm::SmallVector<RegionId, 2> nested(m.op(op).regions.begin(), m.op(op).regions.end());
        for (RegionId inner : nested)
          if (auto e = inlineRegion(inner, depth + 1, deepest)) return e;
        continue;
      }
      if (auto e = inlineCall(op, name.str(), region, ops, depth, deepest)) return e;
    }
    m.region(region).ops = std::move(ops);
    return llvm::Error::success();
  }

  llvm::Error inlineCall(OpId op, const std::string& name, RegionId region, std::vector<OpId>& ops, int depth,
                         int& deepest) {
    FuncId callee = m.findFunc(name);
    llvm::StringRef loc = m.loc(m.op(op).loc);
    if (!callee) return fail(Code::kBadCall, loc, "call of unknown function @" + name);
    if (state_[callee.v] == kOpen) return fail(Code::kBadCall, loc, "recursive call of @" + name);
    if (state_[callee.v] == kNew) {
      if (++depth_ > kMaxDepth) return fail(Code::kBadCall, loc, "calls nest too deeply");
      if (auto e = run(callee)) return e;
      --depth_;
    }
    deepest = std::max(deepest, depth + nesting_[callee.v]);
    if (deepest > kMaxNesting)
      return fail(Code::kBadCall, loc, "the regions of this program nest too deeply");
    RegionId body = m.func(callee).body;
    llvm::ArrayRef<ValueId> args = m.region(body).args;
    if (args.size() != m.op(op).operands.size())
      return fail(Code::kBadCall, loc, "call of @" + name + " with another number of arguments");
    if (m.numOps() + sizes_[callee.v] > kMaxOps)
      return fail(Code::kBadCall, loc, "the calls of this program unfold to more than " + llvm::Twine(kMaxOps) + " operations");
    for (size_t i = 0; i < args.size(); ++i) set(map_, args[i], m.op(op).operands[i]);
    const size_t first = ops.size();
    llvm::SmallVector<ValueId, 4> results = copyBody(m, body, region, map_, &ops);
    if (!isLineOfText(m.op(op).loc)) {
      for (size_t i = first; i < ops.size(); ++i) locate(ops[i], m.op(op).loc);
    }
    if (results.size() != m.op(op).results.size())
      return fail(Code::kBadCall, loc, "call of @" + name + " with another number of results");
    for (size_t i = 0; i < results.size(); ++i) set(replaced_, m.op(op).results[i], results[i]);
    m.op(op).parent = RegionId();
    return llvm::Error::success();
  }

  /// The location names the text that the program was read from, for want of one of the user's.
  bool isLineOfText(LocId loc) const {
    return !m.source_file.empty() && m.loc(loc).starts_with(m.source_file) && m.loc(loc).drop_front(m.source_file.size()).starts_with(":");
  }

  /// Bodies that a library wrote once for all callers have no location of the user's; where they are called has one.
  void locate(OpId op, LocId caller) {
    if (isLineOfText(m.op(op).loc)) m.op(op).loc = caller;
    for (RegionId r : m.op(op).regions) {
      for (OpId inner : m.region(r).ops) locate(inner, caller);
    }
  }

  Module& m;
  const bool composites_;
  int depth_ = 0;
  std::vector<State> state_;
  std::vector<int> nesting_;  // deepest region of each function that is done
  std::vector<size_t> sizes_;  // its ops
  std::vector<ValueId> map_;  // callee values to their latest copy; rewritten by each copy before it is read
  std::vector<ValueId> replaced_;  // results of inlined calls
};

}  // namespace

OpId copyOp(Module& m, OpId op, RegionId to, std::vector<ValueId>& map, std::vector<OpId>* sink) {
  llvm::SmallVector<ValueId, 4> operands;
  llvm::SmallVector<TypeId, 2> types;
  for (ValueId v : m.op(op).operands) operands.push_back(lookUp(map, v));
  for (ValueId v : m.op(op).results) types.push_back(m.value(v).type);
  OpId copy = sink ? m.create(to, m.op(op).opcode, operands, types, m.op(op).loc)
                   : m.append(to, m.op(op).opcode, operands, types, m.op(op).loc);
  if (sink) sink->push_back(copy);
  m.copyAttrs(op, copy);
  for (size_t i = 0; i < types.size(); ++i) {
    const Value& from = m.value(m.op(op).results[i]);
    Value& result = m.value(m.op(copy).results[i]);
    result.name = from.name;
    result.sharding = from.sharding;
    set(map, m.op(op).results[i], m.op(copy).results[i]);
  }
  for (size_t i = 0; i < m.op(op).regions.size(); ++i) {
    RegionId from = m.op(op).regions[i];
    RegionId nested = m.addRegion(copy, m.region(to).func);
    for (size_t a = 0; a < m.region(from).args.size(); ++a) {
      const Value old = m.value(m.region(from).args[a]);
      ValueId arg = m.addArg(nested, old.type, old.loc);
      m.value(arg).name = old.name;
      m.value(arg).sharding = old.sharding;
      set(map, m.region(from).args[a], arg);
    }
    for (size_t o = 0; o < m.region(from).ops.size(); ++o)
      copyOp(m, m.region(from).ops[o], nested, map, nullptr);
  }
  return copy;
}

llvm::SmallVector<ValueId, 4> copyBody(Module& m, RegionId from, RegionId to, std::vector<ValueId>& map,
                                       std::vector<OpId>* sink) {
  llvm::SmallVector<ValueId, 4> yields;
  for (size_t i = 0; i < m.region(from).ops.size(); ++i) {
    OpId op = m.region(from).ops[i];
    if (m.op(op).opcode == Opcode::return_) {
      for (ValueId v : m.op(op).operands) yields.push_back(lookUp(map, v));
      break;
    }
    copyOp(m, op, to, map, sink);
  }
  return yields;
}

llvm::Error inlineCalls(Module& module, bool composites) {
  if (composites) expandKnownCalls(module);
  Inliner inliner(module, composites);
  if (module.entry) {
    if (auto e = inliner.run(module.entry)) return e;
    for (size_t i = 0; i < module.funcs.size(); ++i)
      module.funcs[i].is_private = FuncId(static_cast<uint32_t>(i)) != module.entry;
  }
  dropUnusedFunctions(module);
  return llvm::Error::success();
}

}  // namespace tpu::hlo
