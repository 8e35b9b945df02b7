// Use lists, walks, and small questions about constants, loops and reducers.
#include "tpu/hlo/analysis.h"

#include "tpu/hlo/literal.h"

namespace tpu::hlo {

void walk(const Module& module, RegionId region, llvm::function_ref<void(OpId)> visit) {
  for (size_t i = 0; i < module.region(region).ops.size(); ++i) {
    const OpId op = module.region(region).ops[i];
    visit(op);
    for (size_t k = 0; k < module.op(op).regions.size(); ++k) walk(module, module.op(op).regions[k], visit);
  }
}

void walk(const Module& module, llvm::function_ref<void(OpId)> visit) {
  for (const Func& func : module.funcs) walk(module, func.body, visit);
}

Uses::Uses(const Module& module) : starts_(module.numValues() + 1, 0) {
  walk(module, [&](OpId op) {
    for (ValueId v : module.op(op).operands) ++starts_[v.v + 1];
  });
  for (size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
  uses_.resize(starts_.back());
  std::vector<uint32_t> next(starts_.begin(), starts_.end());
  walk(module, [&](OpId op) {
    const auto& operands = module.op(op).operands;
    for (uint32_t i = 0; i < operands.size(); ++i) uses_[next[operands[i].v]++] = {op, i};
  });
}

namespace {

std::optional<int64_t> constantInt(const Module& m, ValueId value, int depth) {
  OpId def = m.value(value).def;
  if (!def || depth == 0) return std::nullopt;
  const Type& type = m.typeOf(value);
  bool whole =
      type.kind == TypeKind::kTensor && (isInteger(type.element) || type.element == ElementType::kPred);
  if (!whole) return std::nullopt;
  const Op& op = m.op(def);
  auto operand = [&](size_t i) { return constantInt(m, op.operands[i], depth - 1); };
  // The result wraps to its type.
  auto wrapped = [&](int64_t v) {
    uint8_t bytes[8];
    storeInt(type.element, v, bytes);
    return loadInt(type.element, bytes);
  };
  switch (op.opcode) {
    case Opcode::constant: {
      const Attr* attr = m.findAttr(def, AttrKey::value);
      if (!attr) return std::nullopt;
      const Literal& literal = m.literal(attr->literal);
      size_t size = static_cast<size_t>(hostBytes(type.element));
      if (literal.bytes.size() != size) return std::nullopt;
      return loadInt(type.element, literal.bytes.data());
    }
    case Opcode::convert: {
      auto v = operand(0);
      return v ? std::optional(wrapped(*v)) : std::nullopt;
    }
    case Opcode::reshape:
    case Opcode::broadcast_in_dim:
    case Opcode::optimization_barrier:
      return operand(op.opcode == Opcode::optimization_barrier ? m.value(value).index : 0);
    default:
      break;
  }
  if (op.operands.size() != 2 || !hasTrait(op.opcode, kElementwise)) return std::nullopt;
  auto a = operand(0), b = operand(1);
  if (!a || !b) return std::nullopt;
  uint64_t ua = static_cast<uint64_t>(*a), ub = static_cast<uint64_t>(*b);
  bool no_sign = type.element == ElementType::kU64;
  switch (op.opcode) {
    case Opcode::add:
      return wrapped(static_cast<int64_t>(ua + ub));
    case Opcode::subtract:
      return wrapped(static_cast<int64_t>(ua - ub));
    case Opcode::multiply:
      return wrapped(static_cast<int64_t>(ua * ub));
    case Opcode::minimum:
      return (no_sign ? ua < ub : *a < *b) ? a : b;
    case Opcode::maximum:
      return (no_sign ? ua > ub : *a > *b) ? a : b;
    case Opcode::divide:
      if (*b == 0 || *b == -1) return std::nullopt;
      return no_sign ? static_cast<int64_t>(ua / ub) : *a / *b;
    case Opcode::remainder:
      if (*b == 0 || *b == -1) return std::nullopt;
      return no_sign ? static_cast<int64_t>(ua % ub) : *a % *b;
    default:
      return std::nullopt;
  }
}

ValueId yielded(const Module& m, RegionId region, size_t i) {
  const Region& r = m.region(region);
  if (r.ops.empty()) return ValueId();
  const Op& last = m.op(r.ops.back());
  return last.opcode == Opcode::return_ && i < last.operands.size() ? last.operands[i] : ValueId();
}

// The constant a value has in every iteration: a constant, or an argument that the body hands on unchanged.
std::optional<int64_t> invariantInt(const Module& m, const Op& loop, ValueId value) {
  if (auto v = constantInt(m, value)) return v;
  const Value& row = m.value(value);
  if (row.region != loop.regions[0] && row.region != loop.regions[1]) return std::nullopt;
  ValueId next = yielded(m, loop.regions[1], row.index);
  if (next != m.region(loop.regions[1]).args[row.index]) return std::nullopt;
  return constantInt(m, loop.operands[row.index]);
}

Comparison flipped(Comparison c) {
  switch (c) {
    case Comparison::kLt:
      return Comparison::kGt;
    case Comparison::kLe:
      return Comparison::kGe;
    case Comparison::kGt:
      return Comparison::kLt;
    case Comparison::kGe:
      return Comparison::kLe;
    default:
      return c;
  }
}

std::optional<int64_t> count(int64_t init, int64_t limit, int64_t step, Comparison direction) {
  __int128 distance = static_cast<__int128>(limit) - init;
  if (step < 0) {  // count upwards
    distance = -distance;
    if (direction != Comparison::kNe) direction = flipped(direction);
  }
  __int128 stride = step < 0 ? -static_cast<__int128>(step) : step;
  __int128 trips = 0;
  switch (direction) {
    case Comparison::kLt:
      trips = distance <= 0 ? 0 : (distance + stride - 1) / stride;
      break;
    case Comparison::kLe:
      trips = distance < 0 ? 0 : distance / stride + 1;
      break;
    case Comparison::kNe:
      if (distance < 0 || distance % stride) return std::nullopt;
      trips = distance / stride;
      break;
    default:
      return std::nullopt;
  }
  if (trips > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(trips);
}

// The constant added to `arg` by the body for its own position; none where it is anything else.
std::optional<int64_t> stepOf(const Module& m, const Op& loop, uint32_t index) {
  ValueId next = yielded(m, loop.regions[1], index);
  if (!next || !m.value(next).def) return std::nullopt;
  const Op& advance = m.op(m.value(next).def);
  ValueId arg = m.region(loop.regions[1]).args[index];
  bool adds = advance.opcode == Opcode::add, subtracts = advance.opcode == Opcode::subtract;
  if (!adds && !subtracts) return std::nullopt;
  ValueId other;
  if (advance.operands[0] == arg)
    other = advance.operands[1];
  else if (adds && advance.operands[1] == arg)
    other = advance.operands[0];
  else
    return std::nullopt;
  auto step = invariantInt(m, loop, other);
  if (!step || *step == 0 || *step == INT64_MIN) return std::nullopt;
  return subtracts ? -*step : *step;
}

}  // namespace

std::optional<int64_t> constantInt(const Module& module, ValueId value) {
  return constantInt(module, value, 16);
}

std::optional<int64_t> tripCount(const Module& m, OpId while_op) {
  const Op& loop = m.op(while_op);
  if (loop.opcode != Opcode::while_ || loop.regions.size() != 2) return std::nullopt;
  ValueId cond = yielded(m, loop.regions[0], 0);
  if (!cond || !m.value(cond).def) return std::nullopt;
  OpId compare = m.value(cond).def;
  if (m.op(compare).opcode != Opcode::compare) return std::nullopt;
  Comparison direction = static_cast<Comparison>(m.getInt(compare, AttrKey::comparison_direction));
  ValueId counter = m.op(compare).operands[0], bound = m.op(compare).operands[1];
  for (int side = 0; side < 2; ++side) {
    const Value& row = m.value(counter);
    if (row.region == loop.regions[0]) {
      auto limit = invariantInt(m, loop, bound);
      auto step = stepOf(m, loop, row.index);
      auto init = constantInt(m, loop.operands[row.index]);
      if (limit && step && init) return count(*init, *limit, *step, direction);
    }
    std::swap(counter, bound);
    direction = flipped(direction);
  }
  return std::nullopt;
}

std::optional<Opcode> combinerOf(const Module& m, RegionId region) {
  const Region& r = m.region(region);
  if (r.args.size() != 2 || r.ops.size() != 2) return std::nullopt;
  const Op& fold = m.op(r.ops[0]);
  const Op& last = m.op(r.ops[1]);
  bool returns = last.opcode == Opcode::return_ && last.operands.size() == 1 && fold.results.size() == 1 &&
                 last.operands[0] == fold.results[0];
  if (!returns || fold.operands.size() != 2 || !hasTrait(fold.opcode, kElementwise)) return std::nullopt;
  bool straight = fold.operands[0] == r.args[0] && fold.operands[1] == r.args[1];
  bool swapped = fold.operands[0] == r.args[1] && fold.operands[1] == r.args[0];
  if (!straight && !(swapped && hasTrait(fold.opcode, kCommutative))) return std::nullopt;
  return fold.opcode;
}

}  // namespace tpu::hlo
