// Contractions beyond dot_general: einsum by its text, ragged dots group by group, rows by index.
#include <algorithm>
#include <map>

#include "values.h"

namespace tpu::eval {
namespace {

// The sum of an array over one dimension.
Tensor summed(const Call& call, const Tensor& t, int64_t dim) {
  const Tensor zero = scalarOf(t->element, 0);
  if (Tensor out = foldSingle(Opcode::add, t, {dim}, zero)) return out;
  return nullptr;
}

Tensor boxOf(const Tensor& t, int64_t dim, int64_t begin, int64_t end) {
  Dims start(t->dims.size(), 0), limit = t->dims;
  start[dim] = begin;
  limit[dim] = end;
  return sliced(t, start, limit, {});
}

void copyInto(const HostTensor& part, HostTensor& whole, int64_t dim, int64_t at) {
  const std::vector<int64_t> strides = rowMajorStrides(whole.dims);
  const int width = hostBytes(whole.element);
  if (part.bytes.empty()) return;
  stridedCopy(part.dims, width, part.bytes.data(), rowMajorStrides(part.dims),
              whole.bytes.data() + at * strides[dim] * width, strides);
}

struct Labels {
  std::string lhs, rhs, out;
};

// "ij,jk->ik"; "..." is left to broadcasting ops and refused.
std::optional<Labels> labelsOf(llvm::StringRef text) {
  const auto [inputs, out] = text.split("->");
  const auto [lhs, rhs] = inputs.split(',');
  if (!text.contains("->") || text.contains("...")) return std::nullopt;
  return Labels{lhs.trim().str(), rhs.trim().str(), out.trim().str()};
}

// Sums what appears on one side alone and not in the result, so that all else is batch, contracted or free.
Tensor dropUnused(const Call& call, Tensor t, std::string& labels, const std::string& other,
                  const std::string& out) {
  for (size_t i = labels.size(); i-- > 0;) {
    if (other.find(labels[i]) != std::string::npos || out.find(labels[i]) != std::string::npos) continue;
    t = summed(call, t, static_cast<int64_t>(i));
    if (!t) return t;
    labels.erase(i, 1);
  }
  return t;
}

Tensor ordered(const Tensor& t, const std::string& from, const std::string& to) {
  Dims permutation;
  for (char c : to) permutation.push_back(static_cast<int64_t>(from.find(c)));
  return transposed(t, permutation);
}

}  // namespace

Outcome einsum(Call& call) {
  const llvm::StringRef text = call.module.getString(call.id, AttrKey::einsum_config);
  auto labels = labelsOf(text);
  const bool unary = call.in.size() == 1;
  if (!labels || labels->lhs.size() != call.in[0]->dims.size() ||
      (!unary && labels->rhs.size() != call.in[1]->dims.size()))
    return unsupported(call, "'" + text + "'");
  Tensor lhs = dropUnused(call, call.in[0], labels->lhs, unary ? "" : labels->rhs, labels->out);
  if (!lhs) return unsupported(call, "'" + text + "' on " + elementTypeName(call.in[0]->element));
  if (unary) return Tensors{convertTo(ordered(lhs, labels->lhs, labels->out), call.resultElement())};
  Tensor rhs = dropUnused(call, call.in[1], labels->rhs, labels->lhs, labels->out);
  if (!rhs) return unsupported(call, "'" + text + "' on " + elementTypeName(call.in[1]->element));
  Contraction c;
  std::string made, right;
  for (size_t i = 0; i < labels->lhs.size(); ++i) {
    const char l = labels->lhs[i];
    const size_t j = labels->rhs.find(l);
    if (j == std::string::npos) continue;
    const bool kept = labels->out.find(l) != std::string::npos;
    (kept ? c.lhs_batch : c.lhs_contract).push_back(static_cast<int64_t>(i));
    (kept ? c.rhs_batch : c.rhs_contract).push_back(static_cast<int64_t>(j));
    if (kept) made += l;
  }
  for (char l : labels->lhs)
    if (labels->rhs.find(l) == std::string::npos) made += l;
  for (char l : labels->rhs)
    if (labels->lhs.find(l) == std::string::npos) made += l;
  const Tensor product = contract(lhs, rhs, c, call.resultElement(), !call.stepwise);
  if (made.size() != labels->out.size()) return unsupported(call, "'" + text + "'");
  return Tensors{ordered(product, made, labels->out)};
}

// The ragged dimension of lhs is cut into groups of the given sizes. Where it is free, each group has a
// matrix of rhs of its own; where it is contracted, each group gives a matrix of the result; where it is a
// batch dimension, groups change nothing. Rows beyond the last group are zero.
Outcome raggedDot(Call& call) {
  const auto dims = [&](AttrKey key) { return Dims(call.ints(key).begin(), call.ints(key).end()); };
  const Contraction c{dims(AttrKey::lhs_batching_dimensions), dims(AttrKey::rhs_batching_dimensions),
                      dims(AttrKey::lhs_contracting_dimensions), dims(AttrKey::rhs_contracting_dimensions)};
  const Tensor &lhs = call.in[0], &rhs = call.in[1];
  const Dims ragged = dims(AttrKey::lhs_ragged_dimensions), group = dims(AttrKey::rhs_group_dimensions);
  if (ragged.size() != 1 || group.size() > 1) return unsupported(call, "with these dimensions");
  const Dims sizes = integersOf(*call.in[2]);
  const int64_t r = ragged[0], groups = static_cast<int64_t>(sizes.size());
  const ElementType element = call.resultElement();
  if (llvm::is_contained(c.lhs_batch, r)) return Tensors{contract(lhs, rhs, c, element, !call.stepwise)};
  const bool contracted = llvm::is_contained(c.lhs_contract, r);
  if (call.in[2]->rank() != 1 || (!contracted && group.empty()))
    return unsupported(call, "with these group sizes");
  Tensor out = makeTensor(element, call.resultType().dims);
  // Where the ragged dimension stands in the result: after the batch dims, in order of lhs's free dims.
  int64_t place = static_cast<int64_t>(c.lhs_batch.size());
  for (int64_t d = 0; d < r; ++d)
    if (!llvm::is_contained(c.lhs_batch, d) && !llvm::is_contained(c.lhs_contract, d)) ++place;
  Contraction inner = c;
  if (!contracted)  // the group dim of rhs goes away
    for (Dims* side : {&inner.rhs_batch, &inner.rhs_contract})
      for (int64_t& d : *side) d -= d > group[0];
  int64_t begin = 0;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t end = std::min(begin + std::max<int64_t>(sizes[g], 0), lhs->dims[r]);
    const Tensor rows = boxOf(lhs, r, begin, end);
    if (contracted) {
      const auto at = std::find(c.lhs_contract.begin(), c.lhs_contract.end(), r) - c.lhs_contract.begin();
      Tensor product = contract(rows, boxOf(rhs, c.rhs_contract[at], begin, end), c, element, !call.stepwise);
      Dims with_group{1};
      with_group.append(product->dims.begin(), product->dims.end());
      copyInto(*reshaped(product, with_group), *out, 0, g);
    } else {
      Dims without;
      for (int64_t d = 0; d < rhs->rank(); ++d)
        if (d != group[0]) without.push_back(rhs->dims[d]);
      const Tensor matrix = reshaped(boxOf(rhs, group[0], g, g + 1), without);
      copyInto(*contract(rows, matrix, inner, element, !call.stepwise), *out, place, begin);
    }
    begin = end;
  }
  return Tensors{out};
}

