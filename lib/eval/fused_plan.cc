// Which ops of a region run as one chain: an elementwise op takes in the elementwise ops whose results nobody
// else uses, and the broadcasts and filled constants that only elementwise ops use.
#include "fused.h"
#include "llvm/ADT/DenseMap.h"
#include "native.h"

namespace tpu::eval {
namespace {

using hlo::OpId;
using hlo::Type;
using hlo::ValueId;

constexpr size_t kMostSteps = 24;  // of a chain: its scratch memory stays in the second-level cache

bool plainType(const Type& t) {
  if (t.kind != hlo::TypeKind::kTensor || !t.encoding.empty() || isComplex(t.element)) return false;
  if (llvm::is_contained(t.dims, hlo::kDynamicDim)) return false;
  return isNative(t.element) || isFloat(t.element);
}

class Planner {
 public:
  Planner(const hlo::Module& module, hlo::RegionId region) : m_(module), region_(module.region(region)) {}

  FusionPlan run() {
    const size_t n = region_.ops.size();
    for (size_t i = 0; i < n; ++i) position_[region_.ops[i].v] = i;
    fusable_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      FusedStep ignored;
      fusable_[i] = describe(region_.ops[i], ignored);
    }
    for (size_t i = 0; i < n; ++i) countUses(region_.ops[i], i, true);
    FusionPlan plan;
    plan.chains.resize(n);
    plan.inside.resize(n);
    size_.assign(n, 1);
    joins_.assign(n, false);
    for (size_t i = 0; i < n; ++i)
      if (fusable_[i]) joinOperands(i);
    for (size_t i = 0; i < n; ++i) {
      plan.inside[i] = joins_[i] || (isLeaf(i) && onlyFusedUses(i));
      if (fusable_[i] && !joins_[i]) plan.chains[i] = chainOf(i);
    }
    return plan;
  }

 private:
  // The uses of a value: how many ops, the last of them, and whether all of them are fusable ops of this
  // region.
  struct Uses {
    int ops = 0;
    size_t user = 0;
    bool fused = true;
  };

  void countUses(OpId id, size_t at, bool direct) {
    const hlo::Op& op = m_.op(id);
    for (ValueId v : op.operands) {
      Uses& u = uses_[v.v];
      if (u.ops == 0 || u.user != at) ++u.ops;
      u.user = at;
      u.fused = u.fused && direct && fusable_[at] && typeOf(v).dims == resultType(id).dims;
    }
    for (hlo::RegionId r : op.regions)
      for (OpId inner : m_.region(r).ops) countUses(inner, at, false);
  }

  const Type& typeOf(ValueId v) const { return m_.typeOf(v); }
  const Type& resultType(OpId id) const { return m_.typeOf(m_.op(id).results[0]); }

  // Fills in the loops of an op; false where it cannot be part of a chain.
  bool describe(OpId id, FusedStep& step) const {
    const hlo::Op& op = m_.op(id);
    if (!hlo::hasTrait(op.opcode, hlo::kElementwise) || op.results.size() != 1 || op.operands.empty())
      return false;
    const Type& result = resultType(id);
    if (!plainType(result)) return false;
    for (ValueId v : op.operands) {
      const Type& t = typeOf(v);
      const bool scalar_pred = op.opcode == Opcode::select && v == op.operands[0] && t.dims.empty();
      if (!plainType(t) || (t.dims != result.dims && !scalar_pred)) return false;
    }
    step.from = typeOf(op.operands[op.opcode == Opcode::select ? 1 : 0]).element;
    step.to = result.element;
    const ElementType native = nativeType(step.from);
    switch (op.opcode) {
      case Opcode::select:
        step.kind = FusedStep::kSelect;
        return true;
      case Opcode::convert: {
        step.kind = FusedStep::kConvert;
        const ElementType middle = isNative(step.to) ? step.to : ElementType::kF64;
        step.unary = findConvert(native, middle);
        return step.unary != nullptr;
      }
      case Opcode::compare: {
        const auto* direction = m_.findAttr(id, AttrKey::comparison_direction);
        const auto* kind = m_.findAttr(id, AttrKey::compare_type);
        const bool total = kind && static_cast<hlo::CompareType>(kind->i) == hlo::CompareType::kTotalOrder;
        step.kind = FusedStep::kBinary;
        if (direction) step.binary = findCompare(static_cast<hlo::Comparison>(direction->i), native, total);
        return step.binary != nullptr;
      }
      case Opcode::clamp:
      case Opcode::reduce_precision:
        return false;
      default:
        break;
    }
    if (op.operands.size() == 1) {
      step.kind = FusedStep::kUnary;
      step.unary = findUnary(op.opcode, native);
      return step.unary != nullptr;
    }
    if (op.operands.size() != 2) return false;
    step.kind = FusedStep::kBinary;
    step.binary = findBinary(op.opcode, native);
    return step.binary != nullptr;
  }

  // A broadcast whose elements follow from the position by one division, or a constant that repeats one
  // element.
  bool isLeaf(size_t i) const {
    FusedSource ignored;
    return leafSource(region_.ops[i], ignored);
  }

