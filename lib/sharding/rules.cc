// The registry of factor rules and the two mappings between factors and tensor dimensions.
#include "rules.h"

namespace tpu::sharding {

using hlo::Opcode;

int OpRule::addFactor(int64_t size, FactorKind kind, bool even) {
  factors.push_back({size, kind, even});
  return static_cast<int>(factors.size()) - 1;
}

void emptyMaps(const RuleInput& in, OpRule& rule) {
  rule.operands.resize(in.op.operands.size());
  rule.results.resize(in.op.results.size());
  for (size_t i = 0; i < in.op.operands.size(); ++i) rule.operands[i].resize(in.operand(i).rank());
  for (size_t i = 0; i < in.op.results.size(); ++i) rule.results[i].resize(in.result(i).rank());
}

void shareAllDims(OpRule& rule, const hlo::Type& type, llvm::ArrayRef<TensorFactors*> tensors) {
  for (int64_t d = 0; d < type.rank(); ++d) {
    int f = rule.addFactor(type.dims[d]);
    for (TensorFactors* t : tensors) {
      if (static_cast<int64_t>(t->size()) == type.rank()) (*t)[d].push_back(f);
    }
  }
}

namespace {

struct Row {
  Opcode opcode;
  RuleFn fn;
};

// Elementwise operations are found by their trait and are not listed.
constexpr Row kRules[] = {
    {Opcode::broadcast, broadcastRule},
    {Opcode::broadcast_in_dim, broadcastRule},
    {Opcode::reshape, reshapeRule},
    {Opcode::bitcast_convert, reshapeRule},
    {Opcode::transpose, transposeRule},
    {Opcode::constant, creationRule},
    {Opcode::chlo_constant, creationRule},
    {Opcode::iota, creationRule},
    {Opcode::map, identityRule},
    {Opcode::dot_general, dotRule},
    {Opcode::dot, dotRule},
    {Opcode::convolution, convolutionRule},
    {Opcode::reduce, reduceRule},
    {Opcode::reduce_window, windowRule},
    {Opcode::select_and_scatter, selectAndScatterRule},
    {Opcode::gather, gatherRule},
    {Opcode::scatter, scatterRule},
    {Opcode::slice, sliceRule},
    {Opcode::pad, padRule},
    {Opcode::concatenate, concatenateRule},
    {Opcode::reverse, reverseRule},
    {Opcode::dynamic_slice, dynamicSliceRule},
    {Opcode::dynamic_update_slice, dynamicUpdateSliceRule},
    {Opcode::sort, sortRule},
    {Opcode::chlo_top_k, sortRule},
    {Opcode::cholesky, matrixRule},
    {Opcode::triangular_solve, matrixRule},
    {Opcode::fft, fftRule},
    {Opcode::all_gather, collectiveRule},
    {Opcode::all_reduce, collectiveRule},
    {Opcode::all_to_all, collectiveRule},
    {Opcode::collective_permute, collectiveRule},
    {Opcode::collective_broadcast, collectiveRule},
    {Opcode::reduce_scatter, collectiveRule},
    {Opcode::cross_replica_sum, collectiveRule},
    {Opcode::batch_norm_inference, batchNormRule},
    {Opcode::batch_norm_training, batchNormRule},
    {Opcode::batch_norm_grad, batchNormRule},
    {Opcode::optimization_barrier, identityRule},
    {Opcode::sdy_sharding_constraint, identityRule},
    {Opcode::sdy_reshard, identityRule},
    {Opcode::sdy_propagation_barrier, identityRule},
    {Opcode::rng, rngRule},
    {Opcode::rng_bit_generator, rngRule},
    {Opcode::custom_call, customCallRule},
};

RuleFn findRule(Opcode opcode) {
  static const auto table = [] {
    std::vector<RuleFn> fns(static_cast<size_t>(Opcode::chlo_broadcast_select) + 1, nullptr);
    for (size_t i = 0; i < fns.size(); ++i) {
      if (hlo::hasTrait(static_cast<Opcode>(i), hlo::kElementwise)) fns[i] = elementwiseRule;
    }
    for (const Row& r : kRules) fns[static_cast<size_t>(r.opcode)] = r.fn;
    return fns;
  }();
  size_t i = static_cast<size_t>(opcode);
  return i < table.size() ? table[i] : nullptr;
}

}  // namespace

int numVariants(Opcode opcode) {
  switch (opcode) {
    case Opcode::slice:
    case Opcode::dynamic_update_slice:
    case Opcode::sort:
    case Opcode::convolution:
      return 2;
    default:
      return 1;
  }
}

bool hasRule(Opcode opcode) { return findRule(opcode) != nullptr; }

OpRule ruleFor(const hlo::Module& m, hlo::OpId id, int variant) {
  OpRule rule;
  RuleInput in{m, id, m.op(id), variant};
  emptyMaps(in, rule);
  if (RuleFn fn = findRule(in.op.opcode)) {
    fn(in, rule);
  } else {
    rule.note = "no sharding rule for " + hlo::opInfo(in.op.opcode).name.str();
  }
  return rule;
}

bool project(const OpRule& rule, const TensorFactors& tensor, llvm::ArrayRef<hlo::DimSharding> dims,
             FactorAxes& axes) {
  axes.assign(rule.factors.size(), Axes());
  bool whole = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].axes.empty()) continue;
    Axes rest(dims[d].axes.begin(), dims[d].axes.end());
    const DimFactors& fs = tensor[d];
    for (size_t k = 0; k < fs.size() && !rest.empty(); ++k) {
      const Factor& f = rule.factors[fs[k]];
      if (f.kind == FactorKind::kReplicate) break;
      Axes taken, left;
      if (k + 1 == fs.size() && (!f.even || f.size % product(rest) == 0)) {
        axes[fs[k]] = rest;
        rest.clear();
        break;
      }
      // A major factor is filled before the next one starts; a part of it that divides is kept where it
      // cannot be filled.
      if (f.size == 1) continue;
      if (takeProduct(rest, f.size, taken, left)) {
        axes[fs[k]] = taken;
        rest = left;
        continue;
      }
      Axes part;
      for (const AxisRef& a : rest) {
        if (f.size % (product(part) * a.size) != 0) break;
        append(part, a);
      }
      axes[fs[k]] = part;
      rest = dropPrefix(rest, part);
      break;
    }
    whole &= rest.empty();
  }
  return whole;
}

llvm::SmallVector<Axes, 4> dimsOf(const OpRule& rule, const TensorFactors& tensor, const FactorAxes& axes) {
  llvm::SmallVector<Axes, 4> out(tensor.size());
  for (size_t d = 0; d < tensor.size(); ++d) {
    for (int16_t f : tensor[d]) {
      append(out[d], AxesRef(axes[f]));
      if (product(axes[f]) != rule.factors[f].size) break;
    }
  }
  return out;
}

}  // namespace tpu::sharding
