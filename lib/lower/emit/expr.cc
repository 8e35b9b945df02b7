// Elementwise ops on registers: which instruction or function each HLO op is on each type.
#include "expr.h"

#include <bit>

#include "math.h"

namespace tpu::lower::emit {
namespace {

using hlo::Opcode;

int widthOf(ElementType t) { return t == ElementType::kPred ? 8 : elementBits(t); }
bool isNarrowInt(ElementType t) { return isInteger(t) && elementBits(t) < 32; }

// Back to the canonical form of a narrow integer after wrapping arithmetic.
I wrap(I x, ElementType t) {
  if (!isNarrowInt(t)) return x;
  const uint32_t bits = static_cast<uint32_t>(elementBits(t));
  if (isUnsigned(t)) return x & ((1u << bits) - 1);
  return sra(x << (32 - bits), 32 - bits);
}

F reducePrecision(F x, int exponent_bits, int mantissa_bits) {
  I u = asI(x);
  if (mantissa_bits < 23) {
    const uint32_t drop = static_cast<uint32_t>(23 - mantissa_bits);
    const I even = (u >> drop) & 1u;
    u = (u + (even + ((1u << (drop - 1)) - 1))) & ~((1u << drop) - 1);
  }
  if (exponent_bits < 8) {
    // Exponents beyond the target's range become infinity, below it zero.
    const uint32_t bias = (1u << (exponent_bits - 1)) - 1;
    const uint32_t max_exponent = (127 + bias) << 23, min_exponent = (127 - bias) << 23;
    const I exponent = u & 0x7f800000u, sign = u & 0x80000000u;
    u = select(gt(exponent, max_exponent), sign | 0x7f800000u, u);
    u = select(le(exponent, min_exponent), sign, u);
  }
  return select(ne(x, x), x, asF(u));
}

F roundAwayFromZero(F x) {
  const F t = trunc(x);
  const F away = t + withSign(constant(x.e, 1.0f), signBit(x));
  const F r = select(ge(abs(x - t), 0.5f), away, t);
  // Results of small arguments keep their sign.
  return asF(asI(r) | signBit(x));
}

F signOf(F x) {
  const F one = withSign(constant(x.e, 1.0f), signBit(x));
  return select(eq(x, 0.0f) | ne(x, x), x, one);
}

std::optional<F> floatUnary(const ExprNode& n, F x) {
  switch (n.op) {
    case Opcode::abs: return abs(x);
    case Opcode::cbrt: return cubeRoot(x);
    case Opcode::ceil: return ceil(x);
    case Opcode::cosine: return cosine(x);
    case Opcode::exponential: return exponential(x);
    case Opcode::exponential_minus_one: return exponentialMinusOne(x);
    case Opcode::floor: return floor(x);
    case Opcode::log: return logarithm(x);
    case Opcode::log_plus_one: return logOnePlus(x);
    case Opcode::logistic: return logistic(x);
    case Opcode::negate: return -x;
    case Opcode::round_nearest_afz: return roundAwayFromZero(x);
    case Opcode::round_nearest_even: return roundEven(x);
    case Opcode::rsqrt: return reciprocalSquareRoot(x);
    case Opcode::sign: return signOf(x);
    case Opcode::sine: return sine(x);
    case Opcode::sqrt: return squareRoot(x);
    case Opcode::tan: return tangent(x);
    case Opcode::tanh: return hyperbolicTangent(x);
    case Opcode::chlo_square: return x * x;
    case Opcode::chlo_tan: return tangent(x);
    case Opcode::chlo_erf: return errorFunction(x);
    case Opcode::chlo_erf_inv: return inverseErrorFunction(x);
    case Opcode::reduce_precision: {
      const llvm::StringRef d = n.detail;
      int e = 8, m = 23;
      d.split(',').first.trim().getAsInteger(10, e);
      d.split(',').second.trim().getAsInteger(10, m);
      return reducePrecision(x, e, m);
    }
    default: return std::nullopt;
  }
}
std::optional<F> floatBinary(Opcode op, F a, F b) {
  switch (op) {
    case Opcode::add: return a + b;
    case Opcode::atan2: return arcTangent2(a, b);
    case Opcode::divide: return divide(a, b);
    case Opcode::maximum: return max(a, b);
    case Opcode::minimum: return min(a, b);
    case Opcode::multiply: return a * b;
    case Opcode::power: return power(a, b);
    case Opcode::remainder: return remainder(a, b);
    case Opcode::subtract: return a - b;
    default: return std::nullopt;
  }
}
// Ops whose result of 16-bit operands needs no rounding.
bool isExact(Opcode op) {
  switch (op) {
    case Opcode::abs: case Opcode::ceil: case Opcode::floor: case Opcode::negate: case Opcode::round_nearest_afz:
    case Opcode::round_nearest_even: case Opcode::sign: case Opcode::maximum: case Opcode::minimum:
    case Opcode::remainder: return true;
    default: return false;
  }
}

std::optional<I> intUnary(Opcode op, I x, ElementType t) {
  switch (op) {
    case Opcode::abs: return isUnsigned(t) ? x : smax(x, 0u - x);
    case Opcode::negate: return 0u - x;
    case Opcode::not_: return x ^ 0xffffffffu;
    case Opcode::popcnt: return popCount(isNarrowInt(t) && isSigned(t) ? x & ((1u << elementBits(t)) - 1) : x);
    case Opcode::count_leading_zeros: {
      const uint32_t spare = static_cast<uint32_t>(32 - widthOf(t));
      return spare ? clz(x & ((1u << widthOf(t)) - 1)) - spare : clz(x);
    }
    case Opcode::sign: return isUnsigned(t) ? umin(x, 1u) : smax(smin(x, 1u), 0xffffffffu);
    case Opcode::chlo_square: return x * x;
    default: return std::nullopt;
  }
}
std::optional<I> shift(Opcode op, I a, I b, ElementType t) {
  const uint32_t width = static_cast<uint32_t>(widthOf(t));
  const I amount = width == 32 ? b : umin(b, 32u);  // a negative amount is as good as a large one
  switch (op) {
    case Opcode::shift_left: return a << amount;
    case Opcode::shift_right_arithmetic: {
      // An unsigned narrow value is shifted as a signed one of its width.
      if (isUnsigned(t) && width < 32) return sra(sra(a << (32 - width), 32 - width), amount);
      return sra(a, amount);
    }
    case Opcode::shift_right_logical: {
      const I bits = isSigned(t) && width < 32 ? a & ((1u << width) - 1) : a;
      return bits >> amount;
    }
    default: return std::nullopt;
  }
}
std::optional<I> intBinary(Opcode op, I a, I b, ElementType t) {
  const bool is_unsigned = isUnsigned(t);
  switch (op) {
    case Opcode::add: return a + b;
    case Opcode::subtract: return a - b;
    case Opcode::multiply: return a * b;
    case Opcode::divide: return is_unsigned ? divideU(a, b) : divideS(a, b);
    case Opcode::remainder: return is_unsigned ? remainderU(a, b) : remainderS(a, b);
    case Opcode::and_: return a & b;
    case Opcode::or_: return a | b;
    case Opcode::xor_: return a ^ b;
    case Opcode::maximum: return is_unsigned ? umax(a, b) : smax(a, b);
    case Opcode::minimum: return is_unsigned ? umin(a, b) : smin(a, b);
    case Opcode::power: return integerPower(a, b, !is_unsigned);
    default: return shift(op, a, b, t);
  }
}
std::optional<B> predBinary(Opcode op, B a, B b) {
  switch (op) {
    case Opcode::add: case Opcode::or_: case Opcode::maximum: return a | b;
    case Opcode::multiply: case Opcode::and_: case Opcode::minimum: return a & b;
    case Opcode::xor_: return a ^ b;
    default: return std::nullopt;
  }
}

template <class T>
B compareSigned(llvm::StringRef direction, T a, T b) {
  if (direction == "EQ") return eq(a, b);
  if (direction == "NE") return ne(a, b);
  if (direction == "LT") return lt(a, b);
  if (direction == "LE") return le(a, b);
  if (direction == "GT") return gt(a, b);
  return ge(a, b);
}
B compareUnsigned(llvm::StringRef direction, I a, I b) {
  if (direction == "LT") return ltu(a, b);
  if (direction == "LE") return leu(a, b);
  if (direction == "GT") return gtu(a, b);
  if (direction == "GE") return geu(a, b);
  return compareSigned(direction, a, b);
}
// Floats in total order compare as integers once the magnitude bits of negative ones are flipped.
I orderKey(F x) { return asI(x) ^ (sra(asI(x), 31u) & 0x7fffffffu); }

B compare(Vec& e, llvm::StringRef detail, Val a, Val b, ElementType t) {
  const V x = asVector(e, a), y = asVector(e, b);
  const auto [direction, kind] = detail.split(',');
  if (isFloat(t) && kind == "TOTALORDER") return compareSigned(direction, orderKey({&e, x}), orderKey({&e, y}));
  if (isFloat(t)) return compareSigned(direction, F{&e, x}, F{&e, y});
  if (isSigned(t)) return compareSigned(direction, I{&e, x}, I{&e, y});
  return compareUnsigned(direction, I{&e, x}, I{&e, y});
}

// f32 to a narrow integer saturates; NaN becomes 0.
I floatToInt(F x, ElementType to) {
  if (to == ElementType::kU32) return toU32(x);
  I y = toS32(x);
  if (!isNarrowInt(to)) return y;
  const int bits = elementBits(to);
  const int32_t low = isUnsigned(to) ? 0 : -(1 << (bits - 1));
  const int32_t high = isUnsigned(to) ? (1 << bits) - 1 : (1 << (bits - 1)) - 1;
  return smin(smax(y, static_cast<uint32_t>(low)), static_cast<uint32_t>(high));
}
// 32-bit integers to bf16 with one rounding: beyond 2^24 the low byte is folded into a sticky bit first.
F intToBf16(I x, ElementType from) {
  const bool is_unsigned = isUnsigned(from);
  const auto to_f32 = [&](I y) { return is_unsigned ? fromU32(y) : fromS32(y); };
  if (elementBits(from) < 32) return roundBf16(to_f32(x));
  const I low = x & 0xffu;
  const I sticky = (x - low) | (umin(low, 1u) << 7u);
  const F plain = to_f32(x);
  return roundBf16(select(ge(abs(plain), 16777216.0f), to_f32(sticky), plain));
}
Val convert(Vec& e, Val a, ElementType from, ElementType to, bool wide) {
  if (from == to) return a;
  if (to == ElementType::kPred) {
    const V x = asVector(e, a);
    return Val::of(isFloat(from) ? ne(F{&e, x}, 0.0f).m : ne(I{&e, x}, 0u).m);
  }
  if (from == ElementType::kPred) {
    if (!isFloat(to)) return Val::of(asVector(e, a));
    return Val::of(select(B{&e, asMask(e, a)}, 1.0f, 0.0f).v);
  }
  const V x = asVector(e, a);
  if (isFloat(from)) {
    if (!isFloat(to)) return Val::of(floatToInt({&e, x}, to).v);
    return to == ElementType::kBF16 && !wide ? Val::of(roundBf16({&e, x}).v) : a;
  }
  if (isFloat(to)) {
    const I i{&e, x};
    if (to == ElementType::kBF16 && !wide) return Val::of(intToBf16(i, from).v);
    return Val::of((isUnsigned(from) ? fromU32(i) : fromS32(i)).v);
  }
  return Val::of(wrap({&e, x}, to).v);
}

Val selectValue(Vec& e, Val p, Val a, Val b, ElementType t) {
  const B m{&e, asMask(e, p)};
  if (t == ElementType::kPred) {
    const B x{&e, asMask(e, a)}, y{&e, asMask(e, b)};
    return Val::of(((m & x) | ((!m) & y)).m);
  }
  return Val::of(e.select(m.m, asVector(e, a), asVector(e, b)));
}

Val clampValue(Vec& e, Val low, Val x, Val high, ElementType t) {
  const V l = asVector(e, low), v = asVector(e, x), h = asVector(e, high);
  if (isFloat(t)) return Val::of(min(max(F{&e, v}, F{&e, l}), F{&e, h}).v);
  if (isSigned(t)) return Val::of(smin(smax(I{&e, v}, I{&e, l}), I{&e, h}).v);
  return Val::of(umin(umax(I{&e, v}, I{&e, l}), I{&e, h}).v);
}

}  // namespace

V asVector(Vec& e, Val x) {
  if (x.v >= 0) return {x.v};
  return e.select(M{x.m}, e.bits(1), e.bits(0));
}
M asMask(Vec& e, Val x) {
  if (x.m >= 0) return {x.m};
  return ne(I{&e, V{x.v}}, 0u).m;
}

uint32_t registerBits(ElementType type, uint64_t host_bits) {
  const uint32_t w = static_cast<uint32_t>(host_bits);
  if (type == ElementType::kPred) return (w & 0xff) != 0;
  if (type == ElementType::kBF16) return w << 16;
  const int bits = elementBits(type);
  if (bits >= 32) return w;
  if (isSigned(type)) return static_cast<uint32_t>(static_cast<int32_t>(w << (32 - bits)) >> (32 - bits));
  return w & ((1u << bits) - 1);
}

bool isComputable(ElementType type) {
  switch (type) {
    case ElementType::kPred: case ElementType::kS8: case ElementType::kU8: case ElementType::kS16: case ElementType::kU16:
    case ElementType::kS32: case ElementType::kU32: case ElementType::kBF16: case ElementType::kF32: return true;
    default: return false;
  }
}

Val applyOp(Vec& e, const ExprNode& n, llvm::ArrayRef<Val> args, llvm::ArrayRef<ElementType> types, bool wide) {
  using hlo::Opcode;
  const ElementType t = n.type;
  const auto round = [&](F x) {
    return Val::of(t == ElementType::kBF16 && !wide && !isExact(n.op) ? roundBf16(x).v : x.v);
  };
  switch (n.op) {
    case Opcode::convert: return convert(e, args[0], types[0], t, wide);
    case Opcode::bitcast_convert: return args[0];
    case Opcode::compare: return Val::of(compare(e, n.detail, args[0], args[1], types[0]).m);
    case Opcode::select: return selectValue(e, args[0], args[1], args[2], t);
    case Opcode::clamp: return clampValue(e, args[0], args[1], args[2], t);
    case Opcode::is_finite: return Val::of(lt(abs(F{&e, asVector(e, args[0])}), std::bit_cast<float>(0x7f800000u)).m);
    default: break;
  }
  if (t == ElementType::kPred) {
    const B a{&e, asMask(e, args[0])};
    if (n.op == Opcode::not_) return Val::of((!a).m);
    return Val::of(predBinary(n.op, a, {&e, asMask(e, args[1])})->m);
  }
  const V a = asVector(e, args[0]);
  if (isFloat(t)) {
    if (args.size() == 1) return round(*floatUnary(n, {&e, a}));
    return round(*floatBinary(n.op, {&e, a}, {&e, asVector(e, args[1])}));
  }
  if (args.size() == 1) return Val::of(wrap(*intUnary(n.op, {&e, a}, t), t).v);
  return Val::of(wrap(*intBinary(n.op, {&e, a}, {&e, asVector(e, args[1])}, t), t).v);
}

std::vector<Val> evaluate(Vec& e, llvm::ArrayRef<ExprNode> nodes, llvm::ArrayRef<int> wanted, bool wide,
                          llvm::function_ref<Val(const ExprNode&)> leaf) {
  std::vector<bool> needed(nodes.size(), false);
  for (int w : wanted) needed[w] = true;
  for (size_t i = nodes.size(); i-- > 0;)
    if (needed[i])
      for (int a : nodes[i].args) needed[a] = true;
  std::vector<Val> values(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ExprNode& n = nodes[i];
    if (!needed[i]) continue;
    e.code().setOp(n.op_slot);
    if (n.kind == ExprNode::kConstant) {
      values[i] = Val::of(e.bits(registerBits(n.type, n.bits)));
    } else if (n.kind != ExprNode::kOp) {
      values[i] = leaf(n);
    } else {
      llvm::SmallVector<Val, 3> args;
      llvm::SmallVector<ElementType, 3> types;
      for (int a : n.args) {
        args.push_back(values[a]);
        types.push_back(nodes[a].type);
      }
      values[i] = applyOp(e, n, args, types, wide);
    }
  }
  std::vector<Val> out;
  for (int w : wanted) out.push_back(values[w]);
  return out;
}

}  // namespace tpu::lower::emit
