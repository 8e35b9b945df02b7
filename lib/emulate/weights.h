// Weights of a matrix unit as they were pushed: whole registers, not yet a matrix. They become f32 where rows
// meet them, in memory that all units of a thread share: what a unit keeps is half as large, and latching
// weights copies nothing.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "tpu/emulate/vector_bodies.h"
#include "tpu/support/fma_gemm.h"

namespace tpu::emulate {

/// Whether a push takes columns of the matrix.
bool isTransposed(isa::Opcode push);

/// Which part of an operand's rows stands where in a matrix of side x side.
struct Lanes {
  int first, count, at;  // lanes of the register; row or column of the matrix of the first one
};
/// A side below 128 takes part `panel` of the lanes; a larger one takes all lanes for part `panel` of the
/// matrix.
Lanes lanesOf(int side, int panel);

/// A matrix as vectors, for its alignment: mxuOperand writes whole vectors of the host.
inline size_t vectorsOf(size_t floats) { return (floats + kVectorWords - 1) / kVectorWords; }
inline float* floatsOf(std::vector<Vector>& room) { return reinterpret_cast<float*>(room.data()); }

/// The rows that operand `value` of a push or product stands for, into a matrix at row `to`; their number.
int operandRows(isa::Opcode opcode, const uint32_t* value, const Lanes& lanes, int side, float* to);

/// What has been pushed into a staging register, which the unit's weights may share: never changed while
/// shared.
class PushedWeights {
 public:
  /// Empty, for pushes of one opcode; what is not pushed is as in `before`, or zero.
  PushedWeights(isa::Opcode opcode, int side, std::shared_ptr<const PushedWeights> before);
  isa::Opcode opcode() const { return opcode_; }
  /// Register `value` for row (column) group `group` and lane panel `panel`.
  void push(int group, int panel, const uint32_t* value);
  struct Matrix {
    FmaGemmRhs rhs;
    bool finite = true;  // no infinity, no NaN
  };
  /// As a right-hand side, valid until the thread asks for another one of the same unit.
  const Matrix& matrix(int unit) const;

 private:
  struct Slot {
    bool pushed = false;
    uint8_t panel = 0;
  };
  void write(float* to) const;

  const isa::Opcode opcode_;
  const int side_;
  const int64_t id_;  // no two of a process have the same
  std::vector<Slot> slots_;
  int missing_;
  std::unique_ptr<Vector[]> values_;  // by slot
  std::shared_ptr<const PushedWeights> before_;
  std::vector<Vector>
      base_;  // the matrix of before_, where that has one of its own: so that there is no chain of them
};

}  // namespace tpu::emulate
