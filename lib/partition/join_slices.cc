// Rolls and periodic borders: a concatenation along a sharded dimension of pieces cut from sharded values. Each piece by
// itself is a small value on few devices; as shifted copies of what they are cut from, laid over each other, the pieces are
// the size of the result and stay sharded, and only what crosses a border is sent.
#include "context.h"
#include "flow.h"
#include "llvm/ADT/STLExtras.h"
#include "tpu/hlo/builder.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;
using sharding::Axes;

namespace {

/// Elements [begin, begin + length) of `source` stand at `place` of the result.
struct Piece {
  ValueId source;
  int64_t begin = 0, length = 0, place = 0;
};

class SliceJoiner {
 public:
  explicit SliceJoiner(hlo::Module& m) : m_(m) {}

  void run() {
    region(m_.func(m_.entry).body);
    if (any_) m_.replaceUses(map_);
  }

 private:
  void region(hlo::RegionId r) {
    std::vector<OpId> after;
    bool changed = false;
    const std::vector<OpId> before = m_.region(r).ops;
    for (OpId id : before) {
      if (hasPartitionedRegions(m_.op(id).opcode)) {
        for (size_t k = 0; k < m_.op(id).regions.size(); ++k) region(m_.op(id).regions[k]);
      }
      if (m_.op(id).opcode == Opcode::concatenate && join(id, r, after))
        changed = true;
      else
        after.push_back(id);
    }
    if (changed) m_.region(r).ops = std::move(after);
  }

  Axes axesOf(ValueId v, int64_t dim) const { return layoutOf(m_, m_.value(v).sharding, m_.typeOf(v).rank()).dims[dim]; }

  /// The operand as a piece of a value that is sharded by `axes`; none where it is small or sharded otherwise.
  std::optional<Piece> pieceOf(ValueId v, int64_t dim, const Axes& axes) const {
    Piece p{v, 0, m_.typeOf(v).dims[dim], 0};
    OpId def = m_.value(v).def;
    if (def && m_.op(def).opcode == Opcode::slice) {
      p.source = m_.op(def).operands[0];
      const hlo::Dims& from = m_.typeOf(p.source).dims;
      auto starts = m_.getInts(def, AttrKey::start_indices), strides = m_.getInts(def, AttrKey::strides);
      for (int64_t d = 0; d < static_cast<int64_t>(from.size()); ++d) {
        if (d == dim ? !strides.empty() && strides[d] != 1 : from[d] != m_.typeOf(v).dims[d]) return std::nullopt;
      }
      p.begin = starts[dim];
    }
    if (axesOf(p.source, dim) != axes || m_.typeOf(p.source).dims[dim] < sharding::product(axes)) return std::nullopt;
    return p;
  }

  bool join(OpId id, hlo::RegionId r, std::vector<OpId>& list) {
    const ValueId result = m_.op(id).results[0];
    const int64_t dim = m_.getInt(id, AttrKey::dimension), size = m_.typeOf(result).dims[dim];
    const Axes axes = axesOf(result, dim);
    if (axes.empty() || m_.op(id).operands.size() < 2) return false;
    llvm::SmallVector<Piece, 3> pieces;
    int64_t place = 0;
    bool cut = false;
    for (ValueId v : m_.op(id).operands) {
      auto p = pieceOf(v, dim, axes);
      if (!p) return false;
      p->place = place;
      place += p->length;
      // Nothing but the piece falls into the result when its source is shifted there: it ends where its source or the
      // result ends.
      const bool front = p->begin == 0 || p->place == 0;
      const bool back = p->begin + p->length == m_.typeOf(p->source).dims[dim] || place == size;
      if (!front || !back) return false;
      cut |= p->source != v;
      pieces.push_back(*p);
    }
    if (!cut) return false;
    hlo::Builder b(m_, r, m_.op(id).loc);
    b.into(r, &list);
    const hlo::ShardingId sharding = m_.value(result).sharding;
    auto placed = [&](ValueId v) {
      m_.value(v).sharding = sharding;
      return v;
    };
    const hlo::Dims dims = m_.typeOf(result).dims;
    ValueId zero = b.scalarInt(m_.typeOf(result).element, 0), joined;
    hlo::TypeId numbers = m_.tensorType(ElementType::kS32, dims);
    ValueId at = placed(b.iota(numbers, dim));
    for (const Piece& p : pieces) {
      llvm::SmallVector<int64_t, 6> low(dims.size(), 0), high(dims.size(), 0), none(dims.size(), 0);
      low[dim] = p.place - p.begin;
      high[dim] = size - low[dim] - m_.typeOf(p.source).dims[dim];
      ValueId shifted = low[dim] == 0 && high[dim] == 0 ? p.source : placed(b.pad(p.source, zero, low, high, none));
      if (joined) {
        ValueId here = placed(b.compare(hlo::Comparison::kGe, at, placed(b.splatInt(numbers, p.place))));
        shifted = placed(b.select(here, shifted, joined));
      }
      joined = shifted;
    }
    if (map_.size() <= result.v) map_.resize(m_.numValues());
    map_[result.v] = joined;
    return any_ = true;
  }

  hlo::Module& m_;
  std::vector<ValueId> map_;
  bool any_ = false;
};

}  // namespace

void joinSlices(hlo::Module& m) { SliceJoiner(m).run(); }

}  // namespace tpu::partition
