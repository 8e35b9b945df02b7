// Cholesky factors and triangular solves of batches of matrices, computed in f64 (complex where the type is)
// and rounded once. The triangle that cholesky does not write is zero; the one that triangular_solve ignores
// is not read.
#include <cmath>

#include "complex_math.h"
#include "values.h"

namespace tpu::eval {
namespace {

double conjugate(double x) { return x; }
C conjugate(C x) { return {x.re, -x.im}; }
double times(double a, double b) { return a * b; }
C times(C a, C b) { return multiply(a, b); }
double minus(double a, double b) { return a - b; }
C minus(C a, C b) { return subtract(a, b); }
double over(double a, double b) { return a / b; }
C over(C a, C b) { return divide(a, b); }
double realRoot(double x) { return std::sqrt(x); }
C realRoot(C x) { return {std::sqrt(x.re), 0}; }

// The lower factor in place; reads the lower triangle only.
template <class T>
void factor(T* a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    T diagonal = a[j * n + j];
    for (int64_t k = 0; k < j; ++k) diagonal = minus(diagonal, times(a[j * n + k], conjugate(a[j * n + k])));
    a[j * n + j] = realRoot(diagonal);
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum = minus(sum, times(a[i * n + k], conjugate(a[j * n + k])));
      a[i * n + j] = over(sum, a[j * n + j]);
    }
    for (int64_t i = 0; i < j; ++i) a[i * n + j] = T{};
  }
}

template <class T>
void adjointInPlace(T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    a[i * n + i] = conjugate(a[i * n + i]);
    for (int64_t j = 0; j < i; ++j) {
      const T x = a[i * n + j];
      a[i * n + j] = conjugate(a[j * n + i]);
      a[j * n + i] = conjugate(x);
    }
  }
}

template <class T>
void choleskyBatch(HostTensor& t, bool lower) {
  const int64_t n = t.dims.back();
  T* a = t.data<T>();
  for (int64_t b = 0; b < (n ? t.numElements() / (n * n) : 0); ++b, a += n * n) {
    if (!lower) adjointInPlace(a, n);
    factor(a, n);
    if (!lower) adjointInPlace(a, n);
  }
}

struct Solve {
  bool left, lower, unit, transpose, adjoint;
};

// Coefficient (i, j) of op(A).
template <class T>
T coefficient(const T* a, int64_t n, const Solve& s, int64_t i, int64_t j) {
  const T x = s.transpose ? a[j * n + i] : a[i * n + j];
  return s.adjoint ? conjugate(x) : x;
}

// op(A) x = b for one vector whose elements are `step` apart, or x op(A) = b where `s.left` is false.
template <class T>
void solveVector(const T* a, int64_t n, const Solve& s, T* x, int64_t step) {
  // For x A = b the system is A^T x = b.
  const bool forward = (s.lower != s.transpose) == s.left;
  for (int64_t p = 0; p < n; ++p) {
    const int64_t i = forward ? p : n - 1 - p;
    T sum = x[i * step];
    for (int64_t q = 0; q < p; ++q) {
      const int64_t j = forward ? q : n - 1 - q;
      sum = minus(sum, times(s.left ? coefficient(a, n, s, i, j) : coefficient(a, n, s, j, i), x[j * step]));
    }
    x[i * step] = s.unit ? sum : over(sum, coefficient(a, n, s, i, i));
  }
}

template <class T>
void solveBatch(const HostTensor& a_tensor, HostTensor& b_tensor, const Solve& s) {
  const int64_t n = a_tensor.dims.back();
  const int64_t rows = b_tensor.dims[b_tensor.dims.size() - 2], columns = b_tensor.dims.back();
  const T* a = a_tensor.data<T>();
  T* b = b_tensor.data<T>();
  for (int64_t batch = 0; batch < (n ? a_tensor.numElements() / (n * n) : 0);
       ++batch, a += n * n, b += rows * columns) {
    if (s.left) {
      for (int64_t c = 0; c < columns; ++c) solveVector(a, n, s, b + c, columns);
    } else {
      for (int64_t r = 0; r < rows; ++r) solveVector(a, n, s, b + r * columns, 1);
    }
  }
}

ElementType wideType(ElementType type) { return isComplex(type) ? ElementType::kC128 : ElementType::kF64; }

}  // namespace

Outcome cholesky(Call& call) {
  const ElementType element = call.in[0]->element;
  Tensor wide = convertTo(call.in[0], wideType(element));
  Tensor out = own(wide);
  const bool lower = call.integer(AttrKey::lower) != 0;
  if (isComplex(element)) {
    choleskyBatch<C>(*out, lower);
  } else {
    choleskyBatch<double>(*out, lower);
  }
  return Tensors{convertTo(out, element)};
}

Outcome triangularSolve(Call& call) {
  const ElementType element = call.in[1]->element;
  const llvm::StringRef op = call.module.getString(call.id, AttrKey::transpose_a);
  const Solve s{call.integer(AttrKey::left_side) != 0, call.integer(AttrKey::lower) != 0,
                call.integer(AttrKey::unit_diagonal) != 0, op == "TRANSPOSE" || op == "ADJOINT",
                op == "ADJOINT"};
  const Tensor a = convertTo(call.in[0], wideType(element));
  Tensor wide = convertTo(call.in[1], wideType(element));
  Tensor out = own(wide);
  if (isComplex(element)) {
    solveBatch<C>(*a, *out, s);
  } else {
    solveBatch<double>(*a, *out, s);
  }
  return Tensors{convertTo(out, element)};
}

}  // namespace tpu::eval
