// The registry behind ruleFor: one builder per family of operations.
#pragma once
#include "tpu/sharding/rules.h"

namespace tpu::sharding {

/// Reads one op while its rule is built.
struct RuleInput {
  const hlo::Module& m;
  hlo::OpId id;
  const hlo::Op& op;
  int variant = 0;
  const hlo::Type& operand(size_t i) const { return m.typeOf(op.operands[i]); }
  const hlo::Type& result(size_t i) const { return m.typeOf(op.results[i]); }
};

using RuleFn = void (*)(const RuleInput&, OpRule&);

void elementwiseRule(const RuleInput&, OpRule&);
void broadcastRule(const RuleInput&, OpRule&);
void reshapeRule(const RuleInput&, OpRule&);
void transposeRule(const RuleInput&, OpRule&);
void creationRule(const RuleInput&, OpRule&);
void dotRule(const RuleInput&, OpRule&);
void convolutionRule(const RuleInput&, OpRule&);
void reduceRule(const RuleInput&, OpRule&);
void windowRule(const RuleInput&, OpRule&);
void selectAndScatterRule(const RuleInput&, OpRule&);
void gatherRule(const RuleInput&, OpRule&);
void scatterRule(const RuleInput&, OpRule&);
void sliceRule(const RuleInput&, OpRule&);
void padRule(const RuleInput&, OpRule&);
void concatenateRule(const RuleInput&, OpRule&);
void reverseRule(const RuleInput&, OpRule&);
void dynamicSliceRule(const RuleInput&, OpRule&);
void dynamicUpdateSliceRule(const RuleInput&, OpRule&);
void sortRule(const RuleInput&, OpRule&);
void matrixRule(const RuleInput&, OpRule&);
void fftRule(const RuleInput&, OpRule&);
void collectiveRule(const RuleInput&, OpRule&);
void batchNormRule(const RuleInput&, OpRule&);
void identityRule(const RuleInput&, OpRule&);
void rngRule(const RuleInput&, OpRule&);
void customCallRule(const RuleInput&, OpRule&);

/// Adds one factor per dim of `type`, shared with every listed tensor of the same dims.
void shareAllDims(OpRule& rule, const hlo::Type& type, llvm::ArrayRef<TensorFactors*> tensors);
/// Resizes operand and result maps to the op's ranks, all dims whole.
void emptyMaps(const RuleInput& in, OpRule& rule);

}  // namespace tpu::sharding
