// Gather and scatter along sharded dimensions: every device works on what lies in its own range, with indices counted
// from the beginning of its shard. A window longer than one element may reach over borders: the shard is widened by what a
// window can stick out on both sides.
#include "localise.h"
#include "tpu/sharding/reducer.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;
using sharding::Axes;

namespace {

using Ints = llvm::SmallVector<int64_t, 6>;

int64_t indexIn(llvm::ArrayRef<int64_t> list, int64_t value) { return llvm::find(list, value) - list.begin(); }

/// The indices of one dimension, and their place in the index tensor.
struct Column {
  ValueId value;
  int64_t dim = 0, at = 0, count = 1;  // count: of columns
};

Column columnOf(hlo::Builder& b, ValueId indices, int64_t ivd, int64_t k) {
  const hlo::Type t = b.m.typeOf(indices);
  if (ivd == t.rank()) return {indices, ivd};
  return {b.sliceDim(indices, ivd, k, k + 1), ivd, k, t.dims[ivd]};
}

/// `indices` with `fresh` in place of the column.
ValueId putColumn(hlo::Builder& b, ValueId indices, const Column& c, ValueId fresh) {
  if (c.count == 1) return fresh;
  llvm::SmallVector<ValueId, 3> parts;
  if (c.at > 0) parts.push_back(b.sliceDim(indices, c.dim, 0, c.at));
  parts.push_back(fresh);
  if (c.at + 1 < c.count) parts.push_back(b.sliceDim(indices, c.dim, c.at + 1, c.count));
  return b.concatenate(parts, c.dim);
}

/// Indices of a narrow type cannot count the elements of another shard.
ValueId wideIndices(hlo::Builder& b, ValueId indices) {
  return elementBits(b.m.typeOf(indices).element) < 32 ? b.convert(indices, ElementType::kS32) : indices;
}

}  // namespace

llvm::Error Localiser::gatherOp(OpId id) {
  ValueId x = m_.op(id).operands[0], y = m_.op(id).results[0];
  Layout lx = layout(x);
  const Ints collapsed(m_.getInts(id, AttrKey::collapsed_slice_dims)), map(m_.getInts(id, AttrKey::start_index_map)),
      batching(m_.getInts(id, AttrKey::operand_batching_dims)), offset_dims(m_.getInts(id, AttrKey::offset_dims));
  Ints sizes(m_.getInts(id, AttrKey::slice_sizes));
  int64_t ivd = m_.getInt(id, AttrKey::index_vector_dim);
  ValueId operand = current(x), indices = wideIndices(b_, current(m_.op(id).operands[1]));
  ValueId owned;  // pred over the batch shape of the indices: this device has the row
  struct Reach {
    ValueId first;  // of a window, counted from the beginning of the own shard; over the batch shape
    int64_t dim, shard;
  };
  llvm::SmallVector<Reach, 2> reaches;
  const hlo::Dims global_x = globalType(x).dims;
  size_t next_offset = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    if (llvm::is_contained(batching, dim)) continue;
    int64_t out_dim = llvm::is_contained(collapsed, dim) ? -1 : offset_dims[next_offset++];
    if (lx.dims[d].empty()) continue;
    int64_t local = m_.typeOf(operand).dims[d];
    if (out_dim >= 0 && sizes[d] == global_x[d]) {
      sizes[d] = local;  // whole dimension, own part
      continue;
    }
    // Clamp on the whole size, then look at own elements only.
    Column column = columnOf(b_, indices, ivd, indexIn(map, dim));
    const hlo::Type ct = m_.typeOf(column.value);
    hlo::TypeId cid = m_.value(column.value).type;
    ValueId clamped = b_.clamp(b_.splatInt(cid, 0), column.value, b_.splatInt(cid, global_x[d] - sizes[d]));
    ValueId offset = b_.convert(affine(lx.dims[d], local, 0), ct.element);
    ValueId own = b_.subtract(clamped, b_.broadcastScalar(offset, ct.dims));
    Ints flat(ct.dims.begin(), ct.dims.end());
    if (ivd < ct.rank()) flat.erase(flat.begin() + ivd);
    if (sizes[d] == 1) {
      ValueId in = b_.compare(hlo::Comparison::kLt, own, b_.splatInt(cid, local));
      if (!isUnsigned(ct.element)) in = b_.binary(Opcode::and_, in, b_.compare(hlo::Comparison::kGe, own, b_.splatInt(cid, 0)));
      if (ivd < ct.rank()) in = b_.reshape(in, flat);
      owned = owned ? b_.binary(Opcode::and_, owned, in) : in;
    } else {
      ValueId first = b_.convert(own, ElementType::kS32);
      reaches.push_back({ivd < ct.rank() ? b_.reshape(first, flat) : first, out_dim, local});
      needs(operand, dim, local + 2 * (sizes[d] - 1));
      operand = padDim(operand, dim, sizes[d] - 1, sizes[d] - 1, b_.scalarInt(m_.typeOf(operand).element, 0));
      own = b_.add(own, b_.splatInt(cid, sizes[d] - 1));
    }
    indices = putColumn(b_, indices, column, own);
  }
  keep(id);
  m_.op(id).operands[0] = operand;
  m_.op(id).operands[1] = indices;
  m_.setInts(id, AttrKey::slice_sizes, sizes);
  if (!owned && reaches.empty()) return llvm::Error::success();
  // Elements of other devices count as zero.
  const hlo::Type out = m_.typeOf(y);
  Ints place;
  for (int64_t d = 0; d < out.rank(); ++d) {
    if (!llvm::is_contained(offset_dims, d)) place.push_back(d);
  }
  if (owned) owned = b_.broadcastInDim(owned, out.dims, place);
  hlo::TypeId numbers = m_.tensorType(ElementType::kS32, out.dims);
  for (const Reach& r : reaches) {
    ValueId at = b_.add(b_.broadcastInDim(r.first, out.dims, place), b_.iota(numbers, r.dim));
    ValueId in = b_.binary(Opcode::and_, b_.compare(hlo::Comparison::kGe, at, b_.splatInt(numbers, 0)),
                           b_.compare(hlo::Comparison::kLt, at, b_.splatInt(numbers, r.shard)));
    owned = owned ? b_.binary(Opcode::and_, owned, in) : in;
  }
  finish(id, 0, b_.select(owned, y, b_.zeros(m_.value(y).type)));
  return llvm::Error::success();
}

