// Regions on scalars (the bodies of reduce, sort, scatter and their kin) applied to whole vectors at once:
// every op of such a region is elementwise, so the region runs once per step of the algorithm instead of once
// per element.
#include "llvm/ADT/DenseMap.h"
#include "tpu/eval/literal.h"
#include "values.h"

namespace tpu::eval {
namespace {

class BatchRun {
 public:
  BatchRun(const Call& call, int64_t length) : call_(call), length_(length) {}

  Outcome run(hlo::RegionId region, llvm::ArrayRef<Tensor> args) {
    const hlo::Region& r = call_.module.region(region);
    for (size_t i = 0; i < args.size(); ++i) values_[r.args[i].v] = args[i];
    for (hlo::OpId id : r.ops) {
      llvm::SmallVector<Tensor, 4> in;
      for (hlo::ValueId v : call_.module.op(id).operands) {
        Tensor t = lookUp(v);
        if (!t)
          return fail(Code::kEvalUnsupported, call_.loc(),
                      "a region uses a value that is not available here");
        in.push_back(std::move(t));
      }
      if (call_.module.op(id).opcode == Opcode::return_) return Tensors(in.begin(), in.end());
      Outcome out = step(id, in);
      if (!out) return out;
      const auto& results = call_.module.op(id).results;
      for (size_t i = 0; i < results.size(); ++i) values_[results[i].v] = (*out)[i];
    }
    return Tensors{};
  }

 private:
  Tensor lookUp(hlo::ValueId v) {
    const auto it = values_.find(v.v);
    if (it != values_.end()) return it->second;
    const Tensor outer = call_.captures(v);
    return outer ? splatTo(outer, {length_}) : nullptr;
  }

  Outcome step(hlo::OpId id, llvm::MutableArrayRef<Tensor> in) {
    Call inner{call_.module, id, in, call_.captures, call_.stepwise};
    const Opcode op = inner.opcode();
    if (op == Opcode::constant) return Tensors{splatTo(literalTensor(call_.module, id), {length_})};
    if (op == Opcode::call || op == Opcode::composite) {
      const llvm::StringRef name =
          call_.module.getString(id, op == Opcode::call ? AttrKey::callee : AttrKey::decomposition);
      const hlo::FuncId callee = call_.module.findFunc(name);
      if (!callee) return badOperand(inner, "no function '" + name + "'");
      return run(call_.module.func(callee).body, in);
    }
    if (hlo::hasTrait(op, hlo::kElementwise) || op == Opcode::bitcast_convert) return runKernel(inner);
    // Scalars to scalars.
    const bool scalars =
        llvm::all_of(inner.op().results, [&](hlo::ValueId v) { return call_.module.typeOf(v).rank() == 0; });
    if (scalars && (op == Opcode::reshape || op == Opcode::broadcast_in_dim || op == Opcode::optimization_barrier ||
                    op == Opcode::sdy_sharding_constraint || op == Opcode::sdy_reshard ||
                    op == Opcode::sdy_propagation_barrier))
      return Tensors(in.begin(), in.end());
    return unsupported(inner, "inside the region of " + call_.name());
  }

  const Call& call_;
  const int64_t length_;
  llvm::DenseMap<uint32_t, Tensor> values_;
};

}  // namespace

Outcome runBatched(const Call& call, hlo::RegionId region, llvm::ArrayRef<Tensor> args) {
  return BatchRun(call, args[0]->numElements()).run(region, args);
}

}  // namespace tpu::eval
