// Delta debugging on programs: each trial is a copy with one thing less.
#include "shrink_test_util.h"

#include "tpu/hlo/analysis.h"
#include "tpu/hlo/verify.h"

namespace tpu::partition {

using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;

namespace {

class Shrinker {
 public:
  Shrinker(const hlo::Module& whole, llvm::function_ref<bool(const hlo::Module&)> fails)
      : best_(whole.clone()), fails_(fails) {}

  hlo::Module run() {
    for (bool again = true; again;) {
      again = false;
      again |= dropResults();
      again |= dropOps();
      again |= dropShardings();
      again |= dropArguments();
    }
    return std::move(best_);
  }

 private:
  /// Takes the trial over where it still fails: without dead code, or with it, as its requests may matter.
  bool take(hlo::Module trial) {
    hlo::Module live = trial.clone();
    return (hlo::eliminateDeadCode(live) > 0 && takeAsIs(std::move(live))) || takeAsIs(std::move(trial));
  }

  bool takeAsIs(hlo::Module trial) {
    if (llvm::Error e = hlo::verify(trial)) return llvm::consumeError(std::move(e)), false;
    if (!fails_(trial)) return false;
    best_ = std::move(trial);
    return true;
  }

  static hlo::Func& entry(hlo::Module& m) { return m.funcs[m.entry.v]; }

  bool dropResults() {
    bool any = false;
    for (size_t i = entry(best_).result_types.size(); i-- > 0 && entry(best_).result_types.size() > 1;) {
      hlo::Module trial = best_.clone();
      hlo::Func& f = entry(trial);
      f.result_types.erase(f.result_types.begin() + i);
      f.result_ports.erase(f.result_ports.begin() + i);
      auto& operands = trial.op(trial.region(f.body).ops.back()).operands;
      operands.erase(operands.begin() + i);
      any |= take(std::move(trial));
    }
    return any;
  }

  bool dropOps() {
    bool any = false;
    std::vector<OpId> ops;
    hlo::walk(best_, [&](OpId id) {
      if (!hlo::hasTrait(best_.op(id).opcode, hlo::kTerminator)) ops.push_back(id);
    });
    for (size_t i = ops.size(); i-- > 0;) {
      if (!best_.op(ops[i]).parent) continue;
      any |= byOperand(ops[i]) || byArgument(ops[i]);
    }
    return any;
  }

  bool byOperand(OpId id) {
    if (best_.op(id).results.size() != 1) return false;
    // A loop whose counter stands still never ends.
    bool nested = best_.op(id).parent != best_.func(best_.entry).body;
    if (nested && best_.typeOf(best_.op(id).results[0]).rank() == 0) return false;
    for (size_t k = 0; k < best_.op(id).operands.size(); ++k) {
      ValueId v = best_.op(id).operands[k], result = best_.op(id).results[0];
      if (best_.value(v).type != best_.value(result).type) continue;
      hlo::Module trial = best_.clone();
      trial.replaceAllUses(result, v);
      trial.erase(id);
      if (take(std::move(trial))) return true;
    }
    return false;
  }

  /// The results of an op of the entry become new arguments.
  bool byArgument(OpId id) {
    if (best_.op(id).parent != best_.func(best_.entry).body) return false;
    hlo::Module trial = best_.clone();
    for (ValueId v : llvm::SmallVector<ValueId, 2>(trial.op(id).results.begin(), trial.op(id).results.end())) {
      ValueId arg = trial.addArg(trial.func(trial.entry).body, trial.value(v).type, hlo::LocId());
      hlo::Port port;
      port.sharding = trial.value(v).sharding;
      if (const hlo::Attr* a = trial.findAttr(id, hlo::AttrKey::sharding)) port.sharding = a->sharding;
      entry(trial).arg_ports.push_back(port);
      trial.replaceAllUses(v, arg);
    }
    trial.erase(id);
    return take(std::move(trial));
  }

  bool dropShardings() {
    bool any = false;
    for (bool results : {false, true}) {
      size_t n = results ? entry(best_).result_ports.size() : entry(best_).arg_ports.size();
      for (size_t i = 0; i < n; ++i) {
        hlo::Module trial = best_.clone();
        hlo::Port& port = results ? entry(trial).result_ports[i] : entry(trial).arg_ports[i];
        if (!port.sharding) continue;
        port.sharding = hlo::ShardingId();
        any |= take(std::move(trial));
      }
    }
    return any;
  }

  bool dropArguments() {
    bool any = false;
    for (size_t i = entry(best_).arg_ports.size(); i-- > 0;) {
      hlo::Module trial = best_.clone();
      hlo::RegionId body = entry(trial).body;
      auto& args = trial.region(body).args;
      if (!hlo::Uses(trial).unused(args[i])) continue;
      args.erase(args.begin() + i);
      for (size_t k = i; k < args.size(); ++k) trial.value(args[k]).index = static_cast<uint32_t>(k);
      entry(trial).arg_ports.erase(entry(trial).arg_ports.begin() + i);
      any |= take(std::move(trial));
    }
    return any;
  }

  hlo::Module best_;
  llvm::function_ref<bool(const hlo::Module&)> fails_;
};

}  // namespace

hlo::Module shrink(const hlo::Module& whole, llvm::function_ref<bool(const hlo::Module&)> fails) {
  return Shrinker(whole, fails).run();
}

size_t countOps(const hlo::Module& m) {
  size_t n = 0;
  hlo::walk(m, [&](OpId id) { n += !hlo::hasTrait(m.op(id).opcode, hlo::kTerminator); });
  return n;
}

}  // namespace tpu::partition
