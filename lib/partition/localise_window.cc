// Shifting operations on sharded dimensions: fetch the window from neighbours, then run the operation on it
// locally.
#include <algorithm>
#include <array>

#include "localise.h"
#include "tpu/sharding/reducer.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;
using sharding::Axes;
using sharding::AxesRef;

ValueId Localiser::fetch(ValueId v, int64_t dim, const Window& w, AxesRef axes, ValueId fill) {
  if (auto blocks = blocksOf(w)) return fetchBlocks(v, dim, w, *blocks, axes, fill);
  Halo h = haloOf(w);
  int64_t c = w.shard();
  // Pieces from the left, far to near: the tail of the shard `hop` places before; from the right the heads.
  llvm::SmallVector<ValueId, 4> left, right;
  auto from = [&](int64_t hop, int64_t begin, int64_t end, bool from_left) {
    ValueId piece = b_.sliceDim(v, dim, begin, end);
    std::vector<int64_t> pairs;
    for (int64_t p = 0; p + hop < w.shards; ++p) {
      pairs.push_back(from_left ? p : p + hop);
      pairs.push_back(from_left ? p + hop : p);
    }
    ValueId got = permute(piece, axes, std::move(pairs));
    noteWhy(m_.value(got).def, "halo");
    return got;
  };
  for (int64_t hop = 1, rest = h.left; rest > 0 && hop < w.shards; ++hop, rest -= c)
    left.insert(left.begin(), from(hop, c - std::min(rest, c), c, true));
  for (int64_t hop = 1, rest = h.right; rest > 0 && hop < w.shards; ++hop, rest -= c)
    right.push_back(from(hop, 0, std::min(rest, c), false));
  llvm::SmallVector<ValueId, 4> parts(left);
  parts.push_back(v);
  parts.append(right.begin(), right.end());
  needs(v, dim, c + h.left + h.right + w.count());
  ValueId all = parts.size() == 1 ? v : b_.concatenate(parts, dim);
  int64_t total = m_.typeOf(all).dims[dim];
  // Pieces beyond the ends of the mesh are not sent: the offset counts what is there.
  int64_t got_left = 0;
  for (ValueId p : left) got_left += m_.typeOf(p).dims[dim];
  int64_t shift = got_left - h.left;
  int64_t low = std::max<int64_t>(0, -(h.min_offset + shift)),
          high = std::max<int64_t>(0, h.max_offset + shift + w.count() - total);
  all = padDim(all, dim, low, high, fill);
  if (w.dilation > 1) return spread(all, dim, w, axes, fill, got_left + low);
  int64_t first = w.start + got_left + low;  // offset of device 0's window in `all`
  ValueId out;
  if (w.step == c) {
    out = b_.sliceDim(all, dim, first, first + w.length);
  } else {
    llvm::SmallVector<ValueId, 6> starts(m_.typeOf(all).rank(), s32(0));
    llvm::SmallVector<int64_t, 6> sizes(m_.typeOf(all).dims.begin(), m_.typeOf(all).dims.end());
    starts[dim] = affine(axes, w.step - c, first);
    sizes[dim] = w.length;
    out = b_.dynamicSlice(all, starts, sizes);
  }
  if (!h.outside) return out;
  // Zeros of missing neighbours and padding of the last shard stand where the array ends: fill by global
  // index.
  hlo::Dims dims = m_.typeOf(out).dims;
  bool below = w.start < 0 || w.start + w.step * (w.shards - 1) < 0;
  ValueId in = inRange(dims, dim, affine(axes, w.step, w.start), below ? 0 : INT32_MIN, w.size);
  return b_.select(in, out, b_.broadcastScalar(fill, dims));
}

