// A matrix unit by value: weights arrive in row groups, left-hand rows in lane panels, results leave in groups of 8 rows.
#include <bit>

#include "tpu/support/float_convert.h"
#include "tpu/support/fma_gemm.h"
#include "vector_ops.h"

namespace tpu::emulate::llo_run {
namespace {

using isa::Opcode;

enum class Type : uint8_t { kF32, kBf16, kS8, kU8, kE4m3, kE5m2 };

Type typeOf(Opcode op) {
  switch (op) {
#define TPU_TYPE(name, value)                                                                                  \
  case Opcode::vmatpush_##name: case Opcode::vmatpusht_##name: case Opcode::vmatmul_##name:                    \
  case Opcode::vmatmul_acc_##name: return Type::value;
    TPU_TYPE(f32, kF32) TPU_TYPE(bf16, kBf16) TPU_TYPE(s8, kS8) TPU_TYPE(u8, kU8) TPU_TYPE(f8e4m3fn, kE4m3) TPU_TYPE(f8e5m2, kE5m2)
#undef TPU_TYPE
    default: return Type::kF32;
  }
}
bool isTransposed(Opcode op) {
  switch (op) {
    case Opcode::vmatpusht_f32: case Opcode::vmatpusht_bf16: case Opcode::vmatpusht_s8: case Opcode::vmatpusht_u8:
    case Opcode::vmatpusht_f8e4m3fn: case Opcode::vmatpusht_f8e5m2: return true;
    default: return false;
  }
}
bool isInteger(Type t) { return t == Type::kS8 || t == Type::kU8; }

float floatAt(Type t, const Vector& a, int row, int lane) {
  const int per = t == Type::kF32 ? 1 : t == Type::kBf16 ? 2 : 4;
  const uint32_t word = a[row / per * kLanes + lane];
  switch (t) {
    case Type::kF32: return roundToBf16(std::bit_cast<float>(word));
    case Type::kBf16: return bf16ToF32(static_cast<uint16_t>(word >> (row % 2 * 16)));
    case Type::kE4m3: return narrowToF32(*narrowFloatFormat(ElementType::kF8E4M3FN), word >> (row % 4 * 8) & 0xff);
    default: return narrowToF32(*narrowFloatFormat(ElementType::kF8E5M2), word >> (row % 4 * 8) & 0xff);
  }
}
int32_t intAt(Type t, const Vector& a, int row, int lane) {
  const uint32_t byte = a[row / 4 * kLanes + lane] >> (row % 4 * 8) & 0xff;
  return t == Type::kU8 ? static_cast<int32_t>(byte) : static_cast<int8_t>(byte);
}

}  // namespace

MatrixUnit::MatrixUnit(int side, int accumulators) : side_(side), accumulators_(accumulators) {
  for (Weights* w : {&staging_[0], &staging_[1], &current_}) {
    w->f.assign(side * side, 0);
    w->i.assign(side * side, 0);
  }
  lhs_f_.assign(32 * side, 0);
  lhs_i_.assign(32 * side, 0);
  for (Vector& v : accumulators_) v.fill(0);
}

void MatrixUnit::push(Opcode op, const Vector& a, int staging, int group, int panel) {
  const Type t = typeOf(op);
  const int rows = isa::mxuRows(op), width = side_ < kLanes ? side_ : kLanes;
  const int first_lane = side_ < kLanes ? panel * side_ : 0, first = side_ < kLanes ? 0 : panel * kLanes;
  Weights& w = staging_[staging];
  for (int r = 0; r < rows; ++r)
    for (int l = 0; l < width; ++l) {
      const int major = group * rows + r, minor = first + l;
      if (major >= side_) continue;
      const int at = isTransposed(op) ? minor * side_ + major : major * side_ + minor;
      if (isInteger(t)) w.i[at] = intAt(t, a, r, first_lane + l);
      else w.f[at] = floatAt(t, a, r, first_lane + l);
    }
}

bool MatrixUnit::stream(Opcode op, const Vector& a, int panel) {
  const Type t = typeOf(op);
  const int rows = isa::mxuRows(op), width = side_ < kLanes ? side_ : kLanes;
  const int first_lane = side_ < kLanes ? panel * side_ : 0, first = side_ < kLanes ? 0 : panel * kLanes;
  for (int r = 0; r < rows; ++r)
    for (int l = 0; l < width; ++l) {
      if (isInteger(t)) lhs_i_[r * side_ + first + l] = intAt(t, a, r, first_lane + l);
      else lhs_f_[r * side_ + first + l] = floatAt(t, a, r, first_lane + l);
    }
  return side_ <= kLanes || panel == isa::mxuPanels(side_) - 1;
}

void MatrixUnit::results(Opcode op, int, std::vector<Vector>* out) const {
  const Type t = typeOf(op);
  const int rows = isa::mxuRows(op), panels = isa::mxuPanels(side_), width = side_ < kLanes ? side_ : kLanes;
  std::vector<uint32_t> product(rows * side_, 0);
  if (isInteger(t)) {
    for (int r = 0; r < rows; ++r)
      for (int k = 0; k < side_; ++k)
        for (int n = 0; n < side_; ++n)
          product[r * side_ + n] += static_cast<uint32_t>(lhs_i_[r * side_ + k] * current_.i[k * side_ + n]);
  } else {
    std::vector<float> acc(rows * side_, 0);
    fmaGemm(lhs_f_.data(), side_, current_.f.data(), side_, acc.data(), side_, rows, side_, side_);
    for (size_t i = 0; i < acc.size(); ++i) product[i] = std::bit_cast<uint32_t>(acc[i]);
  }
  for (int g = 0; g < rows / 8; ++g)
    for (int p = 0; p < panels; ++p) {
      Vector& v = out->emplace_back();
      v.fill(0);
      for (int r = 0; r < 8; ++r)
        for (int l = 0; l < width; ++l) v[r * kLanes + l] = product[(g * 8 + r) * side_ + p * kLanes + l];
    }
}

bool MatrixUnit::multiply(Opcode op, const Vector& a, int panel, std::vector<Vector>* out) {
  if (!stream(op, a, panel)) return false;
  results(op, panel, out);
  return true;
}

bool MatrixUnit::accumulate(Opcode op, const Vector& a, int panel, uint32_t address) {
  if (!stream(op, a, panel)) return true;
  std::vector<Vector> out;
  results(op, panel, &out);
  if (address + out.size() > accumulators_.size()) return false;
  for (size_t e = 0; e < out.size(); ++e)
    for (int i = 0; i < kWords; ++i) {
      uint32_t& acc = accumulators_[address + e][i];
      acc = isInteger(typeOf(op)) ? acc + out[e][i]
                                  : std::bit_cast<uint32_t>(std::bit_cast<float>(acc) + std::bit_cast<float>(out[e][i]));
    }
  return true;
}

bool MatrixUnit::popAccumulator(uint32_t address, Vector& d) {
  if (address >= accumulators_.size()) return false;
  d = accumulators_[address];
  accumulators_[address].fill(0);
  return true;
}

}  // namespace tpu::emulate::llo_run
