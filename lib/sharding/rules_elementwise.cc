// Rules of operations that map elements one to one: elementwise, identity, creation, batch normalisation,
// random numbers.
#include "rules.h"

namespace tpu::sharding {

void elementwiseRule(const RuleInput& in, OpRule& rule) {
  llvm::SmallVector<TensorFactors*, 4> tensors;
  for (TensorFactors& t : rule.operands) tensors.push_back(&t);
  for (TensorFactors& t : rule.results) tensors.push_back(&t);
  shareAllDims(rule, in.result(0), tensors);
}

void identityRule(const RuleInput& in, OpRule& rule) {
  if (in.op.opcode == hlo::Opcode::map) return elementwiseRule(in, rule);
  for (size_t i = 0; i < in.op.results.size() && i < in.op.operands.size(); ++i) {
    shareAllDims(rule, in.result(i), {&rule.operands[i], &rule.results[i]});
  }
}

void creationRule(const RuleInput& in, OpRule& rule) { shareAllDims(rule, in.result(0), {&rule.results[0]}); }


void batchNormRule(const RuleInput& in, OpRule& rule) {
  // Statistics need whole batch and spatial dims in training and gradient; inference is elementwise.
  int64_t feature = in.m.getInt(in.id, hlo::AttrKey::feature_index);
  bool inference = in.op.opcode == hlo::Opcode::batch_norm_inference;
  const hlo::Type& x = in.operand(0);
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != feature && !inference) continue;
    int f = rule.addFactor(x.dims[d]);
    auto map = [&](TensorFactors& t) {
      if (static_cast<int64_t>(t.size()) == x.rank()) {
        t[d].push_back(f);
      } else if (d == feature) {
        t[0].push_back(f);
      }
    };
    for (TensorFactors& t : rule.operands) map(t);
    for (TensorFactors& t : rule.results) map(t);
  }
}

}  // namespace tpu::sharding
