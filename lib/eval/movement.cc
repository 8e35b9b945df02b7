// Ops that move elements without computing: broadcast, reshape, transpose, slices, pad, concatenate, reverse;
// and iota.
#include <algorithm>
#include <cstring>

#include "tpu/support/host_memory.h"
#include "values.h"

namespace tpu::eval {

Tensor broadcastInDim(const Tensor& in, llvm::ArrayRef<int64_t> map, llvm::ArrayRef<int64_t> dims) {
  Tensor out = rawTensor(in->element, dims);
  if (in->numElements() == 1 && !out->bytes.empty()) {
    fillWith(*out, in->bytes.data());
    return out;
  }
  const std::vector<int64_t> strides = rowMajorStrides(in->dims);
  std::vector<int64_t> from(dims.size(), 0);
  for (size_t d = 0; d < map.size(); ++d)
    if (in->dims[d] != 1) from[map[d]] = strides[d];
  stridedCopy(dims, hostBytes(in->element), in->bytes.data(), from, out->bytes.data(), rowMajorStrides(dims));
  return out;
}

Tensor sliced(const Tensor& in, llvm::ArrayRef<int64_t> start, llvm::ArrayRef<int64_t> limit,
              llvm::ArrayRef<int64_t> step) {
  Dims dims;
  std::vector<int64_t> from = rowMajorStrides(in->dims);
  int64_t base = 0;
  for (size_t d = 0; d < start.size(); ++d) {
    const int64_t by = step.empty() ? 1 : step[d];
    dims.push_back(std::max<int64_t>(0, (limit[d] - start[d] + by - 1) / by));
    base += start[d] * from[d];
    from[d] *= by;
  }
  Tensor out = rawTensor(in->element, dims);
  const int width = hostBytes(in->element);
  stridedCopy(dims, width, in->bytes.data() + base * width, from, out->bytes.data(), rowMajorStrides(dims));
  return out;
}

namespace {

Tensor iota(const Call& call, llvm::ArrayRef<int64_t> dims) {
  const int64_t dim = call.integer(AttrKey::iota_dimension);
  // 0, 1, 2 ... as s64 along the dimension, converted, then broadcast.
  Tensor line = makeTensor(ElementType::kS64, {dims[dim]});
  for (int64_t i = 0; i < dims[dim]; ++i) line->data<int64_t>()[i] = i;
  line = convertTo(line, call.resultElement());
  Tensor out = rawTensor(call.resultElement(), dims);
  std::vector<int64_t> from(dims.size(), 0);
  from[dim] = 1;
  stridedCopy(dims, hostBytes(out->element), line->bytes.data(), from, out->bytes.data(),
              rowMajorStrides(dims));
  return out;
}

Tensor broadcastLeading(const Call& call) {
  const Tensor& in = call.in[0];
  Dims dims(call.resultType().dims), map;
  for (int64_t d = 0; d < in->rank(); ++d) map.push_back(static_cast<int64_t>(dims.size()) - in->rank() + d);
  return broadcastInDim(in, map, dims);
}

// The start of a box of `size` within `dims`, clamped so that the box lies inside.
Dims clampedStart(llvm::ArrayRef<Tensor> indices, llvm::ArrayRef<int64_t> dims,
                  llvm::ArrayRef<int64_t> size) {
  Dims start;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t at = integerAt(*indices[d], 0);
    if (indices[d]->element == ElementType::kU64 && at < 0) at = INT64_MAX;
    start.push_back(std::clamp<int64_t>(at, 0, dims[d] - size[d]));
  }
  return start;
}

Tensor dynamicSlice(const Call& call) {
  const llvm::ArrayRef<int64_t> size = call.ints(AttrKey::slice_sizes);
  const Dims start = clampedStart(call.in.drop_front(), call.in[0]->dims, size);
  Dims limit = start;
  for (size_t d = 0; d < size.size(); ++d) limit[d] += size[d];
  return sliced(call.in[0], start, limit, {});
}

Tensor dynamicUpdateSlice(const Call& call) {
  const Tensor update = call.in[1];
  const Dims start = clampedStart(call.in.drop_front(2), call.in[0]->dims, update->dims);
  Tensor out = own(call.in[0]);
  const std::vector<int64_t> strides = rowMajorStrides(out->dims);
  int64_t base = 0;
  for (size_t d = 0; d < start.size(); ++d) base += start[d] * strides[d];
  const int width = hostBytes(out->element);
  stridedCopy(update->dims, width, update->bytes.data(), rowMajorStrides(update->dims),
              out->bytes.data() + base * width, strides);
  return out;
}

Tensor concatenated(const Call& call) {
  const int64_t dim = call.integer(AttrKey::dimension);
  Dims dims = call.in[0]->dims;
  for (const Tensor& t : call.in.drop_front()) dims[dim] += t->dims[dim];
  Tensor out = rawTensor(call.in[0]->element, dims);
  const std::vector<int64_t> strides = rowMajorStrides(dims);
  const int width = hostBytes(out->element);
  int64_t at = 0;
  for (const Tensor& t : call.in) {
    stridedCopy(t->dims, width, t->bytes.data(), rowMajorStrides(t->dims),
                out->bytes.data() + at * strides[dim] * width, strides);
    at += t->dims[dim];
  }
  return out;
}

Tensor reversed(const Tensor& in, llvm::ArrayRef<int64_t> dimensions) {
  std::vector<int64_t> from = rowMajorStrides(in->dims);
  int64_t base = 0;
  for (int64_t d : dimensions) {
    base += (in->dims[d] - 1) * from[d];
    from[d] = -from[d];
  }
  Tensor out = rawTensor(in->element, in->dims);
  if (out->bytes.empty()) return out;
  const int width = hostBytes(in->element);
  stridedCopy(in->dims, width, in->bytes.data() + base * width, from, out->bytes.data(),
              rowMajorStrides(in->dims));
  return out;
}

// The same bits as another type: a wider or narrower element adds or removes a last dimension.
Tensor bitcast(const Call& call) {
  Tensor in = call.in[0];
  const ElementType to = call.resultElement();
  Tensor out = own(in);
  const int from_bits = elementBits(out->element), to_bits = elementBits(to);
  out->element = to;
  if (from_bits > to_bits) {
    out->dims.push_back(from_bits / to_bits);
  } else if (from_bits < to_bits) {
    out->dims.pop_back();
  }
  return out;
}

// 2- and 4-bit elements stand one to a byte, so that their bitcasts split and join bytes.
bool packsBits(const Call& call) {
  return elementBits(call.in[0]->element) < 8 || elementBits(call.resultElement()) < 8;
}

Tensor bitcastBits(const Call& call) {
  const Tensor& in = call.in[0];
  const ElementType to = call.resultElement();
  const int from_bits = elementBits(in->element), to_bits = elementBits(to);
  Dims dims = in->dims;
  if (from_bits > to_bits) dims.push_back(from_bits / to_bits);
  if (from_bits < to_bits) dims.pop_back();
  Tensor out = makeTensor(to, dims);
  const int64_t bits = in->numElements() * from_bits;
  const auto place = [](const HostTensor& t, int64_t bit) {
    const int width = elementBits(t.element);
    return bit / width * hostBytes(t.element) * 8 + bit % width;
  };
  for (int64_t b = 0; b < bits; ++b) {
    const int64_t f = place(*in, b), t = place(*out, b);
    if (in->bytes[f / 8] >> f % 8 & 1) out->bytes[t / 8] |= static_cast<uint8_t>(1u << t % 8);
  }
  if (isSigned(to) && to_bits < 8) {
    for (uint8_t& byte : out->bytes)
      byte = static_cast<uint8_t>(static_cast<int8_t>(byte << (8 - to_bits)) >> (8 - to_bits));
  }
  return out;
}

}  // namespace

