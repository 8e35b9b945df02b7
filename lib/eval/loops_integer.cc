// Integer and pred loops: two's complement with wrap-around. Division by zero gives all ones, its remainder
// the dividend; the smallest value divided by -1 wraps to itself. Shifts by the width or more give 0, or the
// sign.
#include <bit>
#include <type_traits>

#include "loops.h"

namespace tpu::eval {
namespace {

using hlo::Opcode;

template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;  // arithmetic that wraps without promotion to int

template <class T>
bool isNegative(T x) {
  if constexpr (std::is_signed_v<T>) return x < 0;
  return false;
}

template <class T>
T divide(T x, T y) {
  if (y == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (y == -1) return static_cast<T>(Wide<T>(0) - Wide<T>(x));
  }
  return static_cast<T>(x / y);
}

template <class T>
T remainder(T x, T y) {
  if (y == 0) return x;
  if constexpr (std::is_signed_v<T>) {
    if (y == -1) return 0;
  }
  return static_cast<T>(x % y);
}

// Exponents below zero: 0 unless the base is 1 or -1.
template <class T>
T power(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
  }
  Wide<T> base = static_cast<Wide<T>>(x), result = 1;
  for (std::make_unsigned_t<T> e = static_cast<std::make_unsigned_t<T>>(y); e != 0; e >>= 1) {
    if (e & 1) result *= base;
    base *= base;
  }
  return static_cast<T>(result);
}

template <class T>
T shiftLeft(T x, T y) {
  using U = std::make_unsigned_t<T>;
  return static_cast<U>(y) >= sizeof(T) * 8 ? T(0) : static_cast<T>(static_cast<Wide<T>>(x) << y);
}

template <class T>
T shiftRightLogical(T x, T y) {
  using U = std::make_unsigned_t<T>;
  return static_cast<U>(y) >= sizeof(T) * 8 ? T(0) : static_cast<T>(static_cast<U>(x) >> y);
}

template <class T>
T shiftRightArithmetic(T x, T y) {
  using U = std::make_unsigned_t<T>;
  using S = std::make_signed_t<T>;
  const int by = static_cast<U>(y) >= sizeof(T) * 8 ? sizeof(T) * 8 - 1 : static_cast<int>(y);
  return static_cast<T>(static_cast<S>(x) >> by);
}

template <class T>
UnaryLoop unary(Opcode op) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case Opcode::abs:
      return [](auto a, auto o, auto n) {
        mapUnary<T, T>(a, o, n,
                       [](T x) { return isNegative(x) ? static_cast<T>(Wide<T>(0) - Wide<T>(x)) : x; });
      };
    case Opcode::negate:
      return [](auto a, auto o, auto n) {
        mapUnary<T, T>(a, o, n, [](T x) { return static_cast<T>(Wide<T>(0) - Wide<T>(x)); });
      };
    case Opcode::not_:
      return [](auto a, auto o, auto n) { mapUnary<T, T>(a, o, n, [](T x) { return static_cast<T>(~x); }); };
    case Opcode::sign:
      return [](auto a, auto o, auto n) {
        mapUnary<T, T>(a, o, n, [](T x) { return T(isNegative(x) ? -1 : x != 0); });
      };
    case Opcode::popcnt:
      return
          [](auto a, auto o, auto n) { mapUnary<T, T>(a, o, n, [](T x) { return T(std::popcount(U(x))); }); };
    case Opcode::count_leading_zeros:
      return [](auto a, auto o, auto n) {
        mapUnary<T, T>(a, o, n, [](T x) { return T(std::countl_zero(U(x))); });
      };
    case Opcode::chlo_square:
      return [](auto a, auto o, auto n) {
        mapUnary<T, T>(a, o, n, [](T x) { return static_cast<T>(Wide<T>(x) * Wide<T>(x)); });
      };
    default:
      return nullptr;
  }
}

