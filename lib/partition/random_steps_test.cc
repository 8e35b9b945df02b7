// Steps of random programs: movement, elementwise types, requests for shardings.
#include "random_program_test_util.h"
#include "tpu/sharding/axes.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;
using Ints = Generator::Ints;

void Generator::transposeStep(ValueId x, const Ints& d) {
  Ints perm;
  for (size_t i = 0; i < d.size(); ++i)
    perm.insert(perm.begin() + r_.below(static_cast<int64_t>(perm.size()) + 1), static_cast<int64_t>(i));
  keep(b_.transpose(x, perm));
}

void Generator::reshapeStep(ValueId x, const Ints& d) {
  int64_t n = m_.typeOf(x).numElements();
  Ints out;
  while (n > 1 && out.size() < 4) {
    int64_t f = 1 + r_.below(n);
    while (n % f != 0) f = 1 + r_.below(n);
    if (f == 1 && r_.chance(70)) continue;
    out.push_back(f);
    n /= f;
  }
  if (n > 1) out.push_back(n);
  keep(b_.reshape(x, out));
}

void Generator::sliceStep(ValueId x, const Ints& d) {
  Ints start(d.size(), 0), limit = d, stride(d.size(), 1);
  for (size_t i = 0; i < d.size(); ++i) {
    if (d[i] < 2 || r_.chance(40)) continue;
    start[i] = r_.below(d[i] / 2 + 1);
    limit[i] = start[i] + 1 + r_.below(d[i] - start[i]);
    stride[i] = 1 + r_.below(2);
  }
  keep(b_.slice(x, start, limit, stride));
}

void Generator::padStep(ValueId x, const Ints& d) {
  Ints low(d.size(), 0), high(d.size(), 0), mid(d.size(), 0);
  for (size_t i = 0; i < d.size(); ++i) {
    if (r_.chance(40)) continue;
    low[i] = r_.below(4) - (d[i] > 2 ? 1 : 0);
    high[i] = r_.below(4) - (d[i] > 2 ? 1 : 0);
    if (r_.chance(20)) mid[i] = 1;
  }
  keep(b_.pad(x, scalar(r_.below(9)), low, high, mid));
}

void Generator::concatStep(ValueId x, const Ints& d) {
  if (d.empty()) return;
  int64_t dim = r_.below(static_cast<int64_t>(d.size()));
  Ints other = d;
  other[dim] = 1 + r_.below(6);
  keep(b_.concatenate({x, ofDims(other)}, dim));
}

void Generator::broadcastStep(ValueId x, const Ints& d) {
  Ints out, map;
  for (size_t i = 0; i <= d.size(); ++i) {
    if (r_.chance(35) && out.size() < 4) out.push_back(1 + r_.below(6));
    if (i == d.size()) break;
    map.push_back(static_cast<int64_t>(out.size()));
    out.push_back(d[i] == 1 && r_.chance(70) ? 1 + r_.below(8) : d[i]);
  }
  keep(b_.broadcastInDim(x, out, map));
}

void Generator::constraintStep(ValueId x, const Ints& d) {
  hlo::OpId op = b_.create(Opcode::sdy_sharding_constraint, {x}, {m_.value(x).type});
  m_.setSharding(op, AttrKey::sharding, randomSharding(d));
  keep(b_.result(op));
}

ValueId Generator::constrained(const Ints& d) {
  hlo::OpId op =
      b_.create(Opcode::sdy_sharding_constraint, {ofDims(d)}, {m_.tensorType(ElementType::kS32, d)});
  m_.setSharding(op, AttrKey::sharding, randomSharding(d));
  return b_.result(op);
}

ValueId Generator::runTimeIndex() {
  ValueId v = any();
  Ints all;
  for (int64_t i = 0; i < m_.typeOf(v).rank(); ++i) all.push_back(i);
  ValueId sum = all.empty() ? v : b_.reduce(v, scalar(0), all, Opcode::add);
  return b_.subtract(b_.remainder(sum, scalar(11)), scalar(2));
}

void Generator::dynamicSliceStep(ValueId x, const Ints& d) {
  Ints sizes;
  llvm::SmallVector<ValueId, 4> starts;
  for (int64_t n : d) {
    sizes.push_back(r_.chance(40) ? n : 1 + r_.below(n));
    starts.push_back(r_.chance(50) ? runTimeIndex() : scalar(r_.below(n + 2) - 1));
  }
  keep(b_.dynamicSlice(x, starts, sizes));
}

void Generator::dynamicUpdateStep(ValueId x, const Ints& d) {
  Ints sizes;
  llvm::SmallVector<ValueId, 4> starts;
  for (int64_t n : d) {
    sizes.push_back(r_.chance(40) ? n : 1 + r_.below(n));
    starts.push_back(r_.chance(50) ? runTimeIndex() : scalar(r_.below(n + 2) - 1));
  }
  keep(b_.dynamicUpdateSlice(x, ofDims(sizes), starts));
}

void Generator::predStep(ValueId x, const Ints& d) {
  ValueId p = b_.compare(r_.chance(50) ? hlo::Comparison::kGt : hlo::Comparison::kEq, x, ofDims(d));
  Ints which;
  for (size_t i = 0; i < d.size(); ++i) {
    if (r_.chance(50)) which.push_back(static_cast<int64_t>(i));
  }
  bool any = r_.chance(50);
  ValueId init = b_.scalarInt(ElementType::kPred, any ? 0 : 1);
  keep(b_.convert(b_.reduce(p, init, which, any ? Opcode::or_ : Opcode::and_), ElementType::kS32));
}

void Generator::convertStep(ValueId x, const Ints& d) {
  ElementType type = r_.chance(50) ? ElementType::kS8 : ElementType::kS64;
  ValueId v = b_.convert(small(x, 100), type);
  keep(b_.convert(b_.add(v, v), ElementType::kS32));
}

void Generator::clampStep(ValueId x, const Ints& d) { keep(b_.clamp(scalar(-3), x, scalar(40))); }

void Generator::groupStep(ValueId x, const Ints& d) {
  int64_t id = r_.below(1000000);
  // Sums carry no request of their own that could contradict.
  for (ValueId v : {b_.add(x, x), b_.add(ofDims(d), x)}) {
    keep(v);
    OpId op = b_.create(Opcode::sdy_sharding_group, {v}, {});
    m_.setInt(op, AttrKey::group_id, id);
  }
}

void Generator::barrierStep(ValueId x, const Ints& d) {
  if (r_.chance(50)) return keep(b_.result(b_.create(Opcode::optimization_barrier, {x}, {m_.value(x).type})));
  constexpr const char* kDirections[] = {"NONE", "FORWARD", "BACKWARD"};
  OpId op = b_.create(Opcode::sdy_propagation_barrier, {x}, {m_.value(x).type});
  m_.setString(op, AttrKey::allowed_direction, kDirections[r_.below(3)]);
  keep(b_.result(op));
}

void Generator::reshardStep(ValueId x, const Ints& d) {
  OpId op = b_.create(Opcode::sdy_reshard, {x}, {m_.value(x).type});
  m_.setSharding(op, AttrKey::sharding, randomSharding(d));
  keep(b_.result(op));
}

}  // namespace tpu::partition
