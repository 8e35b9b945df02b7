// Register-blocked f32 matrix product with a fixed order of operations.
//
// A tile of kRows x kCols outputs is held in registers while k runs; the right-hand side is read in stripes
// of kCols columns, packed so that a block of kDepth rows is read in one run. A chain that spans several
// blocks of k goes through `acc` in memory, which loses nothing because f32 is what the register holds too.
#include "tpu/support/fma_gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../lib/support/fma_gemm.cc"
// The wider instruction sets below AVX-512's base level add nothing here; leaving them out halves the build
// time.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Without a fused multiply-add in hardware, or with vectors of unknown length, chains are computed one by
// one.
#undef TPU_GEMM_VECTOR
#if HWY_NATIVE_FMA && !HWY_HAVE_SCALABLE
#define TPU_GEMM_VECTOR 1
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int kLanes = HWY_MAX_BYTES / 4;
constexpr int kVectors = 2;
constexpr int kRows =
    HWY_TARGET == HWY_AVX2 ? 6 : 12;  // kRows * kVectors accumulators + operands fit the register file
#else
#define TPU_GEMM_VECTOR 0
constexpr int kLanes = 1;
constexpr int kVectors = 8;
constexpr int kRows = 4;
#endif
constexpr int kCols = kLanes * kVectors;
constexpr int64_t kDepth =
    256;  // the left rows of a tile stay in the first-level cache: kRows x kDepth x 4 bytes
constexpr int64_t kWidth =
    512;  // columns packed at once: kDepth x kWidth x 4 bytes is half of a 1 MiB second level
constexpr int64_t kLhsPad = 16;  // keeps copied rows from falling into the same cache sets