// Rows of `dim` chosen by an index tensor whose first batch_dims dims run along with the operand's.
Outcome torchIndexSelect(Call& call) {
  const Tensor &in = call.in[0], &index = call.in[1];
  const int64_t dim = call.integer(AttrKey::dimension), batch = call.integer(AttrKey::batch_dims);
  Dims dims(in->dims.begin(), in->dims.begin() + dim);
  dims.append(index->dims.begin() + batch, index->dims.end());
  dims.append(in->dims.begin() + dim + 1, in->dims.end());
  Tensor out = makeTensor(in->element, dims);
  int64_t batches = 1, middle = 1, after = 1, picks = 1;
  for (int64_t d = 0; d < in->rank(); ++d)
    (d < batch ? batches : d < dim ? middle : after) *= d == dim ? 1 : in->dims[d];
  for (int64_t d = batch; d < index->rank(); ++d) picks *= index->dims[d];
  const int64_t bytes = after * hostBytes(in->element), rows = in->dims[dim];
  if (rows == 0) return Tensors{out};
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t m = 0; m < middle; ++m)
      for (int64_t p = 0; p < picks; ++p) {
        const int64_t at = std::clamp<int64_t>(integerAt(*index, b * picks + p), 0, rows - 1);
        std::copy_n(in->bytes.data() + ((b * middle + m) * rows + at) * bytes, bytes,
                    out->bytes.data() + ((b * middle + m) * picks + p) * bytes);
      }
  return Tensors{out};
}

}  // namespace tpu::eval
