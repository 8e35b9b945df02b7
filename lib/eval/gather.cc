// gather and scatter with batching dimensions. Gather clamps its starts so that slices lie inside; scatter
// drops elements that fall outside. Updates are applied in the row-major order of the scatter indices.
#include <algorithm>

#include "loops.h"
#include "native.h"
#include "values.h"

namespace tpu::eval {
namespace {

// The maps that gather and scatter share.
struct Indexing {
  Dims index_map;         // component of an index vector -> operand dim
  Dims operand_batching;  // operand dims that follow dims of the indices
  Dims index_batching;
  int64_t vector_dim;
  Dims batch;  // dims of the indices without the vector's
};

Dims toDims(llvm::ArrayRef<int64_t> values) { return Dims(values.begin(), values.end()); }

Indexing indexingOf(const Call& call, const HostTensor& indices, AttrKey map, AttrKey operand_batching,
                    AttrKey index_batching) {
  Indexing ix{toDims(call.ints(map)),
              toDims(call.ints(operand_batching)),
              toDims(call.ints(index_batching)),
              call.integer(AttrKey::index_vector_dim),
              {}};
  for (int64_t d = 0; d < indices.rank(); ++d)
    if (d != ix.vector_dim) ix.batch.push_back(indices.dims[d]);
  return ix;
}

// Where the slice of one batch index begins in the operand, not clamped.
Dims startOf(const Indexing& ix, const HostTensor& indices, const std::vector<int64_t>& strides,
             const Dims& batch, size_t rank) {
  Dims start(rank, 0);
  int64_t base = 0;
  for (size_t b = 0; b < batch.size(); ++b) {
    const size_t d = static_cast<int64_t>(b) < ix.vector_dim ? b : b + 1;
    base += batch[b] * strides[d];
  }
  const int64_t step = ix.vector_dim < indices.rank() ? strides[ix.vector_dim] : 0;
  for (size_t i = 0; i < ix.index_map.size(); ++i) {
    int64_t at = integerAt(indices, base + static_cast<int64_t>(i) * step);
    if (indices.element == ElementType::kU64 && at < 0) at = INT64_MAX / 2;
    start[ix.index_map[i]] = at;
  }
  for (size_t i = 0; i < ix.operand_batching.size(); ++i) {
    const int64_t d = ix.index_batching[i];
    start[ix.operand_batching[i]] = batch[d < ix.vector_dim ? d : d - 1];
  }
  return start;
}

bool next(Dims& index, llvm::ArrayRef<int64_t> dims) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}

bool isEmpty(llvm::ArrayRef<int64_t> dims) { return llvm::is_contained(dims, 0); }

// Operand dims that appear in the window, in order.
Dims windowDims(size_t rank, const Dims& dropped, const Dims& batching) {
  Dims out;
  for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d)
    if (!llvm::is_contained(dropped, d) && !llvm::is_contained(batching, d)) out.push_back(d);
  return out;
}

// Dims of the result or the updates that are not window dims, in order.
Dims otherDims(size_t rank, const Dims& window) {
  Dims out;
  for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d)
    if (!llvm::is_contained(window, d)) out.push_back(d);
  return out;
}

}  // namespace

Outcome gather(Call& call) {
  const HostTensor &operand = *call.in[0], &indices = *call.in[1];
  const Dims sizes = call.opcode() == Opcode::dynamic_gather ? integersOf(*call.in[2])
                                                             : toDims(call.ints(AttrKey::slice_sizes));
  const Indexing ix = indexingOf(call, indices, AttrKey::start_index_map, AttrKey::operand_batching_dims,
                                 AttrKey::start_indices_batching_dims);
  const Dims offset_dims = toDims(call.ints(AttrKey::offset_dims));
  const Dims window =
      windowDims(operand.dims.size(), toDims(call.ints(AttrKey::collapsed_slice_dims)), ix.operand_batching);
  Dims dims(ix.batch.size() + window.size(), 0), window_sizes;
  const Dims batch_dims = otherDims(dims.size(), offset_dims);
  for (size_t i = 0; i < window.size(); ++i) {
    dims[offset_dims[i]] = sizes[window[i]];
    window_sizes.push_back(sizes[window[i]]);
  }
  for (size_t i = 0; i < batch_dims.size(); ++i) dims[batch_dims[i]] = ix.batch[i];
  Tensor out = rawTensor(operand.element, dims);
  if (isEmpty(dims)) return Tensors{out};
  const std::vector<int64_t> from = rowMajorStrides(operand.dims), to = rowMajorStrides(dims);
  const std::vector<int64_t> index_strides = rowMajorStrides(indices.dims);
  std::vector<int64_t> window_from, window_to;
  for (size_t i = 0; i < window.size(); ++i) {
    window_from.push_back(from[window[i]]);
    window_to.push_back(to[offset_dims[i]]);
  }
  const int width = hostBytes(operand.element);
  Dims batch(ix.batch.size(), 0);
  do {
    const Dims start = startOf(ix, indices, index_strides, batch, operand.dims.size());
    int64_t source = 0, target = 0;
    for (size_t d = 0; d < start.size(); ++d)
      source += std::clamp<int64_t>(start[d], 0, operand.dims[d] - sizes[d]) * from[d];
    for (size_t i = 0; i < batch.size(); ++i) target += batch[i] * to[batch_dims[i]];
    stridedCopy(window_sizes, width, operand.bytes.data() + source * width, window_from,
                out->bytes.data() + target * width, window_to);
  } while (next(batch, ix.batch));
  return Tensors{out};
}

