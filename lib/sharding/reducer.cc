// Reducer regions and their identities.
#include "tpu/sharding/reducer.h"

#include <cstring>

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
    case Opcode::add: case Opcode::multiply: case Opcode::maximum: case Opcode::minimum:
    case Opcode::and_: case Opcode::or_: case Opcode::xor_: break;
    default: return std::nullopt;
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
      case Opcode::compare: case Opcode::select: case Opcode::and_: case Opcode::or_: case Opcode::not_:
      case Opcode::maximum: case Opcode::minimum: case Opcode::return_: case Opcode::constant: break;
      default: return false;
    }
  }
  return true;
}

namespace {

void put(std::vector<uint8_t>& out, uint64_t bits, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(bits >> (8 * i)));
}

struct FloatForm {
  int exponent, mantissa;
  bool infinity;
};
FloatForm formOf(ElementType t) {
  switch (t) {
    case ElementType::kF64: return {11, 52, true};
    case ElementType::kF32: return {8, 23, true};
    case ElementType::kBF16: return {8, 7, true};
    case ElementType::kF16: return {5, 10, true};
    case ElementType::kF8E5M2: return {5, 2, true};
    case ElementType::kF8E3M4: return {3, 4, true};
    case ElementType::kF8E4M3: return {4, 3, true};
    default: return {4, 3, false};
  }
}

/// Bits of plus infinity, or of the largest value where the type has none.
uint64_t topBits(ElementType t) {
  FloatForm f = formOf(t);
  uint64_t exp = ((uint64_t{1} << f.exponent) - 1) << f.mantissa;
  return f.infinity ? exp : exp | ((uint64_t{1} << f.mantissa) - 2);
}

uint64_t oneBits(ElementType t) {
  FloatForm f = formOf(t);
  return ((uint64_t{1} << (f.exponent - 1)) - 1) << f.mantissa;
}

}  // namespace

hlo::Literal zeroOf(hlo::Module& m, ElementType type) {
  hlo::Literal lit;
  lit.type = m.tensorType(type, {});
  lit.splat = true;
  lit.bytes.assign(hostBytes(type), 0);
  return lit;
}

hlo::Literal identityOf(hlo::Module& m, Opcode reducer, ElementType type) {
  hlo::Literal lit = zeroOf(m, type);
  int bits = elementBits(type), bytes = hostBytes(type);
  uint64_t value = 0;
  uint64_t all = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  bool is_float = isFloat(type), is_signed = isSigned(type);
  uint64_t sign = uint64_t{1} << (bits - 1);
  switch (reducer) {
    case Opcode::multiply:
      if (isComplex(type)) {
        value = oneBits(type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64);
      } else {
        value = is_float ? oneBits(type) : 1;
      }
      break;
    case Opcode::and_: value = all; break;
    case Opcode::minimum: value = is_float ? topBits(type) : is_signed ? all ^ sign : all; break;
    case Opcode::maximum: value = is_float ? topBits(type) | sign : is_signed ? sign : 0; break;
    default: break;
  }
  // Integers narrower than a byte stand sign-extended in one byte.
  if (is_signed && bits < 8 && (value & sign)) value |= 0xff & ~all;
  lit.bytes.clear();
  put(lit.bytes, value, std::min(bytes, 8));
  if (bytes > 8) put(lit.bytes, 0, bytes - 8);
  return lit;
}

}  // namespace tpu::sharding
