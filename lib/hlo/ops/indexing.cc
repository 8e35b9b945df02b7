// Rules of gather and scatter. Names follow the specification: batch dims are those of the index tensor
// without the index vector, window (offset) dims are those of a slice.
#include "check.h"

namespace tpu::hlo {
namespace {

// Dims of the index tensor without the index vector.
Dims batchDims(const Type& indices, int64_t index_vector_dim) {
  Dims dims;
  for (int64_t i = 0; i < indices.rank(); ++i)
    if (i != index_vector_dim) dims.push_back(indices.dims[static_cast<size_t>(i)]);
  return dims;
}

int64_t vectorLength(const Type& indices, int64_t index_vector_dim) {
  if (index_vector_dim == indices.rank()) return 1;
  return indices.dims[static_cast<size_t>(index_vector_dim)];
}

struct Keys {
  AttrKey window, removed, batching, index_batching, map;
};

llvm::Error checkCommon(OpCheck& c, const Type& operand, const Type& indices, const Keys& keys) {
  if (!isInteger(indices.element)) return c.fail("indices are " + c.text(indices) + ", expected integers");
  int64_t vector_dim = c.num(AttrKey::index_vector_dim);
  if (vector_dim < 0 || vector_dim > indices.rank())
    return c.fail("index_vector_dim = " + llvm::Twine(vector_dim) + " leaves the indices " + c.text(indices));
  if (auto e = c.needDims(keys.removed, operand.rank(), true)) return e;
  if (auto e = c.needDims(keys.batching, operand.rank(), true)) return e;
  if (auto e = c.needDims(keys.index_batching, indices.rank())) return e;
  if (auto e = c.needDims(keys.map, operand.rank())) return e;
  if (auto e = c.needLength(keys.index_batching, c.ints(keys.batching).size())) return e;
  for (int64_t dim : c.ints(keys.batching))
    if (llvm::is_contained(c.ints(keys.removed), dim) || llvm::is_contained(c.ints(keys.map), dim))
      return c.fail("dimension " + llvm::Twine(dim) + " is a batching dimension and something else");
  int64_t length = vectorLength(indices, vector_dim);
  if (length != kDynamicDim && length != static_cast<int64_t>(c.ints(keys.map).size()))
    return c.fail("index vectors have " + llvm::Twine(length) + " entries, " + attrName(keys.map) + " has " +
                  llvm::Twine(c.ints(keys.map).size()));
  for (size_t i = 0; i < c.ints(keys.batching).size(); ++i) {
    int64_t index_dim = c.ints(keys.index_batching)[i];
    if (index_dim == vector_dim) return c.fail("the index vector is no batching dimension");
    int64_t a = operand.dims[static_cast<size_t>(c.ints(keys.batching)[i])];
    int64_t b = indices.dims[static_cast<size_t>(index_dim)];
    if (a != b && a != kDynamicDim && b != kDynamicDim)
      return c.fail("batching dimensions differ in size: " + llvm::Twine(a) + " and " + llvm::Twine(b));
  }
  return llvm::Error::success();
}

const Keys kGatherKeys = {AttrKey::offset_dims, AttrKey::collapsed_slice_dims, AttrKey::operand_batching_dims,
                          AttrKey::start_indices_batching_dims, AttrKey::start_index_map};
const Keys kScatterKeys = {AttrKey::update_window_dims, AttrKey::inserted_window_dims,
                           AttrKey::input_batching_dims, AttrKey::scatter_indices_batching_dims,
                           AttrKey::scatter_dims_to_operand_dims};

bool removed(OpCheck& c, const Keys& keys, int64_t dim) {
  return llvm::is_contained(c.ints(keys.removed), dim) || llvm::is_contained(c.ints(keys.batching), dim);
}

// Places window dims at the positions `at` (ascending) and batch dims in between, in order.
Dims placeWindows(llvm::ArrayRef<int64_t> batch, llvm::ArrayRef<int64_t> window, llvm::ArrayRef<int64_t> at) {
  Dims dims;
  size_t b = 0, w = 0;
  while (b < batch.size() || w < window.size()) {
    bool from_window = w < window.size() && (b == batch.size() || at[w] == static_cast<int64_t>(dims.size()));
    dims.push_back(from_window ? window[w++] : batch[b++]);
  }
  return dims;
}

llvm::Error checkUpdate(OpCheck& c, const Type& input, const Type& indices, const Type& update) {
  const Keys& keys = kScatterKeys;
  Dims window;
  for (int64_t d = 0; d < input.rank(); ++d)
    if (!removed(c, keys, d)) window.push_back(input.dims[static_cast<size_t>(d)]);
  if (auto e = c.needLength(keys.window, window.size())) return e;
  Dims expected =
      placeWindows(batchDims(indices, c.num(AttrKey::index_vector_dim)), window, c.ints(keys.window));
  if (update.element != input.element) return c.fail("updates " + c.text(input) + " with " + c.text(update));
  bool fits = update.dims.size() == expected.size();
  for (size_t i = 0; fits && i < expected.size(); ++i) {
    int64_t size = update.dims[i];
    if (size == kDynamicDim || expected[i] == kDynamicDim) continue;
    bool in_window = llvm::is_contained(c.ints(keys.window), static_cast<int64_t>(i));
    fits = in_window ? size <= expected[i] : size == expected[i];
  }
  if (!fits)
    return c.fail("updates of " + c.text(update) + " do not fit indices " + c.text(indices) + " into " +
                  c.text(input));
  return llvm::Error::success();
}

}  // namespace

llvm::Error ruleGather(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  const Type& operand = c.in(0);
  const Type& indices = c.in(1);
  const Keys& keys = kGatherKeys;
  if (auto e = checkCommon(c, operand, indices, keys)) return e;
  Dims window;
  if (c.op.opcode == Opcode::gather) {
    if (auto e = c.needLength(AttrKey::slice_sizes, operand.dims.size())) return e;
    llvm::ArrayRef<int64_t> sizes = c.ints(AttrKey::slice_sizes);
    for (size_t d = 0; d < sizes.size(); ++d) {
      bool gone = removed(c, keys, static_cast<int64_t>(d));
      if (sizes[d] < 0 || (operand.dims[d] != kDynamicDim && sizes[d] > operand.dims[d]) ||
          (gone && sizes[d] > 1))
        return c.fail("slice of " + llvm::Twine(sizes[d]) + " does not fit dimension " + llvm::Twine(d) +
                      " of " + c.text(operand));
      if (!gone) window.push_back(sizes[d]);
    }
  } else {
    for (int64_t d = 0; d < operand.rank(); ++d)
      if (!removed(c, keys, d)) window.push_back(kDynamicDim);
  }
  if (auto e = c.needLength(keys.window, window.size())) return e;
  Dims batch = batchDims(indices, c.num(AttrKey::index_vector_dim));
  if (auto e = c.needDims(keys.window, static_cast<int64_t>(batch.size() + window.size()), true)) return e;
  c.yield(operand.element, placeWindows(batch, window, c.ints(keys.window)));
  return llvm::Error::success();
}

llvm::Error ruleScatter(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (c.numIn() % 2 == 0)
    return c.fail("takes inputs, indices and as many updates; found " + llvm::Twine(c.numIn()) + " operands");
  size_t count = c.numIn() / 2;
  const Type& indices = c.in(count);
  for (size_t i = 0; i < count; ++i) {
    const Type& input = c.in(i);
    const Type& update = c.in(count + 1 + i);
    if (!compatibleDims(input.dims, c.in(0).dims)) return c.fail("inputs differ in shape");
    if (auto e = checkCommon(c, input, indices, kScatterKeys)) return e;
    if (auto e = c.needDims(kScatterKeys.window, update.rank(), true)) return e;
    if (auto e = checkUpdate(c, input, indices, update)) return e;
  }
  llvm::SmallVector<ElementType, 2> elements;
  if (auto e = c.needReducer(0, count, elements)) return e;
  for (size_t i = 0; i < count; ++i) c.yield(elements[i], c.in(i).dims);
  return llvm::Error::success();
}

llvm::Error ruleTorchIndexSelect(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  if (auto e = c.needDim(AttrKey::dimension, c.in(0).rank())) return e;
  if (c.in(0).element != c.out(0).element) return c.fail("changes the element type");
  c.yieldGiven();
  return llvm::Error::success();
}

}  // namespace tpu::hlo
