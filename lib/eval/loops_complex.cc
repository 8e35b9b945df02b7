// c64 and c128 loops. Sums and products are made in the component's type, functions in f64 and rounded once.
#include "complex_math.h"
#include "loops.h"

namespace tpu::eval {
namespace {

using hlo::Opcode;

template <class T>
C widen(Complex<T> z) {
  return {static_cast<double>(z.re), static_cast<double>(z.im)};
}

template <class T>
Complex<T> narrow(C z) {
  return {static_cast<T>(z.re), static_cast<T>(z.im)};
}

template <class T, C (*F)(C)>
void viaDouble(const uint8_t* a, uint8_t* out, int64_t n) {
  mapUnary<Complex<T>, Complex<T>>(a, out, n, [](Complex<T> z) { return narrow<T>(F(widen(z))); });
}

template <class T, C (*F)(C, C)>
void viaDouble2(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n) {
  mapBinary<Complex<T>, Complex<T>>(
      a, b, out, n, [](Complex<T> x, Complex<T> y) { return narrow<T>(F(widen(x), widen(y))); });
}

template <class T>
UnaryLoop unary(Opcode op) {
  using Z = Complex<T>;
  switch (op) {
    case Opcode::abs:
      return
          [](auto a, auto o, auto n) { mapUnary<Z, T>(a, o, n, [](Z z) { return T(modulus(widen(z))); }); };
    case Opcode::real:
      return [](auto a, auto o, auto n) { mapUnary<Z, T>(a, o, n, [](Z z) { return z.re; }); };
    case Opcode::imag:
      return [](auto a, auto o, auto n) { mapUnary<Z, T>(a, o, n, [](Z z) { return z.im; }); };
    case Opcode::negate:
      return [](auto a, auto o, auto n) { mapUnary<Z, Z>(a, o, n, [](Z z) { return Z{-z.re, -z.im}; }); };
    case Opcode::chlo_conj:
      return [](auto a, auto o, auto n) { mapUnary<Z, Z>(a, o, n, [](Z z) { return Z{z.re, -z.im}; }); };
    case Opcode::chlo_square:
      return [](auto a, auto o, auto n) {
        mapUnary<Z, Z>(a, o, n, [](Z z) { return Z{(z.re - z.im) * (z.re + z.im), 2 * z.re * z.im}; });
      };
    case Opcode::exponential:
      return viaDouble<T, exp>;
    case Opcode::exponential_minus_one:
      return viaDouble<T, expm1>;
    case Opcode::log:
      return viaDouble<T, log>;
    case Opcode::log_plus_one:
      return viaDouble<T, log1p>;
    case Opcode::logistic:
      return viaDouble<T, logistic>;
    case Opcode::sqrt:
      return viaDouble<T, sqrt>;
    case Opcode::rsqrt:
      return viaDouble<T, rsqrt>;
    case Opcode::cbrt:
      return viaDouble<T, cbrt>;
    case Opcode::sign:
      return viaDouble<T, sign>;
    case Opcode::sine:
      return viaDouble<T, sin>;
    case Opcode::cosine:
      return viaDouble<T, cos>;
    case Opcode::tan:
    case Opcode::chlo_tan:
      return viaDouble<T, tan>;
    case Opcode::tanh:
      return viaDouble<T, tanh>;
    case Opcode::chlo_sinh:
      return viaDouble<T, sinh>;
    case Opcode::chlo_cosh:
      return viaDouble<T, cosh>;
    case Opcode::chlo_asin:
      return viaDouble<T, asin>;
    case Opcode::chlo_acos:
      return viaDouble<T, acos>;
    case Opcode::chlo_atan:
      return viaDouble<T, atan>;
    case Opcode::chlo_asinh:
      return viaDouble<T, asinh>;
    case Opcode::chlo_acosh:
      return viaDouble<T, acosh>;
    case Opcode::chlo_atanh:
      return viaDouble<T, atanh>;
    default:
      return nullptr;
  }
}

template <class T>
BinaryLoop binary(Opcode op) {
  using Z = Complex<T>;
  switch (op) {
    case Opcode::add:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<Z, Z>(a, b, o, n, [](Z x, Z y) { return Z{x.re + y.re, x.im + y.im}; });
      };
    case Opcode::subtract:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<Z, Z>(a, b, o, n, [](Z x, Z y) { return Z{x.re - y.re, x.im - y.im}; });
      };
    case Opcode::multiply:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<Z, Z>(a, b, o, n, [](Z x, Z y) {
          return Z{x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
        });
      };
    case Opcode::maximum:  // by real parts, then by imaginary parts
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<Z, Z>(a, b, o, n,
                        [](Z x, Z y) { return (x.re == y.re ? x.im > y.im : x.re > y.re) ? x : y; });
      };
    case Opcode::minimum:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<Z, Z>(a, b, o, n,
                        [](Z x, Z y) { return (x.re == y.re ? x.im < y.im : x.re < y.re) ? x : y; });
      };
    case Opcode::divide:
      return viaDouble2<T, divide>;
    case Opcode::power:
      return viaDouble2<T, pow>;
    case Opcode::atan2:
      return viaDouble2<T, atan2>;
    default:
      return nullptr;
  }
}

}  // namespace

UnaryLoop findComplexUnary(Opcode op, ElementType type) {
  return type == ElementType::kC64 ? unary<float>(op) : unary<double>(op);
}

BinaryLoop findComplexBinary(Opcode op, ElementType type) {
  return type == ElementType::kC64 ? binary<float>(op) : binary<double>(op);
}

}  // namespace tpu::eval
