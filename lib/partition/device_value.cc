// Evaluates short chains of integer arithmetic.
#include "device_value.h"

#include <algorithm>

#include "tpu/hlo/analysis.h"

namespace tpu::partition {

using hlo::Opcode;

namespace {

constexpr int kMaxDepth = 32;

std::optional<int64_t> value(const hlo::Module& m, hlo::ValueId v, int64_t device, int depth) {
  if (auto c = hlo::constantInt(m, v)) return c;
  hlo::OpId def = m.value(v).def;
  if (!def || depth > kMaxDepth) return std::nullopt;
  const hlo::Op& op = m.op(def);
  auto in = [&](size_t i) { return value(m, op.operands[i], device, depth + 1); };
  switch (op.opcode) {
    case Opcode::partition_id:
      return device;
    case Opcode::convert:
    case Opcode::reshape:
      return in(0);
    case Opcode::select: {
      auto which = in(0);
      return which ? in(*which ? 1 : 2) : std::nullopt;
    }
    default:
      break;
  }
  if (op.operands.size() != 2) return std::nullopt;
  auto a = in(0), b = in(1);
  if (!a || !b) return std::nullopt;
  switch (op.opcode) {
    case Opcode::add:
      return *a + *b;
    case Opcode::subtract:
      return *a - *b;
    case Opcode::multiply:
      return *a * *b;
    case Opcode::divide:
      return *b == 0 ? std::nullopt : std::optional<int64_t>(*a / *b);
    case Opcode::remainder:
      return *b == 0 ? std::nullopt : std::optional<int64_t>(*a % *b);
    case Opcode::minimum:
      return std::min(*a, *b);
    case Opcode::maximum:
      return std::max(*a, *b);
    case Opcode::compare:
      return compares(m, def, *a, *b);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<int64_t> valueOn(const hlo::Module& m, hlo::ValueId v, int64_t device) { return value(m, v, device, 0); }

bool compares(const hlo::Module& m, hlo::OpId op, int64_t a, int64_t b) {
  switch (static_cast<hlo::Comparison>(m.getInt(op, hlo::AttrKey::comparison_direction))) {
    case hlo::Comparison::kEq:
      return a == b;
    case hlo::Comparison::kNe:
      return a != b;
    case hlo::Comparison::kLt:
      return a < b;
    case hlo::Comparison::kLe:
      return a <= b;
    case hlo::Comparison::kGt:
      return a > b;
    case hlo::Comparison::kGe:
      return a >= b;
  }
  return false;
}

}  // namespace tpu::partition
