// Comparisons, conversions between native types, and the choice of a loop by class of type.
#include <bit>
#include <limits>
#include <type_traits>

#include "loops.h"

namespace tpu::eval {
namespace {

using hlo::Comparison;

template <class T, class K>
BinaryLoop compareBy(Comparison direction) {
  // K(x) gives the value that is compared.
  switch (direction) {
    case Comparison::kEq:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, uint8_t>(a, b, o, n, [](T x, T y) { return K()(x) == K()(y); });
      };
    case Comparison::kNe:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, uint8_t>(a, b, o, n, [](T x, T y) { return K()(x) != K()(y); });
      };
    case Comparison::kLt:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, uint8_t>(a, b, o, n, [](T x, T y) { return K()(x) < K()(y); });
      };
    case Comparison::kLe:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, uint8_t>(a, b, o, n, [](T x, T y) { return K()(x) <= K()(y); });
      };
    case Comparison::kGt:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, uint8_t>(a, b, o, n, [](T x, T y) { return K()(x) > K()(y); });
      };
    case Comparison::kGe:
      return [](auto a, auto b, auto o, auto n) {
        mapBinary<T, uint8_t>(a, b, o, n, [](T x, T y) { return K()(x) >= K()(y); });
      };
  }
  return nullptr;
}

struct Plain {
  template <class T>
  T operator()(T x) const {
    return x;
  }
};

// IEEE 754's total order as an integer: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
struct TotalOrder {
  int32_t operator()(float x) const {
    const int32_t i = std::bit_cast<int32_t>(x);
    return i < 0 ? i ^ std::numeric_limits<int32_t>::max() : i;
  }
  int64_t operator()(double x) const {
    const int64_t i = std::bit_cast<int64_t>(x);
    return i < 0 ? i ^ std::numeric_limits<int64_t>::max() : i;
  }
};

template <class T>
BinaryLoop compareComplex(Comparison direction) {
  using Z = Complex<T>;
  if (direction == Comparison::kEq)
    return [](auto a, auto b, auto o, auto n) {
      mapBinary<Z, uint8_t>(a, b, o, n, [](Z x, Z y) { return x.re == y.re && x.im == y.im; });
    };
  if (direction == Comparison::kNe)
    return [](auto a, auto b, auto o, auto n) {
      mapBinary<Z, uint8_t>(a, b, o, n, [](Z x, Z y) { return x.re != y.re || x.im != y.im; });
    };
  return nullptr;
}

// ---------------------------------------------------------------- conversions
struct Pred {
  uint8_t value;
};
template <class T>
constexpr bool kIsComplex = false;
template <class T>
constexpr bool kIsComplex<Complex<T>> = true;

