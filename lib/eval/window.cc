// reduce_window and select_and_scatter: for every offset inside the window, one strided slice of the padded
// operand holds that element of all windows, so a window of w elements is w vector steps.
#include <algorithm>
#include <numeric>

#include "loops.h"
#include "native.h"
#include "values.h"

namespace tpu::eval {
namespace {

struct Window {
  Dims size, stride, dilation, base_dilation, low, high, result;
};

Dims orOnes(llvm::ArrayRef<int64_t> values, size_t rank) {
  return values.empty() ? Dims(rank, 1) : Dims(values.begin(), values.end());
}

Window windowOf(const Call& call, const HostTensor& operand) {
  const size_t rank = operand.dims.size();
  Window w;
  w.size = orOnes(call.ints(AttrKey::window_dimensions), rank);
  w.stride = orOnes(call.ints(AttrKey::window_strides), rank);
  w.dilation = orOnes(call.ints(AttrKey::window_dilations), rank);
  w.base_dilation = orOnes(call.ints(AttrKey::base_dilations), rank);
  const llvm::ArrayRef<int64_t> padding = call.ints(AttrKey::padding);
  for (size_t d = 0; d < rank; ++d) {
    w.low.push_back(padding.empty() ? 0 : padding[2 * d]);
    w.high.push_back(padding.empty() ? 0 : padding[2 * d + 1]);
    const int64_t dilated = operand.dims[d] == 0 ? 0 : (operand.dims[d] - 1) * w.base_dilation[d] + 1;
    const int64_t padded = dilated + w.low[d] + w.high[d], span = (w.size[d] - 1) * w.dilation[d] + 1;
    w.result.push_back(padded < span ? 0 : (padded - span) / w.stride[d] + 1);
  }
  return w;
}

int64_t product(llvm::ArrayRef<int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<int64_t>());
}

// Steps an index in row-major order; false after the last.
bool next(Dims& index, llvm::ArrayRef<int64_t> dims) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}

// The element at window offset `at` of every window, as one vector.
Tensor slicePerWindow(const HostTensor& padded, const Window& w, const Dims& at) {
  std::vector<int64_t> from = rowMajorStrides(padded.dims);
  int64_t base = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    base += at[d] * w.dilation[d] * from[d];
    from[d] *= w.stride[d];
  }
  Tensor out = rawTensor(padded.element, w.result);
  const int width = hostBytes(padded.element);
  stridedCopy(w.result, width, padded.bytes.data() + base * width, from, out->bytes.data(),
              rowMajorStrides(w.result));
  out->dims.assign({out->numElements()});
  return out;
}

Dims interior(const Window& w) {
  Dims out;
  for (int64_t d : w.base_dilation) out.push_back(d - 1);
  return out;
}

Outcome foldWindows(Call& call, const Window& w, llvm::ArrayRef<Tensor> padded, Tensors sum,
                    const Opcode* single) {
  Dims at(w.size.size(), 0);
  do {
    llvm::SmallVector<Tensor, 4> args(sum.begin(), sum.end());
    sum.clear();
    for (const Tensor& t : padded) args.push_back(slicePerWindow(*t, w, at));
    if (single) {
      sum.push_back(binaryOf(*single, std::move(args[0]), std::move(args[1])));
      continue;
    }
    Outcome out = runBatched(call, call.region(), args);
    if (!out) return out;
    sum = std::move(*out);
  } while (next(at, w.size));
  return sum;
}

}  // namespace

Outcome reduceWindow(Call& call) {
  const size_t n = call.in.size() / 2;
  const Window w = windowOf(call, *call.in[0]);
  const std::optional<Opcode> only = n == 1 ? singleOp(call.module, call.region()) : std::nullopt;
  const Opcode* single = only && findBinary(*only, nativeType(call.in[1]->element)) ? &*only : nullptr;
  Tensors padded_in, sum;
  for (size_t i = 0; i < n; ++i) {
    Tensor in = convertTo(call.in[i], call.in[n + i]->element), init = call.in[n + i];
    if (single && !call.stepwise) {  // one rounding at the end
      in = convertTo(in, nativeType(in->element));
      init = convertTo(init, nativeType(init->element));
    }
    padded_in.push_back(padded(in, init->bytes.data(), w.low, w.high, interior(w)));
    sum.push_back(splatTo(init, {product(w.result)}));
  }
  if (product(w.result) != 0) {
    Outcome out = foldWindows(call, w, padded_in, std::move(sum), single);
    if (!out) return out;
    sum = std::move(*out);
  }
  for (size_t i = 0; i < n; ++i) sum[i] = reshaped(convertTo(sum[i], call.in[n + i]->element), w.result);
  return sum;
}