Tensor padded(const Tensor& in, const uint8_t* value, llvm::ArrayRef<int64_t> low,
              llvm::ArrayRef<int64_t> high, llvm::ArrayRef<int64_t> interior) {
  Dims dims, count = in->dims;
  for (int64_t d = 0; d < in->rank(); ++d)
    dims.push_back(in->dims[d] + low[d] + high[d] + std::max<int64_t>(in->dims[d] - 1, 0) * interior[d]);
  for (int64_t& d : dims) d = std::max<int64_t>(d, 0);
  Tensor out = rawTensor(in->element, dims);
  fillWith(*out, value);
  // Elements that negative padding removes are skipped at both ends.
  const std::vector<int64_t> from = rowMajorStrides(in->dims);
  std::vector<int64_t> to = rowMajorStrides(dims);
  int64_t from_base = 0, to_base = 0;
  for (int64_t d = 0; d < in->rank(); ++d) {
    const int64_t step = interior[d] + 1;
    const int64_t first = low[d] >= 0 ? 0 : (-low[d] + step - 1) / step;
    const int64_t end =
        std::min(in->dims[d], dims[d] - low[d] <= 0 ? 0 : (dims[d] - low[d] + step - 1) / step);
    count[d] = std::max<int64_t>(0, end - first);
    from_base += first * from[d];
    to_base += (low[d] + first * step) * to[d];
    to[d] *= step;
  }
  const int width = hostBytes(in->element);
  if (std::find(count.begin(), count.end(), 0) != count.end()) return out;
  stridedCopy(count, width, in->bytes.data() + from_base * width, from, out->bytes.data() + to_base * width,
              to);
  return out;
}

