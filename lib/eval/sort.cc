// Sorting by any comparator region, and top_k.
//
// A merge sort in lock step: in every pass each element finds its place in the neighbouring run by binary
// search, and all elements make their comparison of one search step together, so that the comparator runs on
// whole vectors. Stable always.
#include <algorithm>
#include <numeric>

#include "loops.h"
#include "native.h"
#include "values.h"

namespace tpu::eval {
namespace {

// Operands with the sort dimension last: rows of n.
struct Rows {
  int64_t rows = 1, n = 1;
};

class MergeSort {
 public:
  MergeSort(Call& call, llvm::ArrayRef<Tensor> operands, Rows shape)
      : call_(call), operands_(operands), shape_(shape) {
    const hlo::Region& r = call.module.region(call.region());
    used_.resize(r.args.size());
    for (hlo::OpId op : r.ops)
      for (hlo::ValueId v : call.module.op(op).operands)
        for (size_t a = 0; a < r.args.size(); ++a)
          if (r.args[a] == v) used_[a] = true;
  }

  // Row-major rows x n: which original position stands at each sorted one.
  llvm::Expected<std::vector<int64_t>> order() {
    std::vector<int64_t> order(shape_.rows * shape_.n);
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    for (int64_t run = 1; run < shape_.n; run *= 2)
      if (llvm::Error e = mergePass(run, order)) return e;
    return order;
  }

 private:
  llvm::Error mergePass(int64_t run, std::vector<int64_t>& order) {
    const int64_t total = static_cast<int64_t>(order.size()), n = shape_.n;
    std::vector<int64_t> low(total), high(total), base(total);
    std::vector<bool> left(total);
    for (int64_t i = 0; i < total; ++i) {
      const int64_t row = i / n * n, at = i % n, pair = at / (2 * run) * (2 * run);
      left[i] = at < pair + run;
      const int64_t other = left[i] ? pair + run : pair;
      base[i] = row + std::min(other, n);
      high[i] = std::clamp<int64_t>(n - other, 0, run);
    }
    std::vector<int64_t> first(total), second(total);
    while (true) {
      bool any = false;
      for (int64_t i = 0; i < total; ++i) {
        const bool active = low[i] < high[i];
        any |= active;
        const int64_t other = active ? order[base[i] + (low[i] + high[i]) / 2] : order[i];
        first[i] = left[i] ? other : order[i];
        second[i] = left[i] ? order[i] : other;
      }
      if (!any) break;
      auto less = compare(first, second);
      if (!less) return less.takeError();
      const uint8_t* result = (*less)->bytes.data();
      for (int64_t i = 0; i < total; ++i) {
        if (low[i] >= high[i]) continue;
        const int64_t middle = (low[i] + high[i]) / 2;
        // Left elements come after the right ones that are less; right ones after the left ones that are not
        // greater.
        if (left[i] ? result[i] : !result[i]) {
          low[i] = middle + 1;
        } else {
          high[i] = middle;
        }
      }
    }
    std::vector<int64_t> merged(total);
    for (int64_t i = 0; i < total; ++i) {
      const int64_t row = i / n * n, at = i % n, pair = at / (2 * run) * (2 * run);
      merged[row + pair + (left[i] ? at - pair : at - pair - run) + low[i]] = order[i];
    }
    order = std::move(merged);
    return llvm::Error::success();
  }

  llvm::Expected<Tensor> compare(const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
    llvm::SmallVector<Tensor, 4> args;
    for (size_t i = 0; i < operands_.size(); ++i) {
      args.push_back(pick(i, first, used_[2 * i]));
      args.push_back(pick(i, second, used_[2 * i + 1]));
    }
    Outcome out = runBatched(call_, call_.region(), args);
    if (!out) return out.takeError();
    return (*out)[0];
  }

