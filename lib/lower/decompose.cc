#include "decompose.h"

#include <algorithm>

#include "tpu/hlo/analysis.h"

namespace tpu::lower {
namespace {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;

class Decomposer {
 public:
  explicit Decomposer(hlo::Module& m) : m_(m) {}

  void region(hlo::RegionId r) {
    std::vector<OpId> ops;
    for (OpId id : std::vector<OpId>(m_.region(r).ops)) {
      for (size_t k = 0; k < m_.op(id).regions.size(); ++k) region(m_.op(id).regions[k]);
      hlo::Builder b(m_, r, m_.op(id).loc);
      b.into(r, &ops);
      const ValueId v = rewrite(b, id);
      if (!v.valid()) {
        ops.push_back(id);
        continue;
      }
      map_.resize(m_.numValues());
      map_[m_.op(id).results[0].v] = v;
      m_.op(id).parent = hlo::RegionId();
    }
    m_.region(r).ops = std::move(ops);
  }
  void finish() {
    map_.resize(m_.numValues());
    m_.replaceUses(map_);
  }

 private:
  ValueId rewrite(hlo::Builder& b, OpId id) {
    switch (m_.op(id).opcode) {
      case Opcode::broadcast_in_dim: return ascendingBroadcast(b, id);
      case Opcode::bitcast_convert: return bitcast(b, id);
      case Opcode::convolution: return productOfConvolution(b, m_, id);
      default: return ValueId();
    }
  }

  ValueId ascendingBroadcast(hlo::Builder& b, OpId id) {
    const llvm::SmallVector<int64_t, 6> dims(m_.getInts(id, AttrKey::broadcast_dimensions));
    if (std::is_sorted(dims.begin(), dims.end())) return ValueId();
    llvm::SmallVector<int64_t, 6> order(dims.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return dims[x] < dims[y]; });
    llvm::SmallVector<int64_t, 6> sorted;
    for (int64_t i : order) sorted.push_back(dims[i]);
    const hlo::Dims to = m_.typeOf(m_.op(id).results[0]).dims;
    return b.broadcastInDim(b.transpose(m_.op(id).operands[0], order), to, sorted);
  }

  hlo::TypeId as(ValueId v, ElementType t) { return m_.tensorType(t, hlo::Dims(m_.typeOf(v).dims)); }
  ValueId reinterpret(hlo::Builder& b, ValueId v, ElementType t) {
    if (m_.typeOf(v).element == t) return v;
    return b.result(b.create(Opcode::bitcast_convert, {v}, {as(v, t)}));
  }
  ValueId constant(hlo::Builder& b, ValueId like, int64_t value) { return b.splatInt(m_.value(like).type, value); }

  // The bits of each element, zero-extended.
  ValueId toBits(hlo::Builder& b, ValueId v) {
    const ElementType t = m_.typeOf(v).element;
    if (elementBits(t) == 32) return reinterpret(b, v, ElementType::kU32);
    if (isFloat(t)) {  // bf16: the upper half of an f32
      const ValueId u = reinterpret(b, b.convert(v, ElementType::kF32), ElementType::kU32);
      return b.binary(Opcode::shift_right_logical, u, constant(b, u, 16));
    }
    const ValueId u = b.convert(v, ElementType::kU32);
    return b.binary(Opcode::and_, u, constant(b, u, (int64_t{1} << elementBits(t)) - 1));
  }
  ValueId fromBits(hlo::Builder& b, ValueId u, ElementType t) {
    if (elementBits(t) == 32) return reinterpret(b, u, t);
    if (!isFloat(t)) return b.convert(u, t);
    const ValueId f = reinterpret(b, b.binary(Opcode::shift_left, u, constant(b, u, 16)), ElementType::kF32);
    return b.convert(f, t);
  }
  // How far element i of the last dimension stands from the low end of its word.
  ValueId shifts(hlo::Builder& b, llvm::ArrayRef<int64_t> dims, int bits) {
    const ValueId i = b.iota(m_.tensorType(ElementType::kU32, dims), static_cast<int64_t>(dims.size()) - 1);
    return b.multiply(i, constant(b, i, bits));
  }

  ValueId bitcast(hlo::Builder& b, OpId id) {
    const ValueId x = m_.op(id).operands[0];
    const hlo::Type in = m_.typeOf(x), out = m_.typeOf(m_.op(id).results[0]);
    for (ElementType t : {in.element, out.element})
      if (t != ElementType::kF32 && t != ElementType::kS32 && t != ElementType::kU32 && t != ElementType::kBF16 &&
          t != ElementType::kS8 && t != ElementType::kU8)
        return ValueId();
    const int from = elementBits(in.element), to = elementBits(out.element);
    if (in.element == out.element) return x;
    if (from == to) return from == 32 ? ValueId() : fromBits(b, toBits(b, x), out.element);
    const ValueId u = toBits(b, x);
    if (from > to) {
      llvm::SmallVector<int64_t, 6> same;
      for (int64_t d = 0; d < in.rank(); ++d) same.push_back(d);
      const ValueId words = b.broadcastInDim(u, out.dims, same);
      return fromBits(b, b.binary(Opcode::shift_right_logical, words, shifts(b, out.dims, to)), out.element);
    }
    const ValueId placed = b.binary(Opcode::shift_left, u, shifts(b, in.dims, from));
    const ValueId zero = b.scalarInt(ElementType::kU32, 0);
    return fromBits(b, b.reduce(placed, zero, {in.rank() - 1}, Opcode::or_), out.element);
  }

  hlo::Module& m_;
  std::vector<ValueId> map_;
};

}  // namespace

void decompose(hlo::Module& m) {
  hlo::flattenTuples(m);
  Decomposer d(m);
  d.region(m.func(m.entry).body);
  d.finish();
}

}  // namespace tpu::lower
