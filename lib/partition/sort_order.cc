// What a comparator makes of two elements.
#include "sort_order.h"

#include <cmath>

#include "tpu/hlo/literal.h"
#include "tpu/sharding/axes.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::ValueId;

namespace {

std::optional<double> floatConstant(const hlo::Module& m, ValueId v) {
  const hlo::OpId def = m.value(v).def;
  if (!def || m.op(def).opcode != Opcode::constant || !isFloat(m.typeOf(v).element)) return std::nullopt;
  return hlo::loadDouble(m.typeOf(v).element, hlo::literalElement(m, m.literal(m.findAttr(def, AttrKey::value)->literal), 0));
}

hlo::Comparison directionOf(const hlo::Module& m, hlo::OpId compare) {
  return static_cast<hlo::Comparison>(m.getInt(compare, AttrKey::comparison_direction));
}

/// `v` is `arg`, or `arg` with all zeros and all NaNs made one.
bool isValueOf(const hlo::Module& m, ValueId v, ValueId arg) {
  while (v != arg) {
    const hlo::OpId def = m.value(v).def;
    if (!def || m.op(def).opcode != Opcode::select) return false;
    const std::optional<double> one = floatConstant(m, m.op(def).operands[1]);
    const hlo::OpId test = m.value(m.op(def).operands[0]).def;
    if (!test || m.op(test).opcode != Opcode::compare || m.op(test).operands[0] != arg) return false;
    const ValueId other = m.op(test).operands[1];
    const bool zero = directionOf(m, test) == hlo::Comparison::kEq && one == 0 && floatConstant(m, other) == 0;
    const bool nan = directionOf(m, test) == hlo::Comparison::kNe && one && std::isnan(*one) && other == arg;
    if (!zero && !nan) return false;
    v = m.op(def).operands[2];
  }
  return true;
}

/// Elements that are neither before nor behind each other are the same number.
bool ordersByValue(const hlo::Module& m, hlo::RegionId comparator) {
  const hlo::Region& r = m.region(comparator);
  if (r.args.size() != 2 || r.ops.empty()) return false;
  const ValueId out = m.op(r.ops.back()).operands[0];
  const hlo::OpId compare = m.value(out).def;
  if (!compare || m.op(compare).opcode != Opcode::compare) return false;
  const hlo::Comparison direction = directionOf(m, compare);
  if (direction != hlo::Comparison::kLt && direction != hlo::Comparison::kGt) return false;
  if (isFloat(m.typeOf(r.args[0]).element) &&
      static_cast<hlo::CompareType>(m.getInt(compare, AttrKey::compare_type)) != hlo::CompareType::kTotalOrder)
    return false;  // NaNs would be equal to everything
  return isValueOf(m, m.op(compare).operands[0], r.args[0]) && isValueOf(m, m.op(compare).operands[1], r.args[1]);
}

}  // namespace

std::optional<ElementType> positionType(const hlo::Module& m, hlo::OpId sort, int64_t size, int64_t shards) {
  const hlo::Op& op = m.op(sort);
  const int64_t positions = sharding::shardSize(size, shards) * shards;
  if (op.operands.size() == 1 && positions == size && !isComplex(m.typeOf(op.operands[0]).element) && ordersByValue(m, op.regions[0])) return std::nullopt;
  return positions < 1 << 8 ? ElementType::kU8 : positions < 1 << 16 ? ElementType::kU16 : ElementType::kS32;
}

}  // namespace tpu::partition