/// The window of a spread array: its elements are cut from `all` (in which the own shard begins at `own`), filled
/// by global index, spread by interior padding, and cut again where the window begins between two elements.
ValueId Localiser::spread(ValueId all, int64_t dim, const Window& w, AxesRef axes, ValueId fill, int64_t own) {
  // Both divisions are of what is not negative: `turns` whole steps are added and taken off again.
  int64_t turns = 0;
  for (int64_t p = 0; p < w.shards; ++p) turns = std::max(turns, -w.first(p));
  ValueId begin = affine(axes, w.step, w.start + turns * w.dilation);
  ValueId quotient = b_.divide(begin, s32(w.dilation));
  ValueId first = b_.subtract(quotient, s32(turns));
  llvm::SmallVector<ValueId, 6> starts(m_.typeOf(all).rank(), s32(0));
  llvm::SmallVector<int64_t, 6> sizes(m_.typeOf(all).dims.begin(), m_.typeOf(all).dims.end());
  starts[dim] = b_.add(b_.subtract(first, affine(axes, w.shard(), 0)), s32(own));
  sizes[dim] = w.count();
  ValueId out = b_.dynamicSlice(all, starts, sizes);
  out = b_.select(inRange(m_.typeOf(out).dims, dim, first, 0, w.size), out,
                  b_.broadcastScalar(fill, m_.typeOf(out).dims));
  needs(out, dim, w.length + 2 * w.dilation);
  int64_t rank = m_.typeOf(out).rank();
  llvm::SmallVector<int64_t, 6> low(rank, 0), high(rank, 0), mid(rank, 0);
  mid[dim] = w.dilation - 1;
  // Wide enough for the latest start.
  high[dim] = std::max<int64_t>(0, w.dilation - 1 + w.length - ((w.count() - 1) * w.dilation + 1));
  out = b_.pad(out, fill, low, high, mid);
  starts[dim] = b_.subtract(begin, b_.multiply(quotient, s32(w.dilation)));
  sizes[dim] = w.length;
  return b_.dynamicSlice(out, starts, sizes);
}

ValueId Localiser::ownPart(ValueId v, int64_t dim, ValueId start, int64_t length, AxesRef axes) {
  // Widened by the box on both sides, the own shard contains the box wherever it overlaps.
  int64_t c = m_.typeOf(v).dims[dim];
  ValueId zero = b_.scalarInt(m_.typeOf(v).element, 0);
  ValueId relative = b_.subtract(start, affine(axes, c, 0));  // of the box against the own shard
  needs(v, dim, c + 2 * length);
  ValueId wide = padDim(v, dim, length, length, zero);
  llvm::SmallVector<ValueId, 6> starts(m_.typeOf(v).rank(), s32(0));
  llvm::SmallVector<int64_t, 6> sizes(m_.typeOf(v).dims.begin(), m_.typeOf(v).dims.end());
  starts[dim] = b_.clamp(s32(0), b_.add(relative, s32(length)), s32(c + length));
  sizes[dim] = length;
  return b_.dynamicSlice(wide, starts, sizes);
}

namespace {

ValueId zeroOf(hlo::Builder& b, ValueId v) { return b.scalarInt(b.m.typeOf(v).element, 0); }

}  // namespace

llvm::Error Localiser::sliceOp(OpId id) {
  ValueId operand = m_.op(id).operands[0], result = m_.op(id).results[0];
  const hlo::Dims from = globalType(operand).dims, to = globalType(result).dims;
  Layout l = layout(operand);
  ValueId v = current(operand);
  auto copy = [&](AttrKey key) { return llvm::SmallVector<int64_t, 6>(m_.getInts(id, key)); };
  llvm::SmallVector<int64_t, 6> start = copy(AttrKey::start_indices), limit = copy(AttrKey::limit_indices),
                                stride = copy(AttrKey::strides);
  if (stride.empty()) stride.assign(from.size(), 1);
  bool trivial = true;
  for (size_t d = 0; d < from.size(); ++d) {
    if (!l.dims[d].empty() && layout(result).dims[d].empty()) {
      v = ownPart(v, d, s32(start[d]), (to[d] - 1) * stride[d] + 1, l.dims[d]);
      start[d] = 0;
      limit[d] = m_.typeOf(v).dims[d];
    } else if (!l.dims[d].empty()) {
      if (from[d] != to[d]) {
        Window w = windowsOf(m_, id, d, d, {from[d]}, to[d], sharding::product(l.dims[d]))[0];
        v = fetch(v, d, w, l.dims[d], zeroOf(b_, v));
      } else {
        stride[d] = 1;
      }
      start[d] = 0;
      limit[d] = m_.typeOf(v).dims[d];
    }
    trivial &= start[d] == 0 && stride[d] == 1 && limit[d] == m_.typeOf(v).dims[d];
  }
  if (!trivial || v == current(operand)) v = b_.slice(v, start, limit, stride);
  finish(id, 0, v);
  return llvm::Error::success();
}

