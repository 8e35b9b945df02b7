// Elementwise ops on whole tensors, in blocks that stay in the cache: operands are widened to the type that
// arithmetic is done in, the loop runs, the result is narrowed.
#include <algorithm>
#include <bit>

#include "loops.h"
#include "native.h"
#include "tpu/eval/math.h"
#include "tpu/support/parallel.h"
#include "values.h"

namespace tpu::eval {
namespace {

constexpr int64_t kBlock = 1024;  // elements widened at a time; at most 16 bytes each
constexpr int64_t kParallelChunk = 1 << 16;

struct Block {
  alignas(64) uint8_t bytes[kBlock * 16];
};

// Only these ops see the bits above a 2- or 4-bit value.
bool seesHighBits(Opcode op) {
  return op == Opcode::popcnt || op == Opcode::count_leading_zeros || op == Opcode::shift_right_logical;
}

void maskHighBits(ElementType type, uint8_t* bytes, int64_t n) {
  const uint8_t mask = static_cast<uint8_t>((1u << elementBits(type)) - 1);
  for (int64_t i = 0; i < n; ++i) bytes[i] &= mask;
}

class Widened {
 public:
  Widened(const HostTensor& t, Opcode op)
      : type_(t.element),
        native_(isNative(type_)),
        width_(hostBytes(type_)),
        base_(t.bytes.data()),
        mask_(seesHighBits(op) && isInteger(type_)) {}
  const uint8_t* at(int64_t first, int64_t n, Block& block) const {
    if (native_) return base_ + first * width_;
    widen(type_, base_ + first * width_, block.bytes, n);
    if (mask_) maskHighBits(type_, block.bytes, n);
    return block.bytes;
  }
  bool native() const { return native_; }

