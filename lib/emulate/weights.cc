#include "weights.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "code.h"
#include "insns/flow.h"
#include "llvm/ADT/STLExtras.h"

namespace tpu::emulate {
namespace {

constexpr int kLanes = 128;

int64_t freshId() {
  static std::atomic<int64_t> last = 0;
  return ++last;
}

}  // namespace

bool isTransposed(isa::Opcode op) {
  using enum isa::Opcode;
  return op == vmatpusht_f32 || op == vmatpusht_bf16 || op == vmatpusht_s8 || op == vmatpusht_u8 ||
         op == vmatpusht_f8e4m3fn || op == vmatpusht_f8e5m2;
}

Lanes lanesOf(int side, int panel) {
  if (side < kLanes) return {panel * side, side, 0};
  return {0, kLanes, panel * kLanes};
}

int operandRows(isa::Opcode opcode, const uint32_t* value, const Lanes& lanes, int side, float* to) {
  if (side == kLanes) return mxuOperand(opcode, value, to);
  alignas(64) float rows[kMaxOperandRows * kLanes];
  const int n = mxuOperand(opcode, value, rows);
  for (int r = 0; r < n; ++r)
    std::memcpy(to + r * side + lanes.at, rows + r * kLanes + lanes.first, lanes.count * sizeof(float));
  return n;
}

PushedWeights::PushedWeights(isa::Opcode opcode, int side, std::shared_ptr<const PushedWeights> before)
    : opcode_(opcode),
      side_(side),
      id_(freshId()),
      slots_(static_cast<size_t>(side / isa::mxuRows(opcode) * isa::mxuPanels(side))),
      missing_(static_cast<int>(slots_.size())),
      values_(new Vector[slots_.size()]),
      before_(std::move(before)) {
  if (!before_ || (!before_->before_ && before_->base_.empty())) return;
  base_.resize(vectorsOf(static_cast<size_t>(side) * side));
  before_->write(floatsOf(base_));
  before_ = nullptr;
}

void PushedWeights::push(int group, int panel, const uint32_t* value) {
  const int panels = isa::mxuPanels(side_);
  const auto at = static_cast<size_t>(group * panels + (panels > 1 ? panel : 0));
  Slot& slot = slots_[at];
  if (!slot.pushed && --missing_ == 0) {
    before_ = nullptr;
    base_.clear();
  }
  slot = {true, static_cast<uint8_t>(panel)};
  copyRegister(values_[at].w, value);
}

void PushedWeights::write(float* to) const {
  const size_t size = static_cast<size_t>(side_) * side_;
  if (before_) {
    before_->write(to);
  } else if (!base_.empty()) {
    std::memcpy(to, base_.data(), size * sizeof(float));
  } else if (missing_ > 0) {
    std::fill_n(to, size, 0.0f);
  }
  const int rows = isa::mxuRows(opcode_), panels = isa::mxuPanels(side_);
  alignas(64) float columns[kMaxOperandRows * kLanes];
  for (size_t at = 0; at < slots_.size(); ++at) {
    if (!slots_[at].pushed) continue;
    const Lanes lanes = lanesOf(side_, slots_[at].panel);
    const int first = static_cast<int>(at) / panels * rows;
    if (!isTransposed(opcode_)) {
      operandRows(opcode_, values_[at].w, lanes, side_, to + first * side_);
      continue;
    }
    mxuOperand(opcode_, values_[at].w, columns);
    for (int l = 0; l < lanes.count; ++l)
      for (int r = 0; r < rows; ++r)
        to[(lanes.at + l) * side_ + first + r] = columns[r * kLanes + lanes.first + l];
  }
}

const PushedWeights::Matrix& PushedWeights::matrix(int unit) const {
  struct Cached {
    int64_t id = 0;
    Matrix matrix;
  };
  static thread_local std::array<Cached, kMaxUnits> cache;
  static thread_local std::vector<Vector> rows;
  Cached& cached = cache[static_cast<size_t>(unit)];
  if (cached.id == id_) return cached.matrix;
  const size_t size = static_cast<size_t>(side_) * side_;
  rows.resize(vectorsOf(size));
  write(floatsOf(rows));
  cached.matrix.rhs.assign(floatsOf(rows), side_, side_, side_);
  cached.matrix.finite = llvm::all_of(rows, [](const Vector& v) { return allFinite(v.w); });
  cached.id = id_;
  return cached.matrix;
}

}  // namespace tpu::emulate
