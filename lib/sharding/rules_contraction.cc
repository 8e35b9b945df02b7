// Rules of dot_general, dot and convolution.
#include "rules.h"

namespace tpu::sharding {

using hlo::AttrKey;

namespace {

void freeDims(OpRule& rule, const hlo::Type& type, llvm::ArrayRef<int64_t> taken1,
              llvm::ArrayRef<int64_t> taken2, TensorFactors& from, TensorFactors& to, size_t& at) {
  for (int64_t d = 0; d < type.rank(); ++d) {
    if (llvm::is_contained(taken1, d) || llvm::is_contained(taken2, d)) continue;
    int f = rule.addFactor(type.dims[d]);
    from[d].push_back(f);
    to[at++].push_back(f);
  }
}

}  // namespace

void dotRule(const RuleInput& in, OpRule& rule) {
  llvm::SmallVector<int64_t, 4> lb(in.m.getInts(in.id, AttrKey::lhs_batching_dimensions));
  llvm::SmallVector<int64_t, 4> rb(in.m.getInts(in.id, AttrKey::rhs_batching_dimensions));
  llvm::SmallVector<int64_t, 4> lc(in.m.getInts(in.id, AttrKey::lhs_contracting_dimensions));
  llvm::SmallVector<int64_t, 4> rc(in.m.getInts(in.id, AttrKey::rhs_contracting_dimensions));
  const hlo::Type& lhs = in.operand(0);
  const hlo::Type& rhs = in.operand(1);
  if (in.op.opcode == hlo::Opcode::dot) {
    lc = {lhs.rank() - 1};
    rc = {0};
  }
  TensorFactors& out = rule.results[0];
  size_t at = 0;
  for (size_t i = 0; i < lb.size(); ++i) {
    int f = rule.addFactor(lhs.dims[lb[i]]);
    rule.operands[0][lb[i]].push_back(f);
    rule.operands[1][rb[i]].push_back(f);
    out[at++].push_back(f);
  }
  freeDims(rule, lhs, lb, lc, rule.operands[0], out, at);
  freeDims(rule, rhs, rb, rc, rule.operands[1], out, at);
  for (size_t i = 0; i < lc.size(); ++i) {
    int f = rule.addFactor(lhs.dims[lc[i]], FactorKind::kReduction);
    rule.operands[0][lc[i]].push_back(f);
    rule.operands[1][rc[i]].push_back(f);
  }
}

namespace {

int64_t at(llvm::ArrayRef<int64_t> list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

}  // namespace

void convolutionRule(const RuleInput& in, OpRule& rule) {
  const hlo::Module& m = in.m;
  auto get = [&](AttrKey key, int64_t otherwise = 0) { return m.getInt(in.id, key, otherwise); };
  TensorFactors &lhs = rule.operands[0], &rhs = rule.operands[1], &out = rule.results[0];
  const hlo::Type &x = in.operand(0), &k = in.operand(1);
  int64_t groups = get(AttrKey::feature_group_count, 1), batch_groups = get(AttrKey::batch_group_count, 1);
  int64_t ib = get(AttrKey::input_batch_dimension), ob = get(AttrKey::output_batch_dimension);
  int64_t xf = get(AttrKey::input_feature_dimension), of = get(AttrKey::output_feature_dimension);
  int64_t ki = get(AttrKey::kernel_input_feature_dimension),
          ko = get(AttrKey::kernel_output_feature_dimension);

  // Group factors are the major part of the dims that they divide.
  if (batch_groups > 1) {
    int f = rule.addFactor(batch_groups, FactorKind::kPass, true);
    for (DimFactors* d : {&lhs[ib], &rhs[ko], &out[of]}) d->push_back(f);
  }
  if (groups > 1) {
    int f = rule.addFactor(groups, FactorKind::kPass, true);
    for (DimFactors* d : {&lhs[xf], &rhs[ko], &out[of]}) d->push_back(f);
  }
  bool grouped = groups > 1 || batch_groups > 1;
  int batch = rule.addFactor(x.dims[ib] / batch_groups, FactorKind::kPass, batch_groups > 1);
  lhs[ib].push_back(batch);
  out[ob].push_back(batch);
  int outf = rule.addFactor(k.dims[ko] / (groups * batch_groups), FactorKind::kPass, grouped);
  rhs[ko].push_back(outf);
  out[of].push_back(outf);
  int inf = rule.addFactor(k.dims[ki], FactorKind::kReduction, groups > 1);
  lhs[xf].push_back(inf);
  rhs[ki].push_back(inf);

  auto is = m.getInts(in.id, AttrKey::input_spatial_dimensions),
       os = m.getInts(in.id, AttrKey::output_spatial_dimensions);
  auto ks = m.getInts(in.id, AttrKey::kernel_spatial_dimensions);
  auto strides = m.getInts(in.id, AttrKey::window_strides), pads = m.getInts(in.id, AttrKey::padding);
  auto ld = m.getInts(in.id, AttrKey::lhs_dilation);
  auto reversal = m.getInts(in.id, AttrKey::window_reversal);
  for (size_t s = 0; s < is.size(); ++s) {
    if (in.variant == 1) {
      if (at(reversal, s, 0) != 0 || k.dims[ks[s]] <= 1 || x.dims[is[s]] <= 1) continue;
      int f = rule.addFactor(k.dims[ks[s]], FactorKind::kReduction, true);
      rule.factors[f].shifted = true;
      lhs[is[s]].push_back(f);
      rhs[ks[s]].push_back(f);
      continue;
    }
    bool plain = k.dims[ks[s]] == 1 && at(strides, s, 1) == 1 && at(ld, s, 1) == 1 &&
                 at(pads, 2 * s, 0) == 0 && at(pads, 2 * s + 1, 0) == 0;
    if (x.dims[is[s]] <= 1 || in.result(0).dims[os[s]] <= 1) continue;
    int f = rule.addFactor(in.result(0).dims[os[s]], plain ? FactorKind::kPass : FactorKind::kNeighbour);
    lhs[is[s]].push_back(f);
    out[os[s]].push_back(f);
  }
}

}  // namespace tpu::sharding