template <class T>
BinaryLoop binary(Opcode op) {
  switch (op) {
    case Opcode::add:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, T>(a, b, o, n, [](T x, T y) { return static_cast<T>(Wide<T>(x) + Wide<T>(y)); });
      };
    case Opcode::subtract:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, T>(a, b, o, n, [](T x, T y) { return static_cast<T>(Wide<T>(x) - Wide<T>(y)); });
      };
    case Opcode::multiply:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, T>(a, b, o, n, [](T x, T y) { return static_cast<T>(Wide<T>(x) * Wide<T>(y)); });
      };
    case Opcode::chlo_mulhi:
      return [](auto a, auto b, auto o, auto n) {
        using D = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
        mapBinary<T, T>(a, b, o, n,
                        [](T x, T y) { return static_cast<T>((D(x) * D(y)) >> (8 * sizeof(T))); });
      };
    case Opcode::divide:
      return [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, divide<T>); };
    case Opcode::remainder:
      return [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, remainder<T>); };
    case Opcode::power:
      return [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, power<T>); };
    case Opcode::maximum:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, T>(a, b, o, n, [](T x, T y) { return x > y ? x : y; });
      };
    case Opcode::minimum:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, T>(a, b, o, n, [](T x, T y) { return x < y ? x : y; });
      };
    case Opcode::and_:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, T>(a, b, o, n, [](T x, T y) { return T(x & y); });
      };
    case Opcode::or_:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, T>(a, b, o, n, [](T x, T y) { return T(x | y); });
      };
    case Opcode::xor_:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, T>(a, b, o, n, [](T x, T y) { return T(x ^ y); });
      };
    case Opcode::shift_left:
      return [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, shiftLeft<T>); };
    case Opcode::shift_right_logical:
      return [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, shiftRightLogical<T>); };
    case Opcode::shift_right_arithmetic:
      return [](auto a, auto b, auto o, auto n) { mapBinary<T, T>(a, b, o, n, shiftRightArithmetic<T>); };
    default:
      return nullptr;
  }
}

BinaryLoop predBinary(Opcode op) {
  using T = uint8_t;
  switch (op) {
    case Opcode::add:
    case Opcode::or_:
    case Opcode::maximum:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, T>(a, b, o, n, [](T x, T y) { return T(x | y); });
      };
    case Opcode::multiply:
    case Opcode::and_:
    case Opcode::minimum:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, T>(a, b, o, n, [](T x, T y) { return T(x & y); });
      };
    case Opcode::xor_:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, T>(a, b, o, n, [](T x, T y) { return T(x ^ y); });
      };
    default:
      return nullptr;
  }
}

}  // namespace

UnaryLoop findIntegerUnary(Opcode op, ElementType type) {
  switch (type) {
    case ElementType::kPred:
      if (op != Opcode::not_) return nullptr;
      return
          [](auto a, auto o, auto n) { mapUnary<uint8_t, uint8_t>(a, o, n, [](uint8_t x) { return !x; }); };
    case ElementType::kS8:
      return unary<int8_t>(op);
    case ElementType::kS16:
      return unary<int16_t>(op);
    case ElementType::kS32:
      return unary<int32_t>(op);
    case ElementType::kS64:
      return unary<int64_t>(op);
    case ElementType::kU8:
      return unary<uint8_t>(op);
    case ElementType::kU16:
      return unary<uint16_t>(op);
    case ElementType::kU32:
      return unary<uint32_t>(op);
    case ElementType::kU64:
      return unary<uint64_t>(op);
    default:
      return nullptr;
  }
}

BinaryLoop findIntegerBinary(Opcode op, ElementType type) {
  switch (type) {
    case ElementType::kPred:
      return predBinary(op);
    case ElementType::kS8:
      return binary<int8_t>(op);
    case ElementType::kS16:
      return binary<int16_t>(op);
    case ElementType::kS32:
      return binary<int32_t>(op);
    case ElementType::kS64:
      return binary<int64_t>(op);
    case ElementType::kU8:
      return binary<uint8_t>(op);
    case ElementType::kU16:
      return binary<uint16_t>(op);
    case ElementType::kU32:
      return binary<uint32_t>(op);
    case ElementType::kU64:
      return binary<uint64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace tpu::eval