  Tensor pick(size_t operand, const std::vector<int64_t>& at, bool used) {
    const HostTensor& t = *operands_[operand];
    Tensor out = makeTensor(t.element, {static_cast<int64_t>(at.size())});
    if (!used) return out;
    const size_t width = hostBytes(t.element);
    for (size_t i = 0; i < at.size(); ++i)
      std::copy_n(t.bytes.data() + at[i] * width, width, out->bytes.data() + i * width);
    return out;
  }

  Call& call_;
  llvm::ArrayRef<Tensor> operands_;
  Rows shape_;
  std::vector<bool> used_;
};

Tensor takeInOrder(const HostTensor& t, const std::vector<int64_t>& order) {
  Tensor out = makeTensor(t.element, t.dims);
  const size_t width = hostBytes(t.element);
  for (size_t i = 0; i < order.size(); ++i)
    std::copy_n(t.bytes.data() + order[i] * width, width, out->bytes.data() + i * width);
  return out;
}

// Keys whose integer order is the total order of the elements (floats through f64's bits).
std::vector<int64_t> totalOrderKeys(const Tensor& t) {
  std::vector<int64_t> keys(t->numElements());
  if (isFloat(t->element)) {
    const Tensor wide = convertTo(t, ElementType::kF64);
    for (size_t i = 0; i < keys.size(); ++i) {
      const int64_t bits = std::bit_cast<int64_t>(wide->data<double>()[i]);
      keys[i] = bits < 0 ? bits ^ INT64_MAX : bits;
    }
    return keys;
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = integerAt(*t, static_cast<int64_t>(i));
    if (t->element == ElementType::kU64) keys[i] ^= INT64_MIN;
  }
  return keys;
}

}  // namespace

Outcome sortOp(Call& call) {
  const int64_t rank = call.in[0]->rank();
  int64_t dim = call.integer(AttrKey::dimension, -1);
  if (dim < 0) dim += rank;
  Dims permutation(rank), back(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  if (rank > 0) std::rotate(permutation.begin() + dim, permutation.begin() + dim + 1, permutation.end());
  for (int64_t d = 0; d < rank; ++d) back[permutation[d]] = d;
  Rows shape;
  shape.n = rank == 0 ? 1 : call.in[0]->dims[dim];
  shape.rows = shape.n == 0 ? 0 : call.in[0]->numElements() / shape.n;
  Tensors operands;
  for (const Tensor& t : call.in) operands.push_back(transposed(t, permutation));
  auto order = MergeSort(call, operands, shape).order();
  if (!order) return order.takeError();
  for (Tensor& t : operands) t = transposed(takeInOrder(*t, *order), back);
  return operands;
}

Outcome topK(Call& call) {
  const Tensor in = call.in[0];
  if (in->rank() == 0) return badOperand(call, "the operand has no dimension");
  const int64_t n = in->dims.back(), rows = n == 0 ? 0 : in->numElements() / n;
  const int64_t k = call.integer(AttrKey::k, call.resultType().dims.back());
  const bool largest = call.integer(AttrKey::largest, 1) != 0;
  if (k > n) return badOperand(call, "k exceeds the last dimension");
  const std::vector<int64_t> keys = totalOrderKeys(in);
  Dims dims = in->dims;
  dims.back() = k;
  Tensor values = makeTensor(in->element, dims), indices = makeTensor(ElementType::kS32, dims);
  const size_t width = hostBytes(in->element);
  std::vector<int32_t> order(n);
  for (int64_t r = 0; r < rows; ++r) {
    std::iota(order.begin(), order.end(), 0);
    const int64_t* key = keys.data() + r * n;
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int32_t a, int32_t b) {
      if (key[a] != key[b]) return largest ? key[a] > key[b] : key[a] < key[b];
      return a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      indices->data<int32_t>()[r * k + i] = order[i];
      std::copy_n(in->bytes.data() + (r * n + order[i]) * width, width,
                  values->bytes.data() + (r * k + i) * width);
    }
  }
  return Tensors{values, indices};
}

}  // namespace tpu::eval
