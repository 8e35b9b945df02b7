// Rules of gather and scatter. Names follow the specification: batch dims are those of the index tensor
// without the index vector, window (offset) dims are those of a slice. Both have the same constraints under
// numbers of their own.
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
// The numbers of the constraints that gather and scatter share.
struct Numbers {
  size_t rank, vector_dim, map_size, removed_and_batching, removed_sorted, removed_range, batching_sorted,
      batching_range, index_unique, index_range, index_vector, batching_count, batching_sizes, map_unique,
      map_range;
};
constexpr Numbers kGather = {1, 2, 3, 6, 7, 8, 10, 11, 13, 14, 15, 16, 17, 18, 19};
constexpr Numbers kScatter = {2, 22, 19, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21};

llvm::Error needDistinct(OpCheck& c, AttrKey a, AttrKey b, Label label) {
  if (auto e = c.needUnique(a, label)) return e;
  if (auto e = c.needUnique(b, label)) return e;
  for (int64_t dim : c.ints(b))
    if (llvm::is_contained(c.ints(a), dim))
      return c.fail(
          label, "dimension " + llvm::Twine(dim) + " is named by " + attrName(a) + " and by " + attrName(b));
  return llvm::Error::success();
}

llvm::Error checkBatching(OpCheck& c, const Type& operand, const Type& indices, const Keys& keys,
                          const Numbers& n) {
  int64_t vector_dim = c.num(AttrKey::index_vector_dim);
  if (auto e = c.needDims(keys.index_batching, indices.rank(), C(n.index_range), C(n.index_unique))) return e;
  if (llvm::is_contained(c.ints(keys.index_batching), vector_dim))
    return c.fail(C(n.index_vector), "the index vector is no batching dimension");
  if (auto e = c.needLength(keys.index_batching, c.ints(keys.batching).size(), C(n.batching_count))) return e;
  for (size_t i = 0; i < c.ints(keys.batching).size(); ++i) {
    int64_t a = operand.dims[static_cast<size_t>(c.ints(keys.batching)[i])];
    int64_t b = indices.dims[static_cast<size_t>(c.ints(keys.index_batching)[i])];
    if (a != b && a != kDynamicDim && b != kDynamicDim)
      return c.fail(C(n.batching_sizes),
                    "batching dimensions differ in size: " + llvm::Twine(a) + " and " + llvm::Twine(b));
  }
  return llvm::Error::success();
}

llvm::Error checkCommon(OpCheck& c, const Type& operand, const Type& indices, const Keys& keys,
                        const Numbers& n) {
  if (!isInteger(indices.element))
    return c.fail(I(2), "indices are " + c.text(indices) + ", expected integers");
  int64_t vector_dim = c.num(AttrKey::index_vector_dim);
  if (vector_dim < 0 || vector_dim > indices.rank())
    return c.fail(C(n.vector_dim),
                  "index_vector_dim = " + llvm::Twine(vector_dim) + " leaves the indices " + c.text(indices));
  if (auto e = c.needInRange(keys.removed, operand.rank(), C(n.removed_range))) return e;
  if (auto e = c.needSorted(keys.removed, C(n.removed_sorted))) return e;
  if (auto e = c.needInRange(keys.batching, operand.rank(), C(n.batching_range))) return e;
  if (auto e = c.needSorted(keys.batching, C(n.batching_sorted))) return e;
  if (auto e = needDistinct(c, keys.removed, keys.batching, C(n.removed_and_batching))) return e;
  if (auto e = c.needInRange(keys.map, operand.rank(), C(n.map_range))) return e;
  if (auto e = needDistinct(c, keys.map, keys.batching, C(n.map_unique))) return e;
  if (auto e = checkBatching(c, operand, indices, keys, n)) return e;
  int64_t length = vectorLength(indices, vector_dim);
  if (length != kDynamicDim && length != static_cast<int64_t>(c.ints(keys.map).size()))
    return c.fail(C(n.map_size), "index vectors have " + llvm::Twine(length) + " entries, " +
                                     attrName(keys.map) + " has " + llvm::Twine(c.ints(keys.map).size()));
  const size_t named =
      c.ints(keys.window).size() + c.ints(keys.removed).size() + c.ints(keys.batching).size();
  if (named != operand.dims.size())
    return c.fail(C(n.rank), attrName(keys.window) + ", " + attrName(keys.removed) + " and " +
                                 attrName(keys.batching) + " name " + llvm::Twine(named) + " dimensions of " +
                                 c.text(operand));
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
  Dims expected =
      placeWindows(batchDims(indices, c.num(AttrKey::index_vector_dim)), window, c.ints(keys.window));
  if (update.element != input.element)
    return c.fail(C(6), "updates " + c.text(input) + " with " + c.text(update));
  bool fits = update.dims.size() == expected.size();
  for (size_t i = 0; fits && i < expected.size(); ++i) {
    int64_t size = update.dims[i];
    if (size == kDynamicDim || expected[i] == kDynamicDim) continue;
    bool in_window = llvm::is_contained(c.ints(keys.window), static_cast<int64_t>(i));
    fits = in_window ? size <= expected[i] : size == expected[i];
  }
  if (!fits)
    return c.fail(C(4), "updates of " + c.text(update) + " do not fit indices " + c.text(indices) + " into " +
                            c.text(input));
  return llvm::Error::success();
}

