// Products by type: f32 through the fixed-order kernel, the others row by row.
#include "gemm.h"

#include "loops.h"
#include "native.h"
#include "tpu/support/fma_gemm.h"
#include "tpu/support/parallel.h"

namespace tpu::eval {
namespace {

constexpr int64_t kRowsPerTask = 96;

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

void floats(const float* lhs, const float* rhs, float* acc, int64_t m, int64_t n, int64_t k) {
  if (m * n * k < 1 << 21) return fmaGemm(lhs, k, rhs, n, acc, n, m, n, k);
  const int64_t tasks = std::min<int64_t>(threads(), (m + kRowsPerTask - 1) / kRowsPerTask);
  const int64_t rows = (m + tasks - 1) / tasks;
  parallelFor(tasks, [&](size_t task) {
    const int64_t begin = static_cast<int64_t>(task) * rows, count = std::min(rows, m - begin);
    if (count > 0) fmaGemm(lhs + begin * k, k, rhs, n, acc + begin * n, n, count, n, k);
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

}  // namespace tpu::eval