llvm::Error Localiser::padOp(OpId id) {
  ValueId operand = m_.op(id).operands[0], fill = current(m_.op(id).operands[1]);
  const hlo::Dims from = globalType(operand).dims, to = globalType(m_.op(id).results[0]).dims;
  Layout l = layout(operand);
  ValueId v = current(operand);
  auto copy = [&](AttrKey key) { return llvm::SmallVector<int64_t, 6>(m_.getInts(id, key)); };
  llvm::SmallVector<int64_t, 6> low = copy(AttrKey::edge_padding_low),
                                high = copy(AttrKey::edge_padding_high),
                                mid = copy(AttrKey::interior_padding);
  bool windowed = false;
  for (size_t d = 0; d < from.size(); ++d) {
    if (l.dims[d].empty() || (low[d] == 0 && high[d] == 0 && (mid.empty() || mid[d] == 0))) continue;
    Window w = windowsOf(m_, id, d, d, {from[d]}, to[d], sharding::product(l.dims[d]))[0];
    v = fetch(v, d, w, l.dims[d], fill);
    low[d] = high[d] = 0;
    if (!mid.empty()) mid[d] = 0;
    windowed = true;
  }
  if (!windowed) return keep(id), llvm::Error::success();
  bool more = false;
  for (size_t d = 0; d < from.size(); ++d)
    more |= low[d] != 0 || high[d] != 0 || (!mid.empty() && mid[d] != 0);
  if (more) v = b_.pad(v, fill, low, high, mid);
  finish(id, 0, v);
  return llvm::Error::success();
}

llvm::Error Localiser::concatenateOp(OpId id) {
  int64_t dim = m_.getInt(id, AttrKey::dimension);
  ValueId result = m_.op(id).results[0];
  Layout l = layout(result);
  if (l.dims[dim].empty()) return keep(id), llvm::Error::success();
  llvm::SmallVector<int64_t, 4> sizes;
  for (ValueId v : m_.op(id).operands) sizes.push_back(globalType(v).dims[dim]);
  int64_t k = sharding::product(l.dims[dim]);
  auto windows = windowsOf(m_, id, dim, dim, sizes, globalType(result).dims[dim], k);
  int64_t out = sharding::shardSize(globalType(result).dims[dim], k);
  ValueId joined;
  const llvm::SmallVector<ValueId, 4> operands(m_.op(id).operands.begin(), m_.op(id).operands.end());
  int64_t offset = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    ValueId v = current(operands[i]);
    ValueId part = fetch(v, dim, windows[i], l.dims[dim], zeroOf(b_, v));
    if (joined) {
      hlo::Dims dims = m_.typeOf(part).dims;
      ValueId before = inRange(dims, dim, affine(l.dims[dim], out, 0), INT32_MIN, offset);
      part = b_.select(before, joined, part);
    }
    joined = part;
    offset += sizes[i];
  }
  finish(id, 0, joined);
  return llvm::Error::success();
}

llvm::Error Localiser::reverseOp(OpId id) {
  ValueId operand = m_.op(id).operands[0];
  const llvm::SmallVector<int64_t, 4> dims(m_.getInts(id, AttrKey::dimensions));
  Layout l = layout(operand);
  ValueId v = current(operand);
  for (int64_t d : dims) {
    if (l.dims[d].empty()) continue;
    int64_t n = globalType(operand).dims[d], k = sharding::product(l.dims[d]);
    if (n % k != 0) v = fetch(v, d, windowsOf(m_, id, d, d, {n}, n, k)[0], l.dims[d], zeroOf(b_, v));
    std::vector<int64_t> mirror;
    for (int64_t p = 0; p < k; ++p) {
      mirror.push_back(p);
      mirror.push_back(k - 1 - p);
    }
    v = permute(v, l.dims[d], std::move(mirror));
    noteWhy(m_.value(v).def, "mirror");
  }
  finish(id, 0, b_.reverse(v, dims));
  return llvm::Error::success();
}

