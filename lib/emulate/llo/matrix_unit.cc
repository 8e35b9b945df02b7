// A matrix unit by value: weights arrive in row groups, left-hand rows in lane panels, results leave in groups of 8 rows.
#include "matrix_unit.h"

#include <bit>

#include "../weights.h"

namespace tpu::emulate::llo_run {
namespace {
constexpr int kLanes = 128;
}

MatrixUnit::MatrixUnit(int side, int accumulators) : side_(side), accumulators_(accumulators) {
  for (auto& w : staging_) w.assign(side * side, 0);
  latch(0);
  lhs_.assign(kMaxOperandRows * side, 0);
  for (Vector& v : accumulators_) v = Vector{};
}

void MatrixUnit::push(isa::Opcode op, const Vector& a, bool transposed, int staging, int group, int panel) {
  alignas(64) float values[kMaxOperandRows * kLanes];
  const int rows = mxuOperand(op, a.w, values);
  const Lanes lanes = lanesOf(side_, panel);
  for (int r = 0; r < rows && group * rows + r < side_; ++r)
    for (int l = 0; l < lanes.count; ++l) {
      const int major = group * rows + r, minor = lanes.at + l;
      staging_[staging][transposed ? minor * side_ + major : major * side_ + minor] =
          values[r * kLanes + lanes.first + l];
    }
}

void MatrixUnit::multiply(isa::Opcode op, const Vector& a, int panel, std::deque<Vector>& out) {
  alignas(64) float values[kMaxOperandRows * kLanes];
  const int rows = mxuOperand(op, a.w, values), panels = isa::mxuPanels(side_);
  const Lanes lanes = lanesOf(side_, panel);
  for (int r = 0; r < rows; ++r)
    for (int l = 0; l < lanes.count; ++l)
      lhs_[r * side_ + lanes.at + l] = values[r * kLanes + lanes.first + l];
  if (side_ > kLanes && panel != panels - 1) return;
  // Integer products of up to 256 bytes are exact in f32.
  std::vector<float> product(rows * side_, 0);
  fmaGemm(lhs_.data(), side_, current_, product.data(), side_, rows, side_);
  const bool integer = mxuInteger(op);
  for (int g = 0; g < rows / 8; ++g)
    for (int p = 0; p < panels; ++p) {
      Vector& v = out.emplace_back();
      v = Vector{};
      for (int r = 0; r < 8; ++r)
        for (int l = 0; l < lanes.count; ++l) {
          const float x = product[(g * 8 + r) * side_ + p * kLanes + l];
          v.w[r * kLanes + l] = integer ? static_cast<uint32_t>(static_cast<int32_t>(x)) : std::bit_cast<uint32_t>(x);
        }
    }
}

bool MatrixUnit::accumulate(isa::Opcode op, const Vector& a, int panel, uint32_t address) {
  std::deque<Vector> out;
  multiply(op, a, panel, out);
  if (address + out.size() > accumulators_.size()) return false;
  for (size_t e = 0; e < out.size(); ++e)
    for (int i = 0; i < kVectorWords; ++i) {
      uint32_t& acc = accumulators_[address + e].w[i];
      const uint32_t x = out[e].w[i];
      acc = mxuInteger(op) ? acc + x : std::bit_cast<uint32_t>(std::bit_cast<float>(acc) + std::bit_cast<float>(x));
    }
  return true;
}

bool MatrixUnit::popAccumulator(uint32_t address, Vector& d) {
  if (address >= accumulators_.size()) return false;
  d = accumulators_[address];
  accumulators_[address] = Vector{};
  return true;
}

}  // namespace tpu::emulate::llo_run
