// Reducer regions.
#include "tpu/sharding/reducer.h"

namespace tpu::sharding {

using hlo::Opcode;

namespace {

/// The value that `v` stands for, looking through constraints.
hlo::ValueId source(const hlo::Module& m, hlo::ValueId v) {
  while (m.value(v).def) {
    const hlo::Op& op = m.op(m.value(v).def);
    if (op.opcode != Opcode::sdy_sharding_constraint && op.opcode != Opcode::sdy_reshard) break;
    v = op.operands[0];
  }
  return v;
}

}  // namespace

std::optional<Opcode> reducerOf(const hlo::Module& m, hlo::RegionId region) {
  if (!region) return std::nullopt;
  const hlo::Region& r = m.region(region);
  if (r.args.size() != 2 || r.ops.empty()) return std::nullopt;
  const hlo::Op& ret = m.op(r.ops.back());
  if (ret.operands.size() != 1) return std::nullopt;
  hlo::ValueId out = source(m, ret.operands[0]);
  if (!m.value(out).def) return std::nullopt;
  const hlo::Op& op = m.op(m.value(out).def);
  switch (op.opcode) {
    case Opcode::add:
    case Opcode::multiply:
    case Opcode::maximum:
    case Opcode::minimum:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
      break;
    default:
      return std::nullopt;
  }
  hlo::ValueId a = source(m, op.operands[0]), b = source(m, op.operands[1]);
  bool both = (a == r.args[0] && b == r.args[1]) || (a == r.args[1] && b == r.args[0]);
  return both ? std::optional<Opcode>(op.opcode) : std::nullopt;
}

bool isCombinable(const hlo::Module& m, hlo::RegionId region) {
  if (!region) return false;
  if (reducerOf(m, region)) return true;
  for (hlo::OpId id : m.region(region).ops) {
    switch (m.op(id).opcode) {
      case Opcode::compare:
      case Opcode::select:
      case Opcode::and_:
      case Opcode::or_:
      case Opcode::not_:
      case Opcode::maximum:
      case Opcode::minimum:
      case Opcode::return_:
      case Opcode::constant:
        break;
      default:
        return false;
    }
  }
  return true;
}

}  // namespace tpu::sharding