namespace {

// Calls fn(operand element, update element) for every update that lands inside.
void forEachUpdate(const Call& call, const HostTensor& operand, const HostTensor& indices,
                   const HostTensor& updates, llvm::function_ref<void(int64_t, int64_t)> fn) {
  const Indexing ix = indexingOf(call, indices, AttrKey::scatter_dims_to_operand_dims,
                                 AttrKey::input_batching_dims, AttrKey::scatter_indices_batching_dims);
  const Dims window_in_updates = toDims(call.ints(AttrKey::update_window_dims));
  const Dims window =
      windowDims(operand.dims.size(), toDims(call.ints(AttrKey::inserted_window_dims)), ix.operand_batching);
  const Dims batch_dims = otherDims(updates.dims.size(), window_in_updates);
  const std::vector<int64_t> to = rowMajorStrides(operand.dims), from = rowMajorStrides(updates.dims);
  const std::vector<int64_t> index_strides = rowMajorStrides(indices.dims);
  Dims sizes;
  for (int64_t d : window_in_updates) sizes.push_back(updates.dims[d]);
  if (isEmpty(updates.dims)) return;
  Dims batch(ix.batch.size(), 0);
  do {
    const Dims start = startOf(ix, indices, index_strides, batch, operand.dims.size());
    bool inside = true;  // dims outside the window: the start itself must lie inside
    int64_t target = 0, source = 0;
    for (size_t d = 0; d < start.size(); ++d) {
      target += start[d] * to[d];
      if (!llvm::is_contained(window, static_cast<int64_t>(d)))
        inside = inside && start[d] >= 0 && start[d] < operand.dims[d];
    }
    for (size_t i = 0; i < batch.size(); ++i) source += batch[i] * from[batch_dims[i]];
    if (!inside) continue;
    Dims at(sizes.size(), 0);
    do {
      int64_t t = target, s = source;
      bool in = true;
      for (size_t i = 0; i < at.size(); ++i) {
        const int64_t x = start[window[i]] + at[i];
        in = in && x >= 0 && x < operand.dims[window[i]];
        t += at[i] * to[window[i]];
        s += at[i] * from[window_in_updates[i]];
      }
      if (in) fn(t, s);
    } while (next(at, sizes));
  } while (next(batch, ix.batch));
}

Outcome scatterByRegion(Call& call, size_t n) {
  Tensors out;
  for (size_t i = 0; i < n; ++i) out.push_back(own(call.in[i]));
  llvm::Error error = llvm::Error::success();
  const auto element = [](const HostTensor& t, int64_t at) {
    Tensor one = makeTensor(t.element, {1});
    std::copy_n(t.bytes.data() + at * hostBytes(t.element), hostBytes(t.element), one->bytes.data());
    return one;
  };
  forEachUpdate(call, *out[0], *call.in[n], *call.in[n + 1], [&](int64_t to, int64_t from) {
    if (error) return;
    llvm::SmallVector<Tensor, 4> args;
    for (size_t i = 0; i < n; ++i) args.push_back(element(*out[i], to));
    for (size_t i = 0; i < n; ++i) args.push_back(element(*call.in[n + 1 + i], from));
    Outcome result = runBatched(call, call.region(), args);
    if (!result) {
      error = result.takeError();
      return;
    }
    for (size_t i = 0; i < n; ++i) {
      const int width = hostBytes(out[i]->element);
      std::copy_n((*result)[i]->bytes.data(), width, out[i]->bytes.data() + to * width);
    }
  });
  if (error) return error;
  return out;
}

}  // namespace

Outcome scatter(Call& call) {
  const size_t n = (call.in.size() - 1) / 2;
  if (n != 1) return scatterByRegion(call, n);
  const ElementType element = call.in[0]->element, native = nativeType(element);
  const bool replaces = returnsSecond(call.module, call.region());
  const auto op = singleOp(call.module, call.region());
  const BinaryLoop loop = op ? findBinary(*op, native) : nullptr;
  if (!replaces && !loop) return scatterByRegion(call, n);
  const ElementType type = replaces ? element : native;  // sums of narrow types are rounded once
  const Tensor indices = call.in[1], updates = convertTo(call.in[2], type);
  Tensor base = replaces || type == element ? std::move(call.in[0]) : convertTo(call.in[0], type);
  Tensor out = own(base);
  const int width = hostBytes(type);
  forEachUpdate(call, *out, *indices, *updates, [&](int64_t to, int64_t from) {
    uint8_t* target = out->bytes.data() + to * width;
    const uint8_t* source = updates->bytes.data() + from * width;
    if (replaces) {
      std::copy_n(source, width, target);
    } else {
      loop(target, source, target, 1);
    }
  });
  return Tensors{convertTo(out, element)};
}

}  // namespace tpu::eval
