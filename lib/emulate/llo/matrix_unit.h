// A matrix unit by value, without time.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "tpu/emulate/vector_bodies.h"
#include "tpu/isa/isa.h"
#include "tpu/support/fma_gemm.h"

namespace tpu::emulate::llo_run {

/// Two staging registers, the current weights, the rows of a multiplication being streamed, results.
class MatrixUnit {
 public:
  MatrixUnit(int side, int accumulators);
  void push(isa::Opcode op, const Vector& a, bool transposed, int staging, int group, int panel);
  void latch(int staging) { current_.assign(staging_[staging].data(), side_, side_, side_); }
  /// Appends the result entries to `out` when this was the last lane panel.
  void multiply(isa::Opcode op, const Vector& a, int panel, std::deque<Vector>& out);
  /// Both false where the address names no accumulator.
  bool accumulate(isa::Opcode op, const Vector& a, int panel, uint32_t address);
  bool popAccumulator(uint32_t address, Vector& d);
  std::deque<Vector> fifo;

 private:
  int side_;
  std::array<std::vector<float>, 2> staging_;  // side x side, row k
  FmaGemmRhs current_;
  std::vector<float> lhs_;                     // up to 32 rows x side
  std::vector<Vector> accumulators_;
};

}  // namespace tpu::emulate::llo_run
