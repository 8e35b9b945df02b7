// dot_general and dot: both sides brought to [batch, rows, k] and [batch, k, columns], then one product per
// batch. Operands and result are converted once; sums are made in the contraction type.
#include "gemm.h"
#include "native.h"
#include "tpu/support/parallel.h"
#include "values.h"

namespace tpu::eval {
namespace {

Dims freeDims(int64_t rank, const Dims& batch, const Dims& contract) {
  Dims out;
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(batch, d) && !llvm::is_contained(contract, d)) out.push_back(d);
  return out;
}

int64_t productOf(const HostTensor& t, const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= t.dims[d];
  return n;
}

Dims joined(std::initializer_list<const Dims*> parts) {
  Dims out;
  for (const Dims* p : parts) out.append(p->begin(), p->end());
  return out;
}

Dims toDims(llvm::ArrayRef<int64_t> values) { return Dims(values.begin(), values.end()); }

}  // namespace

Tensor contract(const Tensor& lhs, const Tensor& rhs, const Contraction& c, ElementType result, bool fused) {
  const ElementType type = contractionType(result);
  const Dims lhs_free = freeDims(lhs->rank(), c.lhs_batch, c.lhs_contract);
  const Dims rhs_free = freeDims(rhs->rank(), c.rhs_batch, c.rhs_contract);
  const int64_t batch = productOf(*lhs, c.lhs_batch), k = productOf(*lhs, c.lhs_contract);
  const int64_t m = productOf(*lhs, lhs_free), n = productOf(*rhs, rhs_free);
  Dims dims;
  for (int64_t d : c.lhs_batch) dims.push_back(lhs->dims[d]);
  for (int64_t d : lhs_free) dims.push_back(lhs->dims[d]);
  for (int64_t d : rhs_free) dims.push_back(rhs->dims[d]);
  const Tensor a = convertTo(transposed(lhs, joined({&c.lhs_batch, &lhs_free, &c.lhs_contract})), type);
  const Tensor b = convertTo(transposed(rhs, joined({&c.rhs_batch, &c.rhs_contract, &rhs_free})), type);
  Tensor out = makeTensor(type, dims);
  const int64_t width = hostBytes(type);
  const auto one = [&](size_t i) {
    gemm(type, a->bytes.data() + i * m * k * width, b->bytes.data() + i * k * n * width,
         out->bytes.data() + i * m * n * width, m, n, k, fused);
  };
  if (batch < threads() || batch * m * n * k < 1 << 18) {  // each product is shared among the threads
    for (int64_t i = 0; i < batch; ++i) one(i);
  } else {
    parallelFor(batch, one);
  }
  return convertTo(out, result);
}

Outcome dotGeneral(Call& call) {
  Contraction c;
  if (call.opcode() == Opcode::dot) {
    c.lhs_contract = {call.in[0]->rank() - 1};
    c.rhs_contract = {0};
  } else {
    c = {toDims(call.ints(AttrKey::lhs_batching_dimensions)),
         toDims(call.ints(AttrKey::rhs_batching_dimensions)),
         toDims(call.ints(AttrKey::lhs_contracting_dimensions)),
         toDims(call.ints(AttrKey::rhs_contracting_dimensions))};
  }
  return Tensors{contract(call.in[0], call.in[1], c, call.resultElement(), !call.stepwise)};
}

}  // namespace tpu::eval
