// Scalar ALU instructions by value.
#pragma once
#include <cstdint>

#include "tpu/isa/isa.h"

namespace tpu::emulate::llo_run {

/// sd = a op b. False: not one of these.
inline bool runScalar(isa::Opcode op, uint32_t& d, uint32_t a, uint32_t b) {
  using isa::Opcode;
  const auto s = [](uint32_t x) { return static_cast<int32_t>(x); };
  switch (op) {
    case Opcode::sadd: d = a + b; return true;
    case Opcode::ssub: d = a - b; return true;
    case Opcode::smul: d = a * b; return true;
    case Opcode::sdivu: d = b ? a / b : ~0u; return true;
    case Opcode::sremu: d = b ? a % b : a; return true;
    case Opcode::sdivs: d = !b ? ~0u : b == ~0u ? 0 - a : static_cast<uint32_t>(s(a) / s(b)); return true;
    case Opcode::srems: d = !b ? a : b == ~0u ? 0 : static_cast<uint32_t>(s(a) % s(b)); return true;
    case Opcode::sand: d = a & b; return true;
    case Opcode::sor: d = a | b; return true;
    case Opcode::sxor: d = a ^ b; return true;
    case Opcode::sshl: d = b >= 32 ? 0 : a << b; return true;
    case Opcode::sshr: d = b >= 32 ? 0 : a >> b; return true;
    case Opcode::sshra: d = static_cast<uint32_t>(s(a) >> (b >= 32 ? 31 : b)); return true;
    case Opcode::smin: d = s(a) < s(b) ? a : b; return true;
    case Opcode::smax: d = s(a) > s(b) ? a : b; return true;
    default: return false;
  }
}

/// pd = a rel b. False: not one of these.
inline bool runScalarCompare(isa::Opcode op, bool& d, uint32_t a, uint32_t b) {
  using isa::Opcode;
  const auto s = [](uint32_t x) { return static_cast<int32_t>(x); };
  switch (op) {
    case Opcode::scmp_eq: d = a == b; return true;
    case Opcode::scmp_ne: d = a != b; return true;
    case Opcode::scmp_lt: d = s(a) < s(b); return true;
    case Opcode::scmp_le: d = s(a) <= s(b); return true;
    case Opcode::scmp_gt: d = s(a) > s(b); return true;
    case Opcode::scmp_ge: d = s(a) >= s(b); return true;
    case Opcode::scmp_ltu: d = a < b; return true;
    case Opcode::scmp_leu: d = a <= b; return true;
    default: return false;
  }
}

}  // namespace tpu::emulate::llo_run
