// Random bits of a part: the same generator from a state whose counter stands where the part begins. The state that goes
// on is the one behind the whole.
#include "localise.h"
#include "tpu/sharding/rules.h"

namespace tpu::partition {

using hlo::OpId;
using hlo::ValueId;

namespace {

/// The state with its counter moved on by `by`, a u64 scalar.
ValueId advanced(hlo::Builder& b, ValueId state, ValueId by, bool two_words) {
  const int64_t words = b.type(state).dims[0];
  ValueId delta = b.reshape(by, {1}), key = b.sliceDim(state, 0, 0, 1), low = b.sliceDim(state, 0, 1, 2);
  ValueId moved = b.add(low, delta);
  if (words == 2) return b.concatenate({key, moved}, 0);
  ValueId high = b.sliceDim(state, 0, 2, 3);
  if (two_words) high = b.add(high, b.convert(b.compare(hlo::Comparison::kLt, moved, low), ElementType::kU64));
  return b.concatenate({key, moved, high}, 0);
}

}  // namespace

llvm::Error Localiser::randomBitsOp(OpId id) {
  const ValueId bits = m_.op(id).results[1];
  sharding::CounterRuns runs;
  const Layout l = layout(bits);
  const bool cut = llvm::any_of(l.dims, [](const sharding::Axes& a) { return sharding::product(a) > 1; });
  if (!cut || !sharding::counterRuns(m_, id, runs)) return keep(id), llvm::Error::success();
  const sharding::Axes axes = l.dims[runs.dim];
  const int64_t size = globalType(bits).dims[runs.dim], local = size / sharding::product(axes);
  const int64_t own = local / runs.granule * runs.counters_per_granule;
  const int64_t all = size / runs.granule * runs.counters_per_granule;
  const bool philox = sharding::usesPhilox(m_, id);
  ValueId state = current(m_.op(id).operands[0]);
  ValueId at = b_.multiply(b_.convert(coordinate(axes), ElementType::kU64), b_.scalarInt(ElementType::kU64, own));
  m_.op(id).operands[0] = advanced(b_, state, at, philox);
  keep(id);
  finish(id, 0, advanced(b_, state, b_.scalarInt(ElementType::kU64, all), philox));
  return llvm::Error::success();
}

}  // namespace tpu::partition