llvm::Error Localiser::convolutionOp(OpId id) {
  auto get = [&](AttrKey key) { return m_.getInt(id, key); };
  ValueId x = m_.op(id).operands[0], k = m_.op(id).operands[1], y = m_.op(id).results[0];
  int64_t xf = get(AttrKey::input_feature_dimension), ki = get(AttrKey::kernel_input_feature_dimension);
  ValueId lhs = maskContracting(x, {xf}), rhs = maskContracting(k, {ki});
  Layout lx = layout(x), lk = layout(k);
  const llvm::SmallVector<int64_t, 4> spatial(m_.getInts(id, AttrKey::input_spatial_dimensions)),
      out_dims(m_.getInts(id, AttrKey::output_spatial_dimensions)), taps(m_.getInts(id, AttrKey::kernel_spatial_dimensions));
  llvm::SmallVector<int64_t, 8> padding(m_.getInts(id, AttrKey::padding));
  if (padding.empty()) padding.assign(2 * spatial.size(), 0);
  llvm::SmallVector<int64_t, 4> base(m_.getInts(id, AttrKey::lhs_dilation));
  for (size_t s = 0; s < spatial.size(); ++s) {
    int64_t d = spatial[s];
    if (lx.dims[d].empty()) continue;
    const int64_t size = globalType(x).dims[d], shards = sharding::product(lx.dims[d]);
    Window w = lk.dims[taps[s]].empty() ? windowsOf(m_, id, d, out_dims[s], {size}, globalType(y).dims[out_dims[s]], shards)[0]
                                        : tapsWindow(m_, id, d, size, globalType(k).dims[taps[s]], shards);
    lhs = fetch(lhs, d, w, lx.dims[d], zeroOf(b_, lhs));
    padding[2 * s] = padding[2 * s + 1] = 0;
    if (s < base.size()) base[s] = 1;
  }
  keep(id);
  m_.op(id).operands[0] = lhs;
  m_.op(id).operands[1] = rhs;
  m_.setInts(id, AttrKey::padding, padding);
  if (!base.empty()) m_.setInts(id, AttrKey::lhs_dilation, base);
  // Sharded group factors leave fewer groups on each device.
  if (m_.getInt(id, AttrKey::feature_group_count, 1) > 1) {
    m_.setInt(id, AttrKey::feature_group_count, m_.typeOf(lhs).dims[xf] / m_.typeOf(rhs).dims[ki]);
  }
  if (m_.getInt(id, AttrKey::batch_group_count, 1) > 1) {
    int64_t batch = m_.typeOf(lhs).dims[get(AttrKey::input_batch_dimension)];
    m_.setInt(id, AttrKey::batch_group_count,
              batch / m_.typeOf(y).dims[get(AttrKey::output_batch_dimension)]);
  }
  return llvm::Error::success();
}

llvm::Error Localiser::reduceWindowOp(OpId id) {
  size_t n = m_.op(id).results.size();
  llvm::SmallVector<int64_t, 8> padding(m_.getInts(id, AttrKey::padding));
  if (padding.empty()) padding.assign(2 * globalType(m_.op(id).operands[0]).rank(), 0);
  llvm::SmallVector<int64_t, 6> base(m_.getInts(id, AttrKey::base_dilations));
  llvm::SmallVector<ValueId, 4> inputs;
  bool windowed = false;
  int64_t running = runningDim(id);
  for (size_t i = 0; i < n; ++i) {
    ValueId x = m_.op(id).operands[i], init = current(m_.op(id).operands[n + i]);
    Layout l = layout(x);
    ValueId v = current(x);
    const hlo::Dims from = globalType(x).dims, to = globalType(m_.op(id).results[i]).dims;
    for (size_t d = 0; d < from.size(); ++d) {
      bool plain = m_.getInts(id, AttrKey::window_dimensions)[d] == 1 && from[d] == to[d] &&
                   padding[2 * d] == 0 && padding[2 * d + 1] == 0;
      if (l.dims[d].empty() || plain || static_cast<int64_t>(d) == running) continue;
      Window w = windowsOf(m_, id, d, d, {from[d]}, to[d], sharding::product(l.dims[d]))[0];
      v = fetch(v, d, w, l.dims[d], init);
      padding[2 * d] = padding[2 * d + 1] = 0;
      if (d < base.size()) base[d] = 1;
      windowed = true;
    }
    if (running >= 0) v = maskPadding(x, v, running, init);
    inputs.push_back(v);
  }
  ValueId first = m_.op(id).operands[0];
  keep(id);
  for (size_t i = 0; i < n; ++i) m_.op(id).operands[i] = inputs[i];
  if (windowed) m_.setInts(id, AttrKey::padding, padding);
  if (windowed && !base.empty()) m_.setInts(id, AttrKey::base_dilations, base);
  return running < 0 ? llvm::Error::success() : runningTotal(id, first, running, std::move(padding));
}