namespace {

// For every window the flat index of the element that the select region keeps; -1 where the window holds only
// padding.
llvm::Expected<std::vector<int64_t>> selected(Call& call, const Window& w) {
  const HostTensor& operand = *call.in[0];
  const int64_t count = product(w.result), width = hostBytes(operand.element);
  const std::vector<int64_t> strides = rowMajorStrides(operand.dims);
  std::vector<int64_t> best_at(count, -1), at(count);
  Tensor best = makeTensor(operand.element, {count}), candidate = makeTensor(operand.element, {count});
  Dims offset(w.size.size(), 0);
  do {
    Dims index(w.result.size(), 0);
    int64_t i = 0;
    do {
      int64_t flat = 0;
      for (size_t d = 0; d < index.size(); ++d) {
        const int64_t x = index[d] * w.stride[d] + offset[d] * w.dilation[d] - w.low[d];
        if (x < 0 || x >= operand.dims[d]) flat = INT64_MIN / 2;
        flat += x * strides[d];
      }
      at[i] = flat < 0 ? -1 : flat;
      if (flat >= 0)
        std::copy_n(operand.bytes.data() + flat * width, width, candidate->bytes.data() + i * width);
      ++i;
    } while (next(index, w.result));
    llvm::SmallVector<Tensor, 2> args{std::make_shared<HostTensor>(*best),
                                      std::make_shared<HostTensor>(*candidate)};
    Outcome keep = runBatched(call, call.region(0), args);
    if (!keep) return keep.takeError();
    for (int64_t j = 0; j < count; ++j) {
      if (at[j] < 0 || (best_at[j] >= 0 && (*keep)[0]->bytes[j])) continue;
      best_at[j] = at[j];
      std::copy_n(candidate->bytes.data() + j * width, width, best->bytes.data() + j * width);
    }
  } while (next(offset, w.size));
  return best_at;
}

}  // namespace

Outcome selectAndScatter(Call& call) {
  const Window w = windowOf(call, *call.in[0]);
  const ElementType element = call.in[2]->element;
  Tensor source = call.in[1], out = splatTo(call.in[2], call.in[0]->dims);
  if (product(w.result) != source->numElements())
    return badOperand(call, "the source has another shape than the windows");
  if (source->numElements() == 0) return Tensors{out};
  auto targets = selected(call, w);
  if (!targets) return targets.takeError();
  const auto single = singleOp(call.module, call.region(1));
  const ElementType native = nativeType(element);
  const BinaryLoop loop = single ? findBinary(*single, native) : nullptr;
  if (loop) {
    source = convertTo(source, native);
    out = convertTo(out, native);
    out = own(out);
    const int64_t width = hostBytes(native);
    for (size_t i = 0; i < targets->size(); ++i) {
      if ((*targets)[i] < 0) continue;
      uint8_t* to = out->bytes.data() + (*targets)[i] * width;
      loop(to, source->bytes.data() + i * width, to, 1);
    }
    return Tensors{convertTo(out, element)};
  }
  out = own(out);
  const int64_t width = hostBytes(element);
  for (size_t i = 0; i < targets->size(); ++i) {
    if ((*targets)[i] < 0) continue;
    uint8_t* to = out->bytes.data() + (*targets)[i] * width;
    Tensor a = makeTensor(element, {1}), b = makeTensor(element, {1});
    std::copy_n(to, width, a->bytes.data());
    std::copy_n(source->bytes.data() + i * width, width, b->bytes.data());
    Outcome sum = runBatched(call, call.region(1), {a, b});
    if (!sum) return sum;
    std::copy_n((*sum)[0]->bytes.data(), width, to);
  }
  return Tensors{out};
}

}  // namespace tpu::eval