// Sizes of slices, given by the attribute or by an operand that is a constant.
llvm::Error checkSlices(OpCheck& c, const Type& operand, llvm::ArrayRef<int64_t> sizes) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t dim = static_cast<int64_t>(d);
    Label label;
    if (sizes[d] > 1 && llvm::is_contained(c.ints(kGatherKeys.removed), dim)) label = C(9);
    if (sizes[d] > 1 && llvm::is_contained(c.ints(kGatherKeys.batching), dim)) label = C(12);
    if (sizes[d] < 0 || (operand.dims[d] != kDynamicDim && sizes[d] > operand.dims[d])) label = C(21);
    if (label.list)
      return c.fail(label, "slice of " + llvm::Twine(sizes[d]) + " does not fit dimension " + llvm::Twine(d) +
                               " of " + c.text(operand));
  }
  return llvm::Error::success();
}

}  // namespace

llvm::Error ruleGather(OpCheck& c) {
  c.resultsBy(C(23), C(22));
  if (auto e = c.needTensors()) return e;
  const Type& operand = c.in(0);
  const Type& indices = c.in(1);
  const Keys& keys = kGatherKeys;
  if (auto e = checkCommon(c, operand, indices, keys, kGather)) return e;
  std::optional<llvm::SmallVector<int64_t, 6>> known;
  if (c.op.opcode == Opcode::gather) {
    if (auto e = c.needLength(AttrKey::slice_sizes, operand.dims.size(), C(20))) return e;
    known.emplace(c.ints(AttrKey::slice_sizes));
  } else {
    if (auto e = c.needShapeOperand(2, operand.dims.size(), I(3), C(20))) return e;
    known = c.constantInts(2);
  }
  if (known)
    if (auto e = checkSlices(c, operand, *known)) return e;
  const auto sizes = known.value_or(llvm::SmallVector<int64_t, 6>(operand.dims.size(), kDynamicDim));
  Dims window;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!removed(c, keys, static_cast<int64_t>(d))) window.push_back(sizes[d]);
  Dims batch = batchDims(indices, c.num(AttrKey::index_vector_dim));
  if (auto e = c.needDims(keys.window, static_cast<int64_t>(batch.size() + window.size()), C(5), C(4), true))
    return e;
  c.yield(operand.element, placeWindows(batch, window, c.ints(keys.window)));
  return llvm::Error::success();
}

llvm::Error ruleScatter(OpCheck& c) {
  c.resultsBy(C(25), C(24), C(24));
  if (auto e = c.needTensors(1)) return e;
  if (c.numIn() % 2 == 0)
    return c.fail(C(5),
                  "takes inputs, indices and as many updates; found " + llvm::Twine(c.numIn()) + " operands");
  size_t count = c.numIn() / 2;
  const Type& indices = c.in(count);
  for (size_t i = 0; i < count; ++i) {
    const Type& input = c.in(i);
    const Type& update = c.in(count + 1 + i);
    if (auto e = c.needSameDims(0, i, C(1))) return e;
    if (auto e = c.needSameDims(count + 1, count + 1 + i, C(3))) return e;
    if (auto e = checkCommon(c, input, indices, kScatterKeys, kScatter)) return e;
    if (auto e = c.needDims(kScatterKeys.window, update.rank(), C(8), C(7), true)) return e;
    if (auto e = checkUpdate(c, input, indices, update)) return e;
  }
  llvm::SmallVector<ElementType, 2> elements;
  if (auto e = c.needReducer(0, count, C(23), elements)) return e;
  for (size_t i = 0; i < count; ++i) c.yield(elements[i], c.in(i).dims);
  return llvm::Error::success();
}

llvm::Error ruleTorchIndexSelect(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  if (auto e = c.needDim(AttrKey::dimension, c.in(0).rank(), {})) return e;
  const Type &in = c.in(0), &index = c.in(1);
  const int64_t dim = c.num(AttrKey::dimension), batch = c.num(AttrKey::batch_dims);
  if (!isInteger(index.element)) return c.fail("selects by " + c.text(index) + ", expected integers");
  if (batch < 0 || batch > dim || batch > index.rank())
    return c.fail("batch_dims = " + llvm::Twine(batch) + " leaves the dimensions before " + llvm::Twine(dim) + " or " +
                  c.text(index));
  const auto batches = [&](const Type& type) { return llvm::ArrayRef<int64_t>(type.dims).take_front(static_cast<size_t>(batch)); };
  if (!compatibleDims(batches(in), batches(index)))
    return c.fail("batch dimensions of " + c.text(in) + " and " + c.text(index) + " differ");
  Dims dims(in.dims.begin(), in.dims.begin() + dim);
  dims.append(index.dims.begin() + batch, index.dims.end());
  dims.append(in.dims.begin() + dim + 1, in.dims.end());
  c.yield(in.element, dims);
  return llvm::Error::success();
}

}  // namespace tpu::hlo