namespace {

/// The last element inside of an array, and the positions beyond it.
struct End {
  int64_t last, from, to;
};
std::array<End, 2> endsOf(int64_t size) { return {{{0, INT32_MIN, 0}, {size - 1, size, INT32_MAX}}}; }

}  // namespace

/// What lies beyond the ends of the whole dimension repeats the first and the last element. `position`: of the first element
/// here.
ValueId Localiser::repeatEnds(ValueId v, int64_t dim, ValueId position, int64_t size) {
  const hlo::Dims dims = m_.typeOf(v).dims;
  llvm::SmallVector<int64_t, 6> one(dims.begin(), dims.end()), places;
  for (size_t d = 0; d < dims.size(); ++d) places.push_back(static_cast<int64_t>(d));
  one[dim] = 1;
  const ValueId row = v;
  for (const End& end : endsOf(size)) {
    llvm::SmallVector<ValueId, 6> at(dims.size(), s32(0));
    at[dim] = b_.subtract(s32(end.last), position);
    const ValueId repeated = b_.broadcastInDim(b_.dynamicSlice(row, at, one), dims, places);
    v = b_.select(inRange(dims, dim, position, end.from, end.to), repeated, v);
  }
  return v;
}

/// What was added to elements beyond the ends, to those that they repeat.
ValueId Localiser::foldEnds(ValueId v, int64_t dim, ValueId position, int64_t size, ValueId init) {
  const hlo::Dims dims = m_.typeOf(v).dims;
  const ValueId zero = zeroOf(b_, v), zeros = b_.broadcastScalar(zero, dims);
  const ValueId added = isIdentity(init, Opcode::add) ? v : b_.subtract(v, b_.broadcastScalar(init, dims));
  llvm::SmallVector<int64_t, 6> places;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    if (d != dim) places.push_back(d);
  }
  for (const End& end : endsOf(size)) {
    const ValueId beyond = b_.select(inRange(dims, dim, position, end.from, end.to), added, zeros);
    const ValueId sum = b_.broadcastInDim(b_.reduce(beyond, zero, {dim}, Opcode::add), dims, places);
    v = b_.add(v, b_.select(inRange(dims, dim, position, end.last, end.last + 1), sum, zeros));
  }
  return v;
}

/// Every device scatters from all windows that touch its rows and keeps those rows: windows at a border are looked at by both
/// sides. Windows beyond the ends add nothing. Padding is never selected: at the ends of the array it repeats the last element
/// inside, of which every padded window has one, so that whatever the region compares, it keeps either that element or its
/// copy, and what the copy got is added to the element.
llvm::Error Localiser::selectAndScatterOp(OpId id) {
  ValueId x = m_.op(id).operands[0], source = m_.op(id).operands[1], y = m_.op(id).results[0];
  const hlo::Dims from = globalType(x).dims, windows = globalType(source).dims;
  Layout l = layout(x);
  ValueId operand = current(x), updates = current(source);
  const ValueId init = current(m_.op(id).operands[2]);
  llvm::SmallVector<int64_t, 8> padding(m_.getInts(id, AttrKey::padding));
  if (padding.empty()) padding.assign(2 * from.size(), 0);
  llvm::SmallVector<int64_t, 6> begin(from.size(), -1);  // of the own rows, where a window was fetched
  llvm::SmallVector<ValueId, 6> padded(from.size());     // the position of its first row, where windows are padded
  for (size_t d = 0; d < from.size(); ++d) {
    const auto sizes = m_.getInts(id, AttrKey::window_dimensions), strides = m_.getInts(id, AttrKey::window_strides);
    const int64_t size = sizes.empty() ? 1 : sizes[d], stride = strides.empty() ? 1 : strides[d];
    const bool apart = size == stride && padding[2 * d] == 0 && padding[2 * d + 1] == 0 && from[d] == windows[d] * size;
    if (l.dims[d].empty() || apart) continue;
    auto w = windowsOf(m_, id, d, d, {from[d], windows[d]}, from[d], sharding::product(l.dims[d]));
    operand = fetch(operand, d, w[0], l.dims[d], zeroOf(b_, operand));
    updates = fetch(updates, d, w[1], l.dims[d], zeroOf(b_, updates));
    if (padding[2 * d] != 0 || padding[2 * d + 1] != 0) {
      padded[d] = affine(l.dims[d], w[0].step, w[0].start);
      operand = repeatEnds(operand, d, padded[d], from[d]);
    }
    padding[2 * d] = padding[2 * d + 1] = 0;
    begin[d] = -w[0].start;
  }
  keep(id);
  m_.op(id).operands[0] = operand;
  m_.op(id).operands[1] = updates;
  if (llvm::all_of(begin, [](int64_t b) { return b < 0; })) return llvm::Error::success();
  m_.setInts(id, AttrKey::padding, padding);
  const hlo::Dims own = m_.typeOf(y).dims;
  m_.value(y).type = m_.tensorType(m_.typeOf(y).element, m_.typeOf(operand).dims);
  ValueId v = y;
  for (size_t d = 0; d < from.size(); ++d) {
    if (padded[d]) v = foldEnds(v, d, padded[d], from[d], init);
  }
  for (size_t d = 0; d < from.size(); ++d) {
    if (begin[d] >= 0) v = b_.sliceDim(v, d, begin[d], begin[d] + own[d]);
  }
  finish(id, 0, v);
  return llvm::Error::success();
}

