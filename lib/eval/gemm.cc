// Products by type: f32 through the fixed-order kernel, the others row by row.
#include "gemm.h"

#include <algorithm>

#include "loops.h"
#include "native.h"
#include "tpu/support/fma_gemm.h"
#include "tpu/support/parallel.h"

namespace tpu::eval {
namespace {

constexpr int64_t kRowsPerTask = 96;
constexpr int64_t kRowStep = 12, kColumnStep = 64;  // multiples of what the kernel holds in registers
constexpr int64_t kPackFromRows = 512;              // fewer do not repay a copy of the right-hand side

template <class T, class F>
void rowByRow(const uint8_t* lhs_bytes, const uint8_t* rhs_bytes, uint8_t* acc_bytes, int64_t m, int64_t n,
              int64_t k, F f) {
  const T* lhs = reinterpret_cast<const T*>(lhs_bytes);
  const T* rhs = reinterpret_cast<const T*>(rhs_bytes);
  T* acc = reinterpret_cast<T*>(acc_bytes);
  const auto rows = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j) acc[i * n + j] = f(acc[i * n + j], lhs[i * k + p], rhs[p * n + j]);
  };
  if (m * n * k < 1 << 20) return rows(0, m);
  parallelFor((m + kRowsPerTask - 1) / kRowsPerTask, [&](size_t task) {
    const int64_t begin = static_cast<int64_t>(task) * kRowsPerTask;
    rows(begin, std::min(m, begin + kRowsPerTask));
  });
}

template <class T>
void integers(const uint8_t* lhs, const uint8_t* rhs, uint8_t* acc, int64_t m, int64_t n, int64_t k) {
  using W = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  rowByRow<T>(lhs, rhs, acc, m, n, k, [](T sum, T a, T b) { return static_cast<T>(W(sum) + W(a) * W(b)); });
}

template <class T>
void complexes(const uint8_t* lhs, const uint8_t* rhs, uint8_t* acc, int64_t m, int64_t n, int64_t k) {
  using Z = Complex<T>;
  rowByRow<Z>(lhs, rhs, acc, m, n, k, [](Z sum, Z a, Z b) {
    return Z{sum.re + (a.re * b.re - a.im * b.im), sum.im + (a.re * b.im + a.im * b.re)};
  });
}

// Calls fn(first, count) for shares of n that are multiples of `step`, one per thread.
void forShares(int64_t n, int64_t step, llvm::function_ref<void(int64_t, int64_t)> fn) {
  const int64_t tasks = std::clamp<int64_t>(n / step, 1, threads());
  const int64_t share = ((n + tasks - 1) / tasks + step - 1) / step * step;
  parallelFor(tasks, [&](size_t task) {
    const int64_t first = static_cast<int64_t>(task) * share;
    if (first < n) fn(first, std::min(share, n - first));
  });
}

void floats(const float* lhs, const float* rhs, float* acc, int64_t m, int64_t n, int64_t k) {
  if (m * n * k < 1 << 20) return fmaGemm(lhs, k, rhs, n, acc, n, m, n, k);
  if (m >= kRowsPerTask * static_cast<int64_t>(threads()))
    return forShares(m, kRowStep, [&](int64_t first, int64_t rows) {
      fmaGemm(lhs + first * k, k, rhs, n, acc + first * n, n, rows, n, k);
    });
  forShares(n, kColumnStep, [&](int64_t first, int64_t columns) {
    fmaGemm(lhs, k, rhs + first, n, acc + first, n, m, columns, k);
  });
}

}  // namespace

ElementType contractionType(ElementType result) { return nativeType(result); }

void gemm(ElementType type, const uint8_t* lhs, const uint8_t* rhs, uint8_t* acc, int64_t m, int64_t n,
          int64_t k, bool fused) {
  switch (type) {
    case ElementType::kF32:
      if (!fused)
        return rowByRow<float>(lhs, rhs, acc, m, n, k,
                               [](float sum, float a, float b) { return sum + a * b; });
      return floats(reinterpret_cast<const float*>(lhs), reinterpret_cast<const float*>(rhs),
                    reinterpret_cast<float*>(acc), m, n, k);
    case ElementType::kF64:
      return rowByRow<double>(lhs, rhs, acc, m, n, k,
                              [](double sum, double a, double b) { return sum + a * b; });
    case ElementType::kC64:
      return complexes<float>(lhs, rhs, acc, m, n, k);
    case ElementType::kC128:
      return complexes<double>(lhs, rhs, acc, m, n, k);
    case ElementType::kPred:
      return rowByRow<uint8_t>(lhs, rhs, acc, m, n, k,
                               [](uint8_t s, uint8_t a, uint8_t b) { return uint8_t(s | (a & b)); });
    case ElementType::kS8:
      return integers<int8_t>(lhs, rhs, acc, m, n, k);
    case ElementType::kU8:
      return integers<uint8_t>(lhs, rhs, acc, m, n, k);
    case ElementType::kS16:
      return integers<int16_t>(lhs, rhs, acc, m, n, k);
    case ElementType::kU16:
      return integers<uint16_t>(lhs, rhs, acc, m, n, k);
    case ElementType::kS32:
      return integers<int32_t>(lhs, rhs, acc, m, n, k);
    case ElementType::kU32:
      return integers<uint32_t>(lhs, rhs, acc, m, n, k);
    case ElementType::kS64:
      return integers<int64_t>(lhs, rhs, acc, m, n, k);
    case ElementType::kU64:
      return integers<uint64_t>(lhs, rhs, acc, m, n, k);
    default:
      break;
  }
}

GemmRhs::GemmRhs(ElementType type, const uint8_t* rhs, int64_t n, int64_t k, int64_t rows, bool fused)
    : type_(type), rhs_(rhs), n_(n), k_(k), fused_(fused) {
  if (type == ElementType::kF32 && fused && rows >= kPackFromRows)
    packed_.assign(reinterpret_cast<const float*>(rhs), n, n, k);
}

void GemmRhs::multiply(const uint8_t* lhs_bytes, uint8_t* acc_bytes, int64_t m) const {
  if (packed_.n() == 0) return gemm(type_, lhs_bytes, rhs_, acc_bytes, m, n_, k_, fused_);
  const float* lhs = reinterpret_cast<const float*>(lhs_bytes);
  float* acc = reinterpret_cast<float*>(acc_bytes);
  forShares(m, kRowStep, [&](int64_t first, int64_t rows) {
    fmaGemm(lhs + first * k_, k_, packed_, acc + first * n_, n_, rows, k_);
  });
}

}  // namespace tpu::eval