  bool leafSource(OpId id, FusedSource& source) const {
    const hlo::Op& op = m_.op(id);
    if (op.opcode == Opcode::constant) {
      const hlo::LiteralId literal = m_.findAttr(id, AttrKey::value)->literal;
      source = {hlo::ValueId(), literal, resultType(id).element, 1, 1};
      return m_.literal(literal).splat && plainType(resultType(id));
    }
    if (op.opcode != Opcode::broadcast_in_dim) return false;
    const Type &in = typeOf(op.operands[0]), &out = resultType(id);
    if (!plainType(in) || !plainType(out) || in.element != out.element || in.numElements() == 0) return false;
    source = {op.operands[0], hlo::LiteralId(), in.element, 1, 1};
    const llvm::ArrayRef<int64_t> map = m_.getInts(id, AttrKey::broadcast_dimensions);
    int64_t before = -1;
    for (int64_t d = 0; d < in.rank(); ++d) {
      if (in.dims[d] == 1) continue;
      if (map[d] <= before) return false;  // transposes
      for (int64_t between = before + 1; before >= 0 && between < map[d]; ++between)
        if (out.dims[between] != 1) return false;
      source.count *= in.dims[d];
      before = map[d];
    }
    for (int64_t d = before + 1; before >= 0 && d < out.rank(); ++d) source.inner *= out.dims[d];
    return true;
  }

  bool onlyFusedUses(size_t i) const {
    const auto it = uses_.find(m_.op(region_.ops[i]).results[0].v);
    return it != uses_.end() && it->second.fused;
  }

  // The position of the op that makes v in this region.
  std::optional<size_t> madeAt(ValueId v) const {
    const OpId def = m_.value(v).def;
    if (!def.valid()) return std::nullopt;
    const auto it = position_.find(def.v);
    if (it == position_.end()) return std::nullopt;
    return it->second;
  }

  void joinOperands(size_t i) {
    for (ValueId v : m_.op(region_.ops[i]).operands) {
      const auto at = madeAt(v);
      if (!at || !fusable_[*at] || joins_[*at] || typeOf(v).dims != resultType(region_.ops[i]).dims) continue;
      const Uses& u = uses_[v.v];
      if (u.ops != 1 || !u.fused || size_[i] + size_[*at] > kMostSteps) continue;
      joins_[*at] = true;
      size_[i] += size_[*at];
    }
  }

  std::unique_ptr<FusedChain> chainOf(size_t end) {
    auto chain = std::make_unique<FusedChain>();
    chain->dims = resultType(region_.ops[end]).dims;
    bool spreads = false;
    llvm::DenseMap<uint32_t, int> made;
    addStep(end, *chain, made, spreads);
    assignSlots(*chain);
    // One op alone has its own way, unless it takes in broadcasts.
    if (chain->steps.size() == 1 && !spreads) return nullptr;
    return chain;
  }

  int addStep(size_t i, FusedChain& chain, llvm::DenseMap<uint32_t, int>& made, bool& spreads) {
    const OpId id = region_.ops[i];
    FusedStep step;
    describe(id, step);
    for (ValueId v : m_.op(id).operands) {
      const auto at = madeAt(v);
      const bool same = typeOf(v).dims == chain.dims;
      if (const auto it = made.find(v.v); it != made.end()) {
        step.args.push_back(it->second);
      } else if (at && joins_[*at] && same && uses_[v.v].user == i) {
        step.args.push_back(addStep(*at, chain, made, spreads));
      } else {
        FusedSource source{v, hlo::LiteralId(), typeOf(v).element, 0, 1};
        if (!same) source.count = 1;  // the scalar of a select
        if (at && same && isLeaf(*at) && onlyFusedUses(*at)) {
          leafSource(region_.ops[*at], source);
          spreads = true;
        }
        const auto known = llvm::find(chain.sources, source);
        const int index = static_cast<int>(known - chain.sources.begin());
        if (known == chain.sources.end()) chain.sources.push_back(source);
        step.args.push_back(-1 - index);
      }
    }
    chain.steps.push_back(std::move(step));
    const int index = static_cast<int>(chain.steps.size()) - 1;
    made[m_.op(id).results[0].v] = index;
    return index;
  }

  // A slot is free again after the last step that reads it.
  static void assignSlots(FusedChain& chain) {
    llvm::SmallVector<int, 24> last(chain.steps.size(), -1);
    for (size_t i = 0; i < chain.steps.size(); ++i)
      for (int a : chain.steps[i].args)
        if (a >= 0) last[a] = static_cast<int>(i);
    llvm::SmallVector<int, 8> free;
    for (size_t i = 0; i < chain.steps.size(); ++i) {
      FusedStep& step = chain.steps[i];
      if (free.empty()) free.push_back(chain.slots++);
      step.slot = free.pop_back_val();
      llvm::SmallVector<int, 3> args(step.args);
      llvm::sort(args);
      args.erase(std::unique(args.begin(), args.end()), args.end());
      for (int a : args)
        if (a >= 0 && last[a] == static_cast<int>(i)) free.push_back(chain.steps[a].slot);
    }
  }

  const hlo::Module& m_;
  const hlo::Region& region_;
  llvm::DenseMap<uint32_t, size_t> position_;  // of the region's ops
  std::vector<bool> fusable_, joins_;
  std::vector<size_t> size_;
  llvm::DenseMap<uint32_t, Uses> uses_;
};

}  // namespace

FusionPlan planFusion(const hlo::Module& module, hlo::RegionId region) {
  return Planner(module, region).run();
}

}  // namespace tpu::eval
