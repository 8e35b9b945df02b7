// The EUP's functions on whole registers.
#include <bit>
#include <cmath>

#include "vector_ops.h"

namespace tpu::emulate::llo_run {
namespace {
float coarse(double x) {  // keeps about 20 bits
  float y = static_cast<float>(x);
  uint32_t b = std::bit_cast<uint32_t>(y);
  if ((b & 0x7f800000u) == 0x7f800000u) return y;
  uint32_t h = b * 2654435761u;
  int d = static_cast<int>(h >> 28) - 8;
  if ((b & 0x7fffffffu) < 0x800000u * 2) return y;
  return std::bit_cast<float>(b + d);
}
}  // namespace

bool runEup(isa::Opcode op, Vector& d, const Vector& a) {
  for (int i = 0; i < kWords; ++i) {
    const double x = std::bit_cast<float>(a[i]);
    double y;
    switch (op) {
      case isa::Opcode::vrcp: y = 1 / x; break;
      case isa::Opcode::vrsqrt: y = 1 / std::sqrt(x); break;
      case isa::Opcode::vpow2: y = std::exp2(x); break;
      case isa::Opcode::vlog2: y = std::log2(x); break;
      case isa::Opcode::vtanh: y = std::tanh(x); break;
      default: return false;
    }
    d[i] = std::bit_cast<uint32_t>(coarse(y));
  }
  return true;
}

}  // namespace tpu::emulate::llo_run
