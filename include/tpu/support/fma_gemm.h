// Matrix products whose rounding is fixed: every output is one chain of f32 fused multiply-adds, k ascending.
// This is the arithmetic of one panel of a matrix unit, and of the reference evaluator's dots; both use this
// code, so that their results are the same bits on every host (vector width and blocking never change the
// order of a chain).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tpu {

/// For all i < m, j < n:  acc[i][j] = fma(lhs[i][k-1], rhs[k-1][j], ... fma(lhs[i][0], rhs[0][j],
/// acc[i][j])). Matrices are row-major; a stride is the distance of two rows in elements. Blocks for the
/// caches itself, so any size is fine; near the machine's peak from about 8 x 128 x 128 up. Thread-safe, one
/// thread per call.
void fmaGemm(const float* lhs, ptrdiff_t lhs_stride, const float* rhs, ptrdiff_t rhs_stride, float* acc,
             ptrdiff_t acc_stride, int64_t m, int64_t n, int64_t k);

/// A right-hand side kept in the order in which the kernel reads it: worth it where one matrix meets many
/// left-hand sides (weights latched in a matrix unit).
class FmaGemmRhs {
 public:
  /// Takes a copy of rhs[0..k)[0..n).
  void assign(const float* rhs, ptrdiff_t rhs_stride, int64_t n, int64_t k);
  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  const float* packed() const { return packed_.data(); }

 private:
  std::vector<float> packed_;
  int64_t n_ = 0, k_ = 0;
};

/// As fmaGemm with the packed right-hand side's n and its first k rows (all of them: rhs.k()).
void fmaGemm(const float* lhs, ptrdiff_t lhs_stride, const FmaGemmRhs& rhs, float* acc, ptrdiff_t acc_stride,
             int64_t m, int64_t k);

}  // namespace tpu
