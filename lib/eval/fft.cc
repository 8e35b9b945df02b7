// Discrete Fourier transforms over the last one to three dimensions, in f64 and rounded once. A length is
// split by its prime factors; a prime factor costs its square.
#include <cmath>

#include "complex_math.h"
#include "tpu/eval/math.h"
#include "values.h"

namespace tpu::eval {
namespace {

constexpr double kTwoPi = 2 * 0x1.921fb54442d18p+1;

class Transform {
 public:
  Transform(int64_t n, bool inverse) : n_(n), inverse_(inverse), roots_(n) {
    for (int64_t k = 0; k < n; ++k) {
      // Angles beyond an eighth turn are folded, so that the roots of powers of two are exact where they can
      // be.
      const double angle = kTwoPi * (static_cast<double>(k) / static_cast<double>(n));
      roots_[k] = {math::cos(angle), inverse ? math::sin(angle) : -math::sin(angle)};
      if (4 * k == n || 4 * k == 3 * n) roots_[k].re = 0;
      if (2 * k == n) roots_[k].im = 0;
    }
  }

  // x[0], x[step], ... n values, in place.
  void run(C* x, int64_t step) const {
    std::vector<C> in(n_), out(n_);
    for (int64_t i = 0; i < n_; ++i) in[i] = x[i * step];
    recurse(in.data(), 1, n_, out.data());
    const double factor = inverse_ ? 1.0 / static_cast<double>(n_) : 1.0;
    for (int64_t i = 0; i < n_; ++i) x[i * step] = scale(out[i], factor);
  }

 private:
  // Decimation in time: p transforms of n/p values each, then p-point butterflies.
  void recurse(const C* in, int64_t stride, int64_t n, C* out) const {
    if (n == 1) {
      *out = *in;
      return;
    }
    int64_t p = 2;
    while (n % p != 0) ++p;
    const int64_t m = n / p, turn = n_ / n;
    for (int64_t r = 0; r < p; ++r) recurse(in + r * stride, stride * p, m, out + r * m);
    std::vector<C> t(p);
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t r = 0; r < p; ++r) t[r] = multiply(out[r * m + k], roots_[r * k * turn % n_]);
      for (int64_t q = 0; q < p; ++q) {
        C sum = t[0];
        for (int64_t r = 1; r < p; ++r) sum = add(sum, multiply(t[r], roots_[r * q * m % n * turn % n_]));
        out[q * m + k] = sum;
      }
    }
  }

  int64_t n_;
  bool inverse_;
  std::vector<C> roots_;
};

// The transform along one dimension of an array of complex numbers.
void along(HostTensor& t, int64_t dim, bool inverse) {
  const int64_t n = t.dims[dim];
  if (t.bytes.empty()) return;
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < t.rank(); ++d) inner *= t.dims[d];
  const Transform transform(n, inverse);
  C* x = t.data<C>();
  for (int64_t outer = 0; outer < t.numElements() / (n * inner); ++outer)
    for (int64_t i = 0; i < inner; ++i) transform.run(x + outer * n * inner + i, inner);
}

// The first `size` entries of the last dimension.
Tensor cutLast(const Tensor& t, int64_t size) {
  Dims dims = t->dims;
  dims.back() = size;
  Tensor out = makeTensor(t->element, dims);
  stridedCopy(dims, hostBytes(t->element), t->bytes.data(), rowMajorStrides(t->dims), out->bytes.data(),
              rowMajorStrides(dims));
  return out;
}

// The second half of a spectrum of real data along the last dimension: conjugates of the first.
Tensor completeLast(const Tensor& t, int64_t n) {
  Dims dims = t->dims;
  const int64_t half = dims.back();
  dims.back() = n;
  Tensor out = makeTensor(t->element, dims);
  const C* in = t->data<C>();
  C* x = out->data<C>();
  const int64_t rows = n == 0 ? 0 : out->numElements() / n;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < n; ++k) {
      const C value = in[r * half + (k < half ? k : n - k)];
      x[r * n + k] = k < half ? value : C{value.re, -value.im};
    }
  for (int64_t r = 0; r < rows; ++r) x[r * n].im = 0;
  return out;
}

}  // namespace

Outcome fft(Call& call) {
  const auto* type_attr = call.module.findAttr(call.id, AttrKey::fft_type);
  const hlo::FftType type = type_attr ? static_cast<hlo::FftType>(type_attr->i) : hlo::FftType::kFft;
  const llvm::ArrayRef<int64_t> length = call.ints(AttrKey::fft_length);
  const bool inverse = type == hlo::FftType::kIfft || type == hlo::FftType::kIrfft;
  Tensor wide = convertTo(call.in[0], ElementType::kC128);
  Tensor t = own(wide);
  const int64_t first = t->rank() - static_cast<int64_t>(length.size());
  if (type == hlo::FftType::kIrfft) {
    for (int64_t d = first; d < t->rank() - 1; ++d) along(*t, d, true);
    t = completeLast(t, length.back());
    along(*t, t->rank() - 1, true);
  } else {
    for (int64_t d = t->rank() - 1; d >= first; --d) {
      along(*t, d, inverse);
      if (type == hlo::FftType::kRfft && d == t->rank() - 1)
        t = cutLast(t, length.back() == 0 ? 0 : length.back() / 2 + 1);
    }
  }
  return Tensors{convertTo(t, call.resultElement())};
}

}  // namespace tpu::eval