// Floats go to integers by truncation; out of range saturates, NaN becomes 0.
template <class From, class To>
To floatToInteger(From x) {
  if (x != x) return 0;
  if (x <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (x >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

template <class To, class From>
To convertOne(From x) {
  if constexpr (std::is_same_v<From, Pred>) {
    return convertOne<To>(x.value);
  } else if constexpr (kIsComplex<From> && !kIsComplex<To>) {
    return convertOne<To>(x.re);
  } else if constexpr (kIsComplex<From>) {
    using T = decltype(To().re);
    return To{static_cast<T>(x.re), static_cast<T>(x.im)};
  } else if constexpr (kIsComplex<To>) {
    using T = decltype(To().re);
    return To{static_cast<T>(x), 0};
  } else if constexpr (std::is_same_v<To, Pred>) {
    return Pred{static_cast<uint8_t>(x != 0)};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return floatToInteger<From, To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class From>
UnaryLoop convertFrom(ElementType to) {
#define TPU_TO(type, T)   \
  case ElementType::type: \
    return [](auto a, auto o, auto n) { mapUnary<From, T>(a, o, n, convertOne<T, From>); };
  switch (to) {
    TPU_TO(kPred, Pred)
    TPU_TO(kS8, int8_t)
    TPU_TO(kS16, int16_t)
    TPU_TO(kS32, int32_t)
    TPU_TO(kS64, int64_t)
    TPU_TO(kU8, uint8_t)
    TPU_TO(kU16, uint16_t)
    TPU_TO(kU32, uint32_t)
    TPU_TO(kU64, uint64_t)
    TPU_TO(kF32, float)
    TPU_TO(kF64, double)
    TPU_TO(kC64, Complex<float>)
    TPU_TO(kC128, Complex<double>)
    default:
      return nullptr;
  }
#undef TPU_TO
}

}  // namespace

BinaryLoop findCompare(Comparison direction, ElementType type, bool total_order) {
  switch (type) {
    case ElementType::kPred:
    case ElementType::kU8:
      return compareBy<uint8_t, Plain>(direction);
    case ElementType::kS8:
      return compareBy<int8_t, Plain>(direction);
    case ElementType::kS16:
      return compareBy<int16_t, Plain>(direction);
    case ElementType::kU16:
      return compareBy<uint16_t, Plain>(direction);
    case ElementType::kS32:
      return compareBy<int32_t, Plain>(direction);
    case ElementType::kU32:
      return compareBy<uint32_t, Plain>(direction);
    case ElementType::kS64:
      return compareBy<int64_t, Plain>(direction);
    case ElementType::kU64:
      return compareBy<uint64_t, Plain>(direction);
    case ElementType::kF32:
      return total_order ? compareBy<float, TotalOrder>(direction) : compareBy<float, Plain>(direction);
    case ElementType::kF64:
      return total_order ? compareBy<double, TotalOrder>(direction) : compareBy<double, Plain>(direction);
    case ElementType::kC64:
      return compareComplex<float>(direction);
    case ElementType::kC128:
      return compareComplex<double>(direction);
    default:
      return nullptr;
  }
}

UnaryLoop findConvert(ElementType from, ElementType to) {
  switch (from) {
    case ElementType::kPred:
      return convertFrom<Pred>(to);
    case ElementType::kS8:
      return convertFrom<int8_t>(to);
    case ElementType::kS16:
      return convertFrom<int16_t>(to);
    case ElementType::kS32:
      return convertFrom<int32_t>(to);
    case ElementType::kS64:
      return convertFrom<int64_t>(to);
    case ElementType::kU8:
      return convertFrom<uint8_t>(to);
    case ElementType::kU16:
      return convertFrom<uint16_t>(to);
    case ElementType::kU32:
      return convertFrom<uint32_t>(to);
    case ElementType::kU64:
      return convertFrom<uint64_t>(to);
    case ElementType::kF32:
      return convertFrom<float>(to);
    case ElementType::kF64:
      return convertFrom<double>(to);
    case ElementType::kC64:
      return convertFrom<Complex<float>>(to);
    case ElementType::kC128:
      return convertFrom<Complex<double>>(to);
    default:
      return nullptr;
  }
}

namespace {

struct Bytes16 {
  uint64_t lo, hi;
};

template <class T>
void selectLoop(const uint8_t* pred, const uint8_t* on_true, const uint8_t* on_false, uint8_t* out, int64_t n) {
  const T* t = reinterpret_cast<const T*>(on_true);
  const T* f = reinterpret_cast<const T*>(on_false);
  T* o = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const T x = t[i], y = f[i];
    o[i] = pred[i] ? x : y;
  }
}

}  // namespace

SelectLoop findSelect(int width) {
  switch (width) {
    case 1:
      return selectLoop<uint8_t>;
    case 2:
      return selectLoop<uint16_t>;
    case 4:
      return selectLoop<uint32_t>;
    case 8:
      return selectLoop<uint64_t>;
    default:
      return selectLoop<Bytes16>;
  }
}

UnaryLoop findUnary(hlo::Opcode op, ElementType type) {
  if (isComplex(type)) return findComplexUnary(op, type);
  return isFloat(type) ? findFloatUnary(op, type) : findIntegerUnary(op, type);
}

BinaryLoop findBinary(hlo::Opcode op, ElementType type) {
  if (isComplex(type)) return findComplexBinary(op, type);
  return isFloat(type) ? findFloatBinary(op, type) : findIntegerBinary(op, type);
}

}  // namespace tpu::eval