/// A sharded dimension along which the window is a running total that can be continued from shard to shard.
int64_t Localiser::runningDim(OpId id) const {
  ValueId x = m_.op(id).operands[0];
  Layout l = layout(x);
  for (size_t d = 0; d < l.dims.size(); ++d) {
    if (l.dims[d].empty() || cumulativeDirection(m_, id, d, globalType(x).dims[d]) == 0) continue;
    if (isIdentity(current(m_.op(id).operands[1]), *sharding::reducerOf(m_, m_.op(id).regions[0])))
      return static_cast<int64_t>(d);
  }
  return -1;
}

/// The running total of the own shard, combined with the totals of the shards before it.
llvm::Error Localiser::runningTotal(OpId id, ValueId x, int64_t dim, llvm::SmallVector<int64_t, 8> padding) {
  ValueId own = m_.op(id).results[0];
  Opcode reducer = *sharding::reducerOf(m_, m_.op(id).regions[0]);
  Axes axes = layout(x).dims[dim];
  const hlo::Dims dims = m_.typeOf(own).dims;
  int64_t c = dims[dim];
  bool forward = padding[2 * dim] > 0;
  llvm::SmallVector<int64_t, 6> window(m_.getInts(id, AttrKey::window_dimensions));
  window[dim] = c;
  padding[2 * dim] = forward ? c - 1 : 0;
  padding[2 * dim + 1] = forward ? 0 : c - 1;
  m_.setInts(id, AttrKey::window_dimensions, window);
  m_.setInts(id, AttrKey::padding, padding);
  ValueId total = b_.sliceDim(own, dim, forward ? c - 1 : 0, forward ? c : 1);
  ValueId totals = b_.allGather(total, ctx_.mesh, axes, dim);
  noteWhy(m_.value(totals).def, "running-total");
  needs(totals, dim, sharding::product(axes));
  const hlo::Dims all = m_.typeOf(totals).dims;
  hlo::TypeId index = m_.tensorType(ElementType::kS32, all);
  ValueId before = b_.compare(forward ? hlo::Comparison::kLt : hlo::Comparison::kGt, b_.iota(index, dim),
                      b_.broadcastScalar(coordinate(axes), all));
  ValueId identity = *b_.identity(reducer, m_.tensorType(m_.typeOf(own).element, {}));
  ValueId carried = b_.reduce(b_.select(before, totals, b_.broadcastScalar(identity, all)), identity, {dim}, reducer);
  llvm::SmallVector<int64_t, 6> places;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    if (d != dim) places.push_back(d);
  }
  finish(id, 0, b_.binary(reducer, b_.broadcastInDim(carried, dims, places), own));
  return llvm::Error::success();
}

}  // namespace tpu::partition
