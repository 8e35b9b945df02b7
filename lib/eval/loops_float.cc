// f32 and f64 loops. Functions beyond + - * / and the square root are computed in f64 by math.h and rounded
// once.
#include <bit>
#include <cmath>
#include <limits>

#include "loops.h"
#include "loops_vector.h"
#include "tpu/eval/math.h"

namespace tpu::eval {
namespace {

using hlo::Opcode;

template <class T, double (*F)(double)>
void viaDouble(const uint8_t* a, uint8_t* out, int64_t n) {
  mapUnary<T, T>(a, out, n, [](T x) { return static_cast<T>(F(x)); });
}

template <class T, double (*F)(double, double)>
void viaDouble2(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n) {
  mapBinary<T, T>(a, b, out, n, [](T x, T y) { return static_cast<T>(F(x, y)); });
}

double rsqrt(double x) { return 1.0 / std::sqrt(x); }

template <class T>
T sign(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : x;  // zeros and NaN as they are
}

template <class T>
T nextAfter(T x, T y) {
  using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  if (x != x || y != y) return std::numeric_limits<T>::quiet_NaN();
  if (x == y) return y;
  if (x == 0) return std::copysign(std::bit_cast<T>(U(1)), y);
  const U u = std::bit_cast<U>(x);
  return std::bit_cast<T>((x < y) == (x > 0) ? U(u + 1) : U(u - 1));
}

template <class T>
UnaryLoop transcendental(Opcode op) {
  switch (op) {
    case Opcode::cbrt:
      return viaDouble<T, math::cbrt>;
    case Opcode::cosine:
      return viaDouble<T, math::cos>;
    case Opcode::sine:
      return viaDouble<T, math::sin>;
    case Opcode::tan:
    case Opcode::chlo_tan:
      return viaDouble<T, math::tan>;
    case Opcode::tanh:
      return viaDouble<T, math::tanh>;
    case Opcode::exponential:
      return viaDouble<T, math::exp>;
    case Opcode::exponential_minus_one:
      return viaDouble<T, math::expm1>;
    case Opcode::log:
      return viaDouble<T, math::log>;
    case Opcode::log_plus_one:
      return viaDouble<T, math::log1p>;
    case Opcode::logistic:
      return viaDouble<T, math::logistic>;
    case Opcode::rsqrt:
      return viaDouble<T, rsqrt>;
    case Opcode::chlo_acos:
      return viaDouble<T, math::acos>;
    case Opcode::chlo_acosh:
      return viaDouble<T, math::acosh>;
    case Opcode::chlo_asin:
      return viaDouble<T, math::asin>;
    case Opcode::chlo_asinh:
      return viaDouble<T, math::asinh>;
    case Opcode::chlo_atan:
      return viaDouble<T, math::atan>;
    case Opcode::chlo_atanh:
      return viaDouble<T, math::atanh>;
    case Opcode::chlo_cosh:
      return viaDouble<T, math::cosh>;
    case Opcode::chlo_sinh:
      return viaDouble<T, math::sinh>;
    case Opcode::chlo_erf:
      return viaDouble<T, math::erf>;
    case Opcode::chlo_erfc:
      return viaDouble<T, math::erfc>;
    case Opcode::chlo_erf_inv:
      return viaDouble<T, math::erfInv>;
    case Opcode::chlo_lgamma:
      return viaDouble<T, math::lgamma>;
    case Opcode::chlo_digamma:
      return viaDouble<T, math::digamma>;
    case Opcode::chlo_bessel_i1e:
      return viaDouble<T, math::besselI1e>;
    default:
      return nullptr;
  }
}

template <class T>
UnaryLoop unary(Opcode op) {
  switch (op) {
    case Opcode::abs:
      return [](auto a, auto o, auto n) { mapUnary<T, T>(a, o, n, [](T x) { return std::fabs(x); }); };
    case Opcode::negate:
      return [](auto a, auto o, auto n) { mapUnary<T, T>(a, o, n, [](T x) { return -x; }); };
    case Opcode::chlo_square:
      return [](auto a, auto o, auto n) { mapUnary<T, T>(a, o, n, [](T x) { return x * x; }); };
    case Opcode::chlo_conj:
    case Opcode::real:
      return [](auto a, auto o, auto n) { mapUnary<T, T>(a, o, n, [](T x) { return x; }); };
    case Opcode::imag:
      return [](auto a, auto o, auto n) { mapUnary<T, T>(a, o, n, [](T) { return T(0); }); };
    case Opcode::sign:
      return [](auto a, auto o, auto n) { mapUnary<T, T>(a, o, n, sign<T>); };
    case Opcode::sqrt:
      return [](auto a, auto o, auto n) { mapUnary<T, T>(a, o, n, [](T x) { return std::sqrt(x); }); };
    case Opcode::floor:
      return viaDouble<T, math::floor>;
    case Opcode::ceil:
      return viaDouble<T, math::ceil>;
    case Opcode::round_nearest_afz:
      return viaDouble<T, math::roundHalfAway>;
    case Opcode::round_nearest_even:
      return viaDouble<T, math::roundHalfEven>;
    case Opcode::is_finite:
      return [](auto a, auto o, auto n) { mapUnary<T, uint8_t>(a, o, n, [](T x) { return x - x == 0; }); };
    case Opcode::chlo_is_inf:
      return [](auto a, auto o, auto n) {
        mapUnary<T, uint8_t>(a, o, n, [](T x) { return std::fabs(x) == std::numeric_limits<T>::infinity(); });
      };
    case Opcode::chlo_is_pos_inf:
      return [](auto a, auto o, auto n) {
        mapUnary<T, uint8_t>(a, o, n, [](T x) { return x == std::numeric_limits<T>::infinity(); });
      };
    case Opcode::chlo_is_neg_inf:
      return [](auto a, auto o, auto n) {
        mapUnary<T, uint8_t>(a, o, n, [](T x) { return x == -std::numeric_limits<T>::infinity(); });
      };
    default:
      return transcendental<T>(op);
  }
}

template <class T>
BinaryLoop binary(Opcode op) {
  switch (op) {
    case Opcode::add:
      return
          [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, [](T x, T y) { return x + y; }); };
    case Opcode::subtract:
      return
          [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, [](T x, T y) { return x - y; }); };
    case Opcode::multiply:
      return
          [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, [](T x, T y) { return x * y; }); };
    case Opcode::divide:
      return
          [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, [](T x, T y) { return x / y; }); };
    case Opcode::maximum:
      return [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, ieeeMaximum<T>); };
    case Opcode::minimum:
      return [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, ieeeMinimum<T>); };
    case Opcode::remainder:
      return viaDouble2<T, math::fmod>;
    case Opcode::power:
      return viaDouble2<T, math::pow>;
    case Opcode::atan2:
      return viaDouble2<T, math::atan2>;
    case Opcode::chlo_zeta:
      return viaDouble2<T, math::zeta>;
    case Opcode::chlo_polygamma:
      return viaDouble2<T, math::polygamma>;
    case Opcode::chlo_next_after:
      return [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, nextAfter<T>); };
    case Opcode::complex:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, Complex<T>>(a, b, o, n, [](T x, T y) { return Complex<T>{x, y}; });
      };
    default:
      return nullptr;
  }
}

}  // namespace

UnaryLoop findFloatUnary(Opcode op, ElementType type) {
  if (type != ElementType::kF32) return unary<double>(op);
  if (const UnaryLoop vector = findVectorUnary(op)) return vector;
  return unary<float>(op);
}

BinaryLoop findFloatBinary(Opcode op, ElementType type) {
  if (type != ElementType::kF32) return binary<double>(op);
  if (const BinaryLoop vector = findVectorBinary(op)) return vector;
  return binary<float>(op);
}

}  // namespace tpu::eval
