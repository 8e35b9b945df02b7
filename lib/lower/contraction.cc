// dot_general becomes a batched matrix product [B,M,K] x [B,K,N]: operands are permuted where their dims stand otherwise,
// contracting dims keep the order in which the left operand has them.
#include <algorithm>

#include "lowering.h"

namespace tpu::lower {

using hlo::AttrKey;
using HloOp = hlo::Opcode;

namespace {

using Ints = llvm::SmallVector<int64_t, 6>;

Ints rest(int64_t rank, llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  Ints out;
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(a, d) && !llvm::is_contained(b, d)) out.push_back(d);
  return out;
}

int64_t sizeOf(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> which) {
  int64_t n = 1;
  for (int64_t d : which) n *= dims[d];
  return n;
}

Ints joined(std::initializer_list<llvm::ArrayRef<int64_t>> parts) {
  Ints out;
  for (llvm::ArrayRef<int64_t> p : parts) out.append(p.begin(), p.end());
  return out;
}

// Dims of size 1 may stand anywhere.
bool inOrder(llvm::ArrayRef<int64_t> perm, llvm::ArrayRef<int64_t> dims) {
  int64_t last = -1;
  for (int64_t d : perm) {
    if (dims[d] == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

}  // namespace

llvm::Expected<int32_t> Lowering::permuted(hlo::ValueId v, llvm::ArrayRef<int64_t> perm, llvm::ArrayRef<int64_t> dims_after) {
  const hlo::Type& t = typeOf(v);
  if (inOrder(perm, t.dims)) return form(v, dims_after);
  auto src = form(v);
  if (!src) return src;
  Dims dims;
  for (int64_t d : perm) dims.push_back(t.dims[d]);
  int32_t out = tempBuffer(t.element, dims);
  if (auto err = transposeInto(*src, t.dims, perm, out)) return err;
  if (sameBytes(t.element, dims, dims_after)) return out;
  int32_t shaped = tempBuffer(t.element, dims_after);
  if (auto err = relayout(out, dims, shaped, dims_after)) return err;
  return shaped;
}

llvm::Error Lowering::lowerDot(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  hlo::ValueId lhs = op.operands[0], rhs = op.operands[1], result = op.results[0];
  const hlo::Type &lt = typeOf(lhs), &rt = typeOf(rhs), &ot = typeOf(result);
  Ints lb(m_.getInts(id, AttrKey::lhs_batching_dimensions)), rb(m_.getInts(id, AttrKey::rhs_batching_dimensions));
  Ints lc(m_.getInts(id, AttrKey::lhs_contracting_dimensions)), rc(m_.getInts(id, AttrKey::rhs_contracting_dimensions));
  if (op.opcode == HloOp::dot) {
    lc = {lt.rank() - 1};
    rc = {rt.rank() > 1 ? rt.rank() - 2 : 0};
  }
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t i = 0; i < lc.size(); ++i) pairs.push_back({lc[i], rc[i]});
  std::sort(pairs.begin(), pairs.end());
  for (size_t i = 0; i < lc.size(); ++i) std::tie(lc[i], rc[i]) = pairs[i];
  Ints lm = rest(lt.rank(), lb, lc), rn = rest(rt.rank(), rb, rc);
  DotSpec spec;
  spec.batch = sizeOf(lt.dims, lb);
  spec.m = sizeOf(lt.dims, lm);
  spec.k = sizeOf(lt.dims, lc);
  spec.n = sizeOf(rt.dims, rn);
  spec.out = ot.element;
  out_.required_flops += static_cast<int64_t>(2.0 * trips_) * spec.batch * spec.m * spec.n * spec.k;
  auto left = permuted(lhs, joined({lb, lm, lc}), {spec.batch, spec.m, spec.k});
  if (!left) return left.takeError();
  bool plain = inOrder(joined({rb, rc, rn}), rt.dims);
  spec.rhs_transposed = !plain && inOrder(joined({rb, rn, rc}), rt.dims);
  Dims rhs_dims = spec.rhs_transposed ? Dims{spec.batch, spec.n, spec.k} : Dims{spec.batch, spec.k, spec.n};
  auto right = permuted(rhs, spec.rhs_transposed ? joined({rb, rn, rc}) : joined({rb, rc, rn}), rhs_dims);
  if (!right) return right.takeError();

  // Operands of one type that the machine multiplies; others are widened first, s32 products are vector code.
  auto matrixType = [](ElementType t) { return t == ElementType::kF32 || t == ElementType::kBF16 || t == ElementType::kS8 || t == ElementType::kU8; };
  ElementType common = lt.element;
  if (lt.element != rt.element || !matrixType(lt.element)) common = isFloat(lt.element) || isFloat(rt.element) ? ElementType::kF32 : ElementType::kS32;
  if ((common == ElementType::kS8 || common == ElementType::kU8) && ot.element != ElementType::kS32 && ot.element != ElementType::kU32) common = ElementType::kS32;
  Dims lhs_dims = {spec.batch, spec.m, spec.k};
  auto as = [&](int32_t buffer, llvm::ArrayRef<int64_t> dims) -> llvm::Expected<int32_t> {
    if (out_.buffers[buffer].element == common) return buffer;
    int32_t out = tempBuffer(common, dims);
    if (auto err = convertBuffer(buffer, out, dims)) return err;
    return out;
  };
  auto l = as(*left, lhs_dims);
  if (!l) return l.takeError();
  auto r = as(*right, rhs_dims);
  if (!r) return r.takeError();
  spec.lhs = spec.rhs = common;

  Dims out_dims = {spec.batch, spec.m, spec.n};
  bool same = !ot.dims.empty() && sameBytes(ot.element, out_dims, ot.dims);
  int32_t out = same ? resultBuffer(result, ot.dims) : tempBuffer(ot.element, out_dims);
  uint32_t slot = internLoc(locOf(id));
  if (spec.k == 0) {
    if (auto err = fillBuffer(out, same ? ot.dims : out_dims, 0)) return err;
    addForm(result, out, same ? ot.dims : out_dims);
    return llvm::Error::success();
  }
  if (common == ElementType::kS32) {
    ReduceSpec sum;
    sum.producer.shape = {spec.batch, spec.m, spec.k, spec.n};
    sum.producer.inputs = {{common, {spec.batch, spec.m, spec.k, 1}, false}, {common, {spec.batch, 1, spec.k, spec.n}, false}};
    if (spec.rhs_transposed) {
      sum.producer.shape = {spec.batch, spec.m, spec.n, spec.k};
      sum.producer.inputs = {{common, {spec.batch, spec.m, 1, spec.k}, false}, {common, {spec.batch, 1, spec.n, spec.k}, false}};
    }
    ExprNode a, b, mul, add;
    a.kind = b.kind = ExprNode::kInput;
    a.type = b.type = mul.type = add.type = common;
    b.index = 1;
    mul.op = HloOp::multiply;
    mul.args = {0, 1};
    add.args = {0, 1};
    sum.producer.nodes = {a, b, mul};
    sum.producer.outputs = {2};
    sum.reduced.assign(4, false);
    sum.reduced[spec.rhs_transposed ? 3 : 2] = true;
    sum.combiner = {a, b, add};
    sum.combined = {2};
    sum.init_bits = {0};
    int32_t wl = tempBuffer(common, sum.producer.inputs[0].dims), wr = tempBuffer(common, sum.producer.inputs[1].dims);
    if (auto err = relayout(*l, lhs_dims, wl, sum.producer.inputs[0].dims)) return err;
    if (auto err = relayout(*r, rhs_dims, wr, sum.producer.inputs[1].dims)) return err;
    auto kernel = kernelFor(sum, "integer_dot", &emitReduce);
    if (!kernel) return kernel.takeError();
    Dims kept = sum.producer.shape;
    kept[spec.rhs_transposed ? 3 : 2] = 1;
    int32_t total = tempBuffer(common, kept);
    callKernel(*kernel, {wl, wr, total}, {slot});
    int32_t shaped = ot.element == common ? out : tempBuffer(common, out_dims);
    if (auto err = relayout(total, kept, shaped, out_dims)) return err;
    if (shaped != out)
      if (auto err = convertBuffer(shaped, out, out_dims)) return err;
  } else {
    if (common == ElementType::kF32) {
      spec.passes = options_.default_passes;
      if (const hlo::Attr* p = m_.findAttr(id, AttrKey::precision_config))
        for (const std::string& s : p->strs) spec.passes = std::max(spec.passes, s == "HIGHEST" ? 6 : s == "HIGH" ? 3 : 1);
    }
    auto kernel = kernelFor(spec, "dot_general", &emitDot);
    if (!kernel) return kernel.takeError();
    callKernel(*kernel, {*l, *r, out}, {slot});
  }
  addForm(result, out, out_dims);
  return llvm::Error::success();
}

}  // namespace tpu::lower