Outcome movement(Call& call) {
  switch (call.opcode()) {
    case Opcode::iota:
      return Tensors{iota(call, call.resultType().dims)};
    case Opcode::broadcast:
      return Tensors{broadcastLeading(call)};
    case Opcode::broadcast_in_dim:
      return Tensors{
          broadcastInDim(call.in[0], call.ints(AttrKey::broadcast_dimensions), call.resultType().dims)};
    case Opcode::reshape:
      return Tensors{reshaped(std::move(call.in[0]), call.resultType().dims)};
    case Opcode::transpose:
      return Tensors{transposed(call.in[0], call.ints(AttrKey::permutation))};
    case Opcode::slice:
      return Tensors{sliced(call.in[0], call.ints(AttrKey::start_indices), call.ints(AttrKey::limit_indices),
                            call.ints(AttrKey::strides))};
    case Opcode::dynamic_slice:
      return Tensors{dynamicSlice(call)};
    case Opcode::dynamic_update_slice:
      return Tensors{dynamicUpdateSlice(call)};
    case Opcode::pad:
      return Tensors{padded(call.in[0], call.in[1]->bytes.data(), call.ints(AttrKey::edge_padding_low),
                            call.ints(AttrKey::edge_padding_high), call.ints(AttrKey::interior_padding))};
    case Opcode::concatenate:
      return Tensors{concatenated(call)};
    case Opcode::reverse:
      return Tensors{reversed(call.in[0], call.ints(AttrKey::dimensions))};
    case Opcode::bitcast_convert:
      return Tensors{packsBits(call) ? bitcastBits(call) : bitcast(call)};
    default:
      return unsupported(call, "here");
  }
}

