// Matrix products of the evaluator on one native type.
#pragma once
#include "kernel.h"
#include "tpu/support/fma_gemm.h"

namespace tpu::eval {

/// The type in which a contraction with this result is computed: f32 for floats of 32 bits or less, the type
/// itself else.
ElementType contractionType(ElementType result);

/// acc[m][n] += lhs[m][k] rhs[k][n], dense row-major, all of `type` (a contraction type). f32: one FMA chain
/// per output, k ascending (multiply, then add unless `fused`). f64 and complex: multiply, then add. Integers
/// wrap; pred is or of ands.
void gemm(ElementType type, const uint8_t* lhs, const uint8_t* rhs, uint8_t* acc, int64_t m, int64_t n,
          int64_t k, bool fused = true);

/// One right-hand side for many products of the same kind; `rhs` must outlive it.
class GemmRhs {
 public:
  /// `rows`: about how many left-hand rows it will meet in all.
  GemmRhs(ElementType type, const uint8_t* rhs, int64_t n, int64_t k, int64_t rows, bool fused);
  /// acc[m][n] += lhs[m][k] rhs, as gemm. Thread-safe.
  void multiply(const uint8_t* lhs, uint8_t* acc, int64_t m) const;

 private:
  ElementType type_;
  const uint8_t* rhs_;
  int64_t n_, k_;
  bool fused_;
  FmaGemmRhs packed_;  // f32, where it pays
};

}  // namespace tpu::eval