// One tile: R rows, kCols columns, `depth` steps.
template <int R>
HWY_INLINE void tile(const float* HWY_RESTRICT lhs, ptrdiff_t lhs_stride, const float* HWY_RESTRICT rhs,
                     ptrdiff_t rhs_stride, float* HWY_RESTRICT acc, ptrdiff_t acc_stride, int64_t depth) {
#if TPU_GEMM_VECTOR
  const D d;
  V sum[R][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::LoadU(d, acc + r * acc_stride + v * kLanes);
  for (int64_t k = 0; k < depth; ++k) {
    V right[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, rhs + k * rhs_stride + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const V left = hn::Set(d, lhs[r * lhs_stride + k]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(left, right[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, acc + r * acc_stride + v * kLanes);
#else
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < kCols; ++c)
      for (int64_t k = 0; k < depth; ++k)
        acc[r * acc_stride + c] =
            std::fma(lhs[r * lhs_stride + k], rhs[k * rhs_stride + c], acc[r * acc_stride + c]);
#endif
}

template <int R>
void tileOf(const float* lhs, ptrdiff_t lhs_stride, const float* rhs, ptrdiff_t rhs_stride, float* acc,
            ptrdiff_t acc_stride, int64_t depth, int64_t rows) {
  if constexpr (R > 1) {
    if (rows < R) return tileOf<R - 1>(lhs, lhs_stride, rhs, rhs_stride, acc, acc_stride, depth, rows);
  }
  tile<R>(lhs, lhs_stride, rhs, rhs_stride, acc, acc_stride, depth);
}

// A tile with fewer than kRows rows or kCols columns (the right-hand side is padded with zeros to kCols).
void edgeTile(const float* lhs, ptrdiff_t lhs_stride, const float* rhs, float* acc, ptrdiff_t acc_stride,
              int64_t rows, int64_t cols, int64_t depth) {
  if (cols == kCols) return tileOf<kRows>(lhs, lhs_stride, rhs, kCols, acc, acc_stride, depth, rows);
  float whole[kRows * kCols] = {};
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(whole + r * kCols, acc + r * acc_stride, cols * sizeof(float));
  tileOf<kRows>(lhs, lhs_stride, rhs, kCols, whole, kCols, depth, rows);
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(acc + r * acc_stride, whole + r * kCols, cols * sizeof(float));
}

// Stripes of kCols columns, each `depth` rows of kCols floats; the last stripe padded with zeros.
void pack(const float* rhs, ptrdiff_t rhs_stride, int64_t width, int64_t depth, float* out) {
  for (int64_t j = 0; j < width; j += kCols) {
    const int64_t cols = std::min<int64_t>(kCols, width - j);
    if (cols == kCols) {  // of a length that the compiler knows
      for (int64_t k = 0; k < depth; ++k, out += kCols)
        std::memcpy(out, rhs + k * rhs_stride + j, kCols * sizeof(float));
      continue;
    }
    for (int64_t k = 0; k < depth; ++k, out += kCols) {
      std::memcpy(out, rhs + k * rhs_stride + j, cols * sizeof(float));
      std::fill(out + cols, out + kCols, 0.0f);
    }
  }
}

// One block of k against packed stripes of `stripe` rows, of which the first `depth` count. Rows of the
// left-hand side are copied first where their stride would make them collide in the cache.
void block(const float* lhs, ptrdiff_t lhs_stride, const float* packed, float* acc, ptrdiff_t acc_stride,
           int64_t m, int64_t width, int64_t stripe, int64_t depth) {
  const bool copy = lhs_stride % 256 == 0 && m > 1;
  float rows_copy[kRows * (kDepth + kLhsPad)];
  for (int64_t i = 0; i < m; i += kRows) {
    const int64_t rows = std::min<int64_t>(kRows, m - i);
    const float* left = lhs + i * lhs_stride;
    ptrdiff_t left_stride = lhs_stride;
    if (copy) {
      left_stride = kDepth + kLhsPad;
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(rows_copy + r * left_stride, left + r * lhs_stride, depth * sizeof(float));
      left = rows_copy;
    }
    for (int64_t j = 0; j < width; j += kCols) {
      const int64_t cols = std::min<int64_t>(kCols, width - j);
      const float* right = packed + j * stripe;
      float* out = acc + i * acc_stride + j;
      if (rows == kRows && cols == kCols) {
        tile<kRows>(left, left_stride, right, kCols, out, acc_stride, depth);
      } else {
        edgeTile(left, left_stride, right, out, acc_stride, rows, cols, depth);
      }
    }
  }
}

int64_t PackedWidth(int64_t n) { return (n + kCols - 1) / kCols * kCols; }

void Pack(const float* rhs, ptrdiff_t rhs_stride, int64_t n, int64_t k, float* out) {
  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    const int64_t depth = std::min(kDepth, k - k0);
    pack(rhs + k0 * rhs_stride, rhs_stride, n, depth, out);
    out += depth * PackedWidth(n);
  }
}

void GemmPacked(const float* lhs, ptrdiff_t lhs_stride, const float* packed, float* acc, ptrdiff_t acc_stride,
                int64_t m, int64_t n, int64_t packed_k, int64_t k) {
  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    const int64_t stripe = std::min(kDepth, packed_k - k0);
    block(lhs + k0, lhs_stride, packed, acc, acc_stride, m, n, stripe, std::min(stripe, k - k0));
    packed += stripe * PackedWidth(n);
  }
}

// Few rows do not repay the packing: full stripes are then read where they lie.
constexpr int64_t kPackFromRows = 4 * kRows;

void Gemm(const float* lhs, ptrdiff_t lhs_stride, const float* rhs, ptrdiff_t rhs_stride, float* acc,
          ptrdiff_t acc_stride, int64_t m, int64_t n, int64_t k) {
  const int64_t direct = m < kPackFromRows ? n / kCols * kCols : 0;
  for (int64_t j = 0; j < direct; j += kCols)
    for (int64_t i = 0; i < m; i += kRows)
      tileOf<kRows>(lhs + i * lhs_stride, lhs_stride, rhs + j, rhs_stride, acc + i * acc_stride + j,
                    acc_stride, k, std::min<int64_t>(kRows, m - i));
  if (direct == n || k == 0) return;
  const std::unique_ptr<float[]> packed(
      new float[std::min(kDepth, k) * std::min(kWidth, PackedWidth(n - direct))]);
  for (int64_t j = direct; j < n; j += kWidth) {
    const int64_t width = std::min(kWidth, n - j);
    for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
      const int64_t depth = std::min(kDepth, k - k0);
      pack(rhs + k0 * rhs_stride + j, rhs_stride, width, depth, packed.get());
      block(lhs + k0, lhs_stride, packed.get(), acc + j, acc_stride, m, width, depth, depth);
    }
  }
}

}  // namespace tpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tpu {
HWY_EXPORT(PackedWidth);
HWY_EXPORT(Pack);
HWY_EXPORT(GemmPacked);
HWY_EXPORT(Gemm);

void fmaGemm(const float* lhs, ptrdiff_t lhs_stride, const float* rhs, ptrdiff_t rhs_stride, float* acc,
             ptrdiff_t acc_stride, int64_t m, int64_t n, int64_t k) {
  HWY_DYNAMIC_DISPATCH(Gemm)(lhs, lhs_stride, rhs, rhs_stride, acc, acc_stride, m, n, k);
}

void FmaGemmRhs::assign(const float* rhs, ptrdiff_t rhs_stride, int64_t n, int64_t k) {
  n_ = n;
  k_ = k;
  packed_.resize(k * HWY_DYNAMIC_DISPATCH(PackedWidth)(n));
  HWY_DYNAMIC_DISPATCH(Pack)(rhs, rhs_stride, n, k, packed_.data());
}

void fmaGemm(const float* lhs, ptrdiff_t lhs_stride, const FmaGemmRhs& rhs, float* acc, ptrdiff_t acc_stride,
             int64_t m, int64_t k) {
  HWY_DYNAMIC_DISPATCH(GemmPacked)(lhs, lhs_stride, rhs.packed(), acc, acc_stride, m, rhs.n(), rhs.k(), k);
}

}  // namespace tpu
#endif