 private:
  ElementType type_;
  bool native_;
  int64_t width_;
  const uint8_t* base_;
  bool mask_;
};

// In-place where the operand is ours alone and elements have the same size.
Tensor resultFor(Tensor& operand, ElementType element) {
  if (operand.use_count() == 1 && hostBytes(operand->element) == hostBytes(element)) {
    Tensor out = operand;  // the operand stays readable through `operand`
    return out;
  }
  return rawTensor(element, operand->dims);
}

void finishCount(Opcode op, ElementType type, uint8_t* out, int64_t n) {
  if (op != Opcode::count_leading_zeros || elementBits(type) >= 8) return;
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(out[i] - (8 - elementBits(type)));
}

Tensor applyUnary(Opcode op, UnaryLoop loop, Tensor& a, ElementType element) {
  Tensor out = resultFor(a, element);
  const Widened wide(*a, op);
  const bool direct = isNative(element);
  const int64_t width = hostBytes(element), n = a->numElements();
  uint8_t* base = out->bytes.data();
  const ElementType from = a->element;
  forChunks(n, [&](int64_t first, int64_t count) {
    if (direct && wide.native()) {
      Block none;
      return loop(wide.at(first, count, none), base + first * width, count);
    }
    Block in, result;
    for (int64_t i = first; i < first + count; i += kBlock) {
      const int64_t m = std::min(kBlock, first + count - i);
      uint8_t* target = direct ? base + i * width : result.bytes;
      loop(wide.at(i, m, in), target, m);
      finishCount(op, from, target, m);
      if (!direct) narrow(element, result.bytes, base + i * width, m);
    }
  });
  out->element = element;
  return out;
}

Tensor applyBinary(Opcode op, BinaryLoop loop, Tensor& a, Tensor& b, ElementType element) {
  Tensor out = hostBytes(a->element) == hostBytes(element) && a.use_count() == 1 ? resultFor(a, element)
                                                                                 : resultFor(b, element);
  const Widened left(*a, op), right(*b, op);
  const bool direct = isNative(element);
  const int64_t width = hostBytes(element), n = a->numElements();
  uint8_t* base = out->bytes.data();
  forChunks(n, [&](int64_t first, int64_t count) {
    Block in_a, in_b, result;
    const int64_t step = direct && left.native() && right.native() ? count : kBlock;
    for (int64_t i = first; i < first + count; i += step) {
      const int64_t m = std::min(step, first + count - i);
      uint8_t* target = direct ? base + i * width : result.bytes;
      loop(left.at(i, m, in_a), right.at(i, m, in_b), target, m);
      if (!direct) narrow(element, result.bytes, base + i * width, m);
    }
  });
  out->element = element;
  return out;
}

// ---------------------------------------------------------------- select, clamp, reduce_precision
Outcome select(Call& call) {
  if (call.in[0]->numElements() == 1 && call.in[0]->rank() == 0)
    return Tensors{call.in[call.in[0]->bytes[0] ? 1 : 2]};
  const Tensor out = rawTensor(call.in[1]->element, call.in[1]->dims);
  const int64_t width = hostBytes(out->element);
  const SelectLoop loop = findSelect(static_cast<int>(width));
  forChunks(out->numElements(), [&](int64_t first, int64_t count) {
    loop(call.in[0]->bytes.data() + first, call.in[1]->bytes.data() + first * width,
         call.in[2]->bytes.data() + first * width, out->bytes.data() + first * width, count);
  });
  return Tensors{out};
}

Outcome clamp(Call& call) {
  const ElementType type = call.in[1]->element;
  const BinaryLoop lower = findBinary(Opcode::maximum, nativeType(type)),
                   upper = findBinary(Opcode::minimum, nativeType(type));
  if (!lower || !upper) return unsupported(call, llvm::Twine("on ") + elementTypeName(type));
  Tensor low = splatTo(call.in[0], call.in[1]->dims), high = splatTo(call.in[2], call.in[1]->dims);
  Tensor value = call.in[1];
  Tensor raised = applyBinary(Opcode::maximum, lower, value, low, type);
  return Tensors{applyBinary(Opcode::minimum, upper, raised, high, type)};
}

// Rounds an f64 to `mantissa` bits (ties to even) and to the exponent range of `exponent` bits, keeping
// infinities and NaN.
double reducePrecision(double x, int exponent, int mantissa) {
  if (x - x != 0) return x;
  uint64_t u = std::bit_cast<uint64_t>(x);
  const int drop = 52 - mantissa;
  if (drop > 0) {
    const uint64_t half = 1ull << (drop - 1);
    u += half - 1 + (u >> drop & 1);
    u &= ~((half << 1) - 1);
  }
  const int bias = (1 << (exponent - 1)) - 1;
  const int e = static_cast<int>(u >> 52 & 0x7ff) - 1023;
  const double sign = std::bit_cast<double>((u & (1ull << 63)) | 0x3ff0000000000000ull);
  if (e > bias) return sign * std::bit_cast<double>(0x7ff0000000000000ull);
  if (e < 1 - bias)
    return sign * 0.0;  // the target's denormals are flushed, as the specification's reference does
  return std::bit_cast<double>(u);
}

Outcome reducePrecisionOp(Call& call) {
  const int exponent = static_cast<int>(call.integer(AttrKey::exponent_bits));
  const int mantissa = static_cast<int>(call.integer(AttrKey::mantissa_bits));
  Tensor wide = convertTo(call.in[0], ElementType::kF64);
  Tensor out = own(wide);
  double* x = out->data<double>();
  for (int64_t i = 0; i < out->numElements(); ++i) x[i] = reducePrecision(x[i], exponent, mantissa);
  return Tensors{convertTo(out, call.resultElement())};
}

// CHLO's own decomposition in f32: e^(x + log 1/2) -+ e^(log 1/2 - x), and by expm1 where |sinh| is small.
Outcome hyperbolicByParts(Call& call) {
  const bool sine = call.opcode() == Opcode::chlo_sinh;
  const ElementType element = call.in[0]->element;
  const Tensor wide = convertTo(call.in[0], ElementType::kF32);
  Tensor out = makeTensor(ElementType::kF32, wide->dims);
  const float log_half = -0.693147182f;
  const auto exp = [](float x) { return static_cast<float>(math::exp(x)); };
  for (int64_t i = 0; i < out->numElements(); ++i) {
    const float x = wide->data<float>()[i], up = exp(x + log_half), down = exp(log_half - x);
    float value = sine ? up - down : up + down;
    if (sine && x > -1 && x < 1) {
      const float e = static_cast<float>(math::expm1(x));
      value = 0.5f * (e + e / (e + 1));
    }
    out->data<float>()[i] = value;
  }
  return Tensors{convertTo(out, element)};
}

Outcome compare(Call& call) {
  const ElementType type = call.in[0]->element;
  const auto* direction = call.module.findAttr(call.id, AttrKey::comparison_direction);
  const auto* kind = call.module.findAttr(call.id, AttrKey::compare_type);
  const bool total = kind && static_cast<hlo::CompareType>(kind->i) == hlo::CompareType::kTotalOrder;
  const BinaryLoop loop =
      direction ? findCompare(static_cast<hlo::Comparison>(direction->i), nativeType(type), total) : nullptr;
  if (!loop) return unsupported(call, llvm::Twine("on ") + elementTypeName(type));
  return Tensors{applyBinary(Opcode::compare, loop, call.in[0], call.in[1], ElementType::kPred)};
}

}  // namespace

void forChunks(int64_t n, llvm::function_ref<void(int64_t, int64_t)> fn) {
  if (n <= kParallelChunk) return fn(0, n);
  parallelFor((n + kParallelChunk - 1) / kParallelChunk, [&](size_t c) {
    const int64_t first = static_cast<int64_t>(c) * kParallelChunk;
    fn(first, std::min(kParallelChunk, n - first));
  });
}

Tensor convertTo(Tensor in, ElementType to) {
  if (in->element == to) return in;
  const ElementType from = in->element;
  // A narrow float is rounded from f64, so that no rounding to f32 comes before.
  const bool to_narrow_float = isFloat(to) && !isNative(to);
  const ElementType middle = to_narrow_float ? ElementType::kF64 : nativeType(to);
  Tensor out = rawTensor(to, in->dims);
  const UnaryLoop loop = findConvert(nativeType(from), middle);
  const Widened wide(*in, Opcode::convert);
  const int64_t width = hostBytes(to);
  uint8_t* base = out->bytes.data();
  forChunks(in->numElements(), [&](int64_t first, int64_t count) {
    Block block, result;
    for (int64_t i = first; i < first + count; i += kBlock) {
      const int64_t m = std::min(kBlock, first + count - i);
      const uint8_t* source = wide.at(i, m, block);
      uint8_t* target = base + i * width;
      if (to_narrow_float && nativeType(from) == ElementType::kF32) {
        narrow(to, source, target, m);
      } else if (middle == to) {
        loop(source, target, m);
      } else {
        loop(source, result.bytes, m);
        if (to_narrow_float) {
          narrowFromF64(to, reinterpret_cast<const double*>(result.bytes), target, m);
        } else {
          narrow(to, result.bytes, target, m);
        }
      }
    }
  });
  return out;
}

Tensor binaryOf(Opcode op, Tensor a, Tensor b) {
  const BinaryLoop loop = findBinary(op, nativeType(a->element));
  if (!loop) return nullptr;
  const ElementType element = a->element;
  return applyBinary(op, loop, a, b, element);
}

Tensor unaryOf(Opcode op, Tensor a) {
  const UnaryLoop loop = findUnary(op, nativeType(a->element));
  if (!loop) return nullptr;
  const ElementType element = a->element;
  return applyUnary(op, loop, a, element);
}

Outcome elementwise(Call& call) {
  switch (call.opcode()) {
    case Opcode::select:
      return select(call);
    case Opcode::clamp:
      return clamp(call);
    case Opcode::compare:
      return compare(call);
    case Opcode::convert:
      return Tensors{convertTo(call.in[0], call.resultElement())};
    case Opcode::reduce_precision:
      return reducePrecisionOp(call);
    default:
      break;
  }
  const ElementType type = call.in[0]->element;
  const bool hyperbolic = call.opcode() == Opcode::chlo_sinh || call.opcode() == Opcode::chlo_cosh;
  if (call.stepwise && hyperbolic && nativeType(type) == ElementType::kF32) return hyperbolicByParts(call);
  if (call.in.size() == 1) {
    const UnaryLoop loop = findUnary(call.opcode(), nativeType(type));
    if (loop) return Tensors{applyUnary(call.opcode(), loop, call.in[0], call.resultElement())};
  } else if (call.in.size() == 2) {
    const BinaryLoop loop = findBinary(call.opcode(), nativeType(type));
    if (loop) return Tensors{applyBinary(call.opcode(), loop, call.in[0], call.in[1], call.resultElement())};
  }
  return unsupported(call, llvm::Twine("on ") + elementTypeName(type));
}

}  // namespace tpu::eval
