// Sorting along a sharded dimension without a full copy anywhere: every device sorts its shard, then pairs of
// devices merge theirs in the rounds of a sorting network, and at no time does a device hold more than two shards.
// Ties are broken by the position in the whole array where it matters (sort_order.h), as in a stable sort.
#include "localise.h"
#include "sort_order.h"
#include "tpu/hlo/analysis.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;
using sharding::Axes;

namespace {

/// A sort of `operands` by the comparator `user`. Where the last one is the position in the whole array of `size` elements,
/// those beyond the array come last and ties are broken by position; otherwise floats that tie are ordered by their bits.
class MergeSort {
 public:
  MergeSort(hlo::Builder& b, RegionId user, int64_t dim, int64_t size, bool padded, bool positions)
      : b_(b), user_(user), dim_(dim), size_(size), padded_(padded), positions_(positions) {}

  llvm::SmallVector<ValueId, 4> sort(llvm::ArrayRef<ValueId> operands) {
    hlo::Module& m = b_.m;
    llvm::SmallVector<hlo::TypeId, 4> types;
    for (ValueId v : operands) types.push_back(m.value(v).type);
    OpId op = b_.create(Opcode::sort, operands, types);
    m.setInt(op, AttrKey::dimension, dim_);
    m.setBool(op, AttrKey::is_stable, !positions_);
    RegionId body = b_.addRegion(op);
    llvm::SmallVector<ValueId, 8> args;
    for (ValueId v : operands) {
      hlo::TypeId scalar = m.tensorType(m.typeOf(v).element, {});
      for (int i = 0; i < 2; ++i) args.push_back(m.addArg(body, scalar, b_.loc));
    }
    std::vector<OpId> list;
    hlo::Builder inner(m, body, b_.loc);
    inner.into(body, &list);
    ValueId a = args[args.size() - 2], b = args.back();
    ValueId out = call(body, list, args, false);
    const ElementType last = m.typeOf(a).element;
    if (positions_ || isFloat(last)) {
      ValueId more = call(body, list, args, true), before = inner.compare(hlo::Comparison::kLt, a, b);
      if (!positions_)
        m.setInt(m.value(before).def, AttrKey::compare_type, static_cast<int64_t>(hlo::CompareType::kTotalOrder));
      out = inner.binary(Opcode::or_, out, inner.binary(Opcode::and_, inner.unary(Opcode::not_, more), before));
    }
    if (padded_) {
      ValueId end = inner.scalarInt(last, size_);
      ValueId a_in = inner.compare(hlo::Comparison::kLt, a, end), b_in = inner.compare(hlo::Comparison::kLt, b, end);
      out = inner.select(inner.binary(Opcode::and_, a_in, b_in), out, inner.compare(hlo::Comparison::kLt, a, b));
    }
    inner.yield({out});
    m.region(body).ops = std::move(list);
    return llvm::SmallVector<ValueId, 4>(m.op(op).results.begin(), m.op(op).results.end());
  }

 private:
  /// The user's comparator on the pairs, or on the swapped pairs.
  ValueId call(RegionId body, std::vector<OpId>& list, llvm::ArrayRef<ValueId> args, bool swapped) {
    std::vector<ValueId> map;
    const std::vector<ValueId> from = b_.m.region(user_).args;
    for (size_t i = 0; i < from.size(); ++i) {
      if (map.size() <= from[i].v) map.resize(from[i].v + 1);
      map[from[i].v] = args[swapped ? i ^ 1 : i];
    }
    return hlo::copyBody(b_.m, user_, body, map, &list)[0];
  }

  hlo::Builder& b_;
  RegionId user_;
  int64_t dim_, size_;
  bool padded_, positions_;
};

}  // namespace

llvm::Error Localiser::sortOp(OpId id) {
  ValueId x = m_.op(id).operands[0];
  int64_t rank = globalType(x).rank(), dim = m_.getInt(id, AttrKey::dimension, -1);
  if (dim < 0) dim += rank;
  Axes axes = layout(x).dims[dim];
  if (axes.empty()) return keep(id), llvm::Error::success();
  int64_t n = globalType(x).dims[dim], k = sharding::product(axes);
  llvm::SmallVector<ValueId, 4> values;
  for (ValueId v : m_.op(id).operands) values.push_back(current(v));
  const hlo::Dims dims = m_.typeOf(values[0]).dims;
  int64_t c = dims[dim];
  const auto position = positionType(m_, id, n, k);
  if (position) {
    ValueId place = b_.iota(m_.tensorType(ElementType::kS32, dims), dim);
    values.push_back(b_.convert(b_.add(place, b_.broadcastScalar(affine(axes, c, 0), dims)), *position));
  }
  MergeSort sorter(b_, m_.op(id).regions[0], dim, n, c * k != n, position.has_value());
  values = sorter.sort(values);
  for (const auto& round : sortRounds(k)) {
    std::vector<int64_t> pairs, roles(k, 0);  // 1: keeps the smaller half, 2: the larger one
    for (auto [low, high] : round) {
      pairs.insert(pairs.end(), {low, high, high, low});
      roles[low] = 1;
      roles[high] = 2;
    }
    llvm::SmallVector<ValueId, 4> both;
    for (ValueId v : values) {
      ValueId other = permute(v, axes, pairs);
      noteWhy(m_.value(other).def, "sort");
      both.push_back(b_.concatenate({v, other}, dim));
      needs(both.back(), dim, 2 * m_.typeOf(v).dims[dim]);
    }
    both = sorter.sort(both);
    ValueId role = entryAt(roles, axes);
    ValueId low = b_.compare(hlo::Comparison::kEq, role, s32(1)), idle = b_.compare(hlo::Comparison::kEq, role, s32(0));
    for (size_t i = 0; i < values.size(); ++i) {
      ValueId half = b_.select(low, b_.sliceDim(both[i], dim, 0, c), b_.sliceDim(both[i], dim, c, 2 * c));
      values[i] = b_.select(idle, values[i], half);
    }
  }
  for (size_t i = 0; i < m_.op(id).results.size(); ++i) finish(id, i, values[i]);
  return llvm::Error::success();
}

}  // namespace tpu::partition