llvm::Error Localiser::scatterOp(OpId id) {
  size_t n = m_.op(id).results.size();
  ValueId x = m_.op(id).operands[0], idx = m_.op(id).operands[n], u = m_.op(id).operands[n + 1];
  Layout lx = layout(x), li = layout(idx);
  const Ints inserted(m_.getInts(id, AttrKey::inserted_window_dims)), map(m_.getInts(id, AttrKey::scatter_dims_to_operand_dims)),
      window(m_.getInts(id, AttrKey::update_window_dims)), operand_batching(m_.getInts(id, AttrKey::input_batching_dims)),
      batching(m_.getInts(id, AttrKey::scatter_indices_batching_dims));
  int64_t ivd = m_.getInt(id, AttrKey::index_vector_dim);
  ValueId indices = wideIndices(b_, current(idx));
  const hlo::Type it = globalType(idx), xt = globalType(x);
  const hlo::Dims local = m_.typeOf(current(x)).dims;
  Ints wide(xt.rank(), 0);  // elements added on both sides
  size_t next_window = 0;
  for (int64_t d = 0; d < xt.rank(); ++d) {
    if (llvm::is_contained(operand_batching, d)) continue;
    int64_t size = llvm::is_contained(inserted, d) ? 1 : globalType(u).dims[window[next_window++]];
    int64_t k = indexIn(map, d);
    if (lx.dims[d].empty() || size == xt.dims[d] || k == static_cast<int64_t>(map.size())) continue;
    // Indices count from the own shard. What is outside of it is ignored by scatter itself; unsigned indices wrap to
    // large values, which is outside as well. Elements of padding may be written: they are cut.
    Column column = columnOf(b_, indices, ivd, k);
    const hlo::Type t = m_.typeOf(column.value);
    ValueId offset = b_.convert(affine(lx.dims[d], local[d], 1 - size), t.element);
    ValueId own = b_.subtract(column.value, b_.broadcastScalar(offset, t.dims));
    wide[d] = size - 1;
    indices = putColumn(b_, indices, column, own);
  }
  // Updates sharded over indices: partial results, with the operand counted once and padding ignored.
  Axes partial;
  for (int64_t d = 0; d < it.rank(); ++d) {
    if (d == ivd || li.dims[d].empty() || llvm::is_contained(batching, d)) continue;
    sharding::append(partial, li.dims[d]);
    const hlo::Type t = m_.typeOf(indices);
    indices = maskPadding(idx, indices, d, b_.scalarInt(t.element, isUnsigned(t.element) ? INT64_MAX : -1));
  }
  auto reducer = sharding::reducerOf(m_, m_.op(id).regions[0]);
  llvm::SmallVector<ValueId, 2> inputs;
  for (size_t i = 0; i < n; ++i) {
    ValueId v = current(m_.op(id).operands[i]);
    if (!partial.empty() && reducer) {
      if (auto one = b_.identity(*reducer, m_.value(v).type)) {
        ValueId first = b_.compare(hlo::Comparison::kEq, coordinate(partial), s32(0));
        v = b_.select(first, v, *one);
      }
    }
    for (int64_t d = 0; d < xt.rank(); ++d) {
      if (wide[d] == 0) continue;
      needs(v, d, local[d] + 2 * wide[d]);
      v = padDim(v, d, wide[d], wide[d], b_.scalarInt(m_.typeOf(v).element, 0));
    }
    inputs.push_back(v);
  }
  keep(id);
  for (size_t i = 0; i < n; ++i) m_.op(id).operands[i] = inputs[i];
  m_.op(id).operands[n] = indices;
  if (llvm::all_of(wide, [](int64_t w) { return w == 0; })) return llvm::Error::success();
  for (size_t i = 0; i < n; ++i) {
    ValueId v = m_.op(id).results[i];
    m_.value(v).type = m_.value(inputs[i]).type;
    for (int64_t d = 0; d < xt.rank(); ++d) {
      if (wide[d] != 0) v = b_.sliceDim(v, d, wide[d], wide[d] + local[d]);
    }
    finish(id, i, v);
  }
  return llvm::Error::success();
}

}  // namespace tpu::partition