namespace {

// The dims of a result that operands decide: what its type states, of a size that this host can hold.
llvm::Error checkShape(const Call& call, llvm::ArrayRef<int64_t> dims) {
  const hlo::Type& type = call.resultType();
  int64_t bytes = hostBytes(type.element);
  bool same = dims.size() == type.dims.size();
  for (size_t d = 0; same && d < dims.size(); ++d) {
    same = dims[d] >= 0 && (type.dims[d] == hlo::kDynamicDim || type.dims[d] == dims[d]);
    bytes = mulBytes(bytes, dims[d]);
  }
  if (!same) return badOperand(call, "the operands give a shape that is not the result's");
  return requireHostMemory(bytes, call.loc(), "the result");
}

Outcome dynamicBroadcast(Call& call) {
  const Dims dims = integersOf(*call.in[1]);
  const llvm::ArrayRef<int64_t> map = call.ints(AttrKey::broadcast_dimensions);
  if (llvm::Error e = checkShape(call, dims)) return e;
  for (size_t d = 0; d < map.size(); ++d)
    if (call.in[0]->dims[d] != 1 && call.in[0]->dims[d] != dims[map[d]])
      return badOperand(call, "the operand cannot be spread over the output shape");
  return Tensors{broadcastInDim(call.in[0], map, dims)};
}

Outcome dynamicReshape(Call& call) {
  const Dims dims = integersOf(*call.in[1]);
  if (llvm::Error e = checkShape(call, dims)) return e;
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  if (count != call.in[0]->numElements())
    return badOperand(call, "the output shape has another number of elements");
  return Tensors{reshaped(std::move(call.in[0]), dims)};
}

Outcome realDynamicSlice(Call& call) {
  const Dims start = integersOf(*call.in[1]), limit = integersOf(*call.in[2]), step = integersOf(*call.in[3]);
  for (size_t d = 0; d < start.size(); ++d)
    if (start[d] < 0 || start[d] > limit[d] || limit[d] > call.in[0]->dims[d] || step[d] < 1)
      return badOperand(call, "the slice lies outside of the operand");
  return Tensors{sliced(call.in[0], start, limit, step)};
}

Outcome dynamicPad(Call& call) {
  const Dims low = integersOf(*call.in[2]), high = integersOf(*call.in[3]), interior = integersOf(*call.in[4]);
  Dims dims;
  for (size_t d = 0; d < low.size(); ++d) {
    int64_t size = call.in[0]->dims[d], between = 0;
    const bool wraps = interior[d] < 0 || __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), interior[d], &between) ||
                       __builtin_add_overflow(size, between, &size) || __builtin_add_overflow(size, low[d], &size) ||
                       __builtin_add_overflow(size, high[d], &size);
    dims.push_back(wraps ? -1 : size);
  }
  if (llvm::Error e = checkShape(call, dims)) return e;
  return Tensors{padded(call.in[0], call.in[1]->bytes.data(), low, high, interior)};
}

}  // namespace

Outcome dynamicShape(Call& call) {
  switch (call.opcode()) {
    case Opcode::dynamic_iota: {
      const Dims dims = integersOf(*call.in[0]);
      if (llvm::Error e = checkShape(call, dims)) return e;
      return Tensors{iota(call, dims)};
    }
    case Opcode::dynamic_broadcast_in_dim:
      return dynamicBroadcast(call);
    case Opcode::dynamic_reshape:
      return dynamicReshape(call);
    case Opcode::real_dynamic_slice:
      return realDynamicSlice(call);
    case Opcode::dynamic_pad:
      return dynamicPad(call);
    case Opcode::get_dimension_size: {
      Tensor out = makeTensor(ElementType::kS32, {});
      *out->data<int32_t>() = static_cast<int32_t>(call.in[0]->dims[call.integer(AttrKey::dimension)]);
      return Tensors{out};
    }
    case Opcode::set_dimension_size: {
      const int64_t dim = call.integer(AttrKey::dimension), size = integerAt(*call.in[1], 0);
      if (size < 0 || size > call.in[0]->dims[dim])
        return badOperand(call, "the size lies outside the dimension");
      Dims limit = call.in[0]->dims;
      limit[dim] = size;
      return Tensors{sliced(call.in[0], Dims(limit.size(), 0), limit, {})};
    }
    default:
      return unsupported(call, "here");
  }
}

}  // namespace tpu::eval
