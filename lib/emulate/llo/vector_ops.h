// Bodies of the machine instructions on whole registers, without time: what the llo interpreter executes.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "tpu/isa/isa.h"

namespace tpu::emulate::llo_run {

inline constexpr int kLanes = 128, kSublanes = 8, kWords = kLanes * kSublanes;
using Vector = std::array<uint32_t, kWords>;
using Mask = std::array<uint8_t, kWords>;

/// VALU instructions with up to two vector sources and a vector destination. False: not one of these.
bool runVector(isa::Opcode op, Vector& d, const Vector& a, const Vector& b, int imm);
/// vcmp.*. False: not one of these.
bool runCompare(isa::Opcode op, Mask& d, const Vector& a, const Vector& b);
/// EUP functions.
bool runEup(isa::Opcode op, Vector& d, const Vector& a);
/// XLU reductions and permutations; `b` for vperm.lane, `n` for the others. False: not one of these.
bool runXlu(isa::Opcode op, Vector& d, const Vector& a, const Vector& b, uint32_t n);
/// Scalar ALU: sd = a op b. False: not one of these.
bool runScalar(isa::Opcode op, uint32_t& d, uint32_t a, uint32_t b);
/// Scalar compares. False: not one of these.
bool runScalarCompare(isa::Opcode op, bool& d, uint32_t a, uint32_t b);

/// One matrix unit: two staging registers, the current weights, the rows of a multiplication being streamed, results.
class MatrixUnit {
 public:
  MatrixUnit(int side, int accumulators);
  void push(isa::Opcode op, const Vector& a, int staging, int group, int panel);
  void latch(int staging) { current_ = staging_[staging]; }
  /// True when this was the last lane panel: `out` has the result entries then.
  bool multiply(isa::Opcode op, const Vector& a, int panel, std::vector<Vector>* out);
  bool accumulate(isa::Opcode op, const Vector& a, int panel, uint32_t address);
  bool popAccumulator(uint32_t address, Vector& d);
  std::deque<Vector> fifo;

 private:
  enum class Kind : uint8_t { kFloat, kInt };
  struct Weights {
    std::vector<float> f;     // side x side, row k
    std::vector<int32_t> i;
  };
  bool stream(isa::Opcode op, const Vector& a, int panel);
  void results(isa::Opcode op, int panel, std::vector<Vector>* out) const;
  int side_;
  std::array<Weights, 2> staging_;
  Weights current_;
  std::vector<float> lhs_f_;   // up to 32 rows x side
  std::vector<int32_t> lhs_i_;
  std::vector<Vector> accumulators_;
};

}  // namespace tpu::emulate::llo_run
