// The commonest f32 loops as vector code for the host's widest instructions. Results are those of the plain
// loops of loops_float.cc, bit for bit: each element sees the same IEEE operations in the same order.
#include "loops_vector.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../lib/eval/loops_vector.cc"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tpu::eval::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whole vectors, then the rest one by one.
template <class Op>
HWY_INLINE void binaryLoop(const float* x, const float* y, float* out, size_t n, Op op) {
  const hn::ScalableTag<float> f;
  const hn::CappedTag<float, 1> one;
  const size_t lanes = hn::Lanes(f);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(op(hn::LoadU(f, x + i), hn::LoadU(f, y + i)), f, out + i);
  for (; i < n; ++i) hn::StoreU(op(hn::LoadU(one, x + i), hn::LoadU(one, y + i)), one, out + i);
}

struct AddOp {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return hn::Add(x, y);
  }
};
struct SubtractOp {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return hn::Sub(x, y);
  }
};
struct MultiplyOp {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return hn::Mul(x, y);
  }
};
struct DivideOp {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    return hn::Div(x, y);
  }
};
// As ieeeMaximum and ieeeMinimum.
struct MaximumOp {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    const V ordered = hn::IfThenElse(hn::Eq(x, y), hn::And(x, y), hn::IfThenElse(hn::Gt(x, y), x, y));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::IsNaN(y), y, ordered));
  }
};
struct MinimumOp {
  template <class V>
  HWY_INLINE V operator()(V x, V y) const {
    const V ordered = hn::IfThenElse(hn::Eq(x, y), hn::Or(x, y), hn::IfThenElse(hn::Lt(x, y), x, y));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::IsNaN(y), y, ordered));
  }
};

template <class Op>
void Binary(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n) {
  binaryLoop(reinterpret_cast<const float*>(a), reinterpret_cast<const float*>(b),
             reinterpret_cast<float*>(out), static_cast<size_t>(n), Op());
}
void Add(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n) { Binary<AddOp>(a, b, out, n); }
void Subtract(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n) {
  Binary<SubtractOp>(a, b, out, n);
}
void Multiply(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n) {
  Binary<MultiplyOp>(a, b, out, n);
}
void Divide(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n) { Binary<DivideOp>(a, b, out, n); }
void Maximum(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n) { Binary<MaximumOp>(a, b, out, n); }
void Minimum(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n) { Binary<MinimumOp>(a, b, out, n); }

#if HWY_HAVE_FLOAT64
// e^x in f64 as math::exp, for results that are rounded to f32: beyond |x| = 200 they are 0 or infinity
// whatever the exact value, so that the scale is always a normal number.
template <class D, class W = hn::Vec<D>>
HWY_INLINE W expOf(D d, W x) {
  const auto c = [&](double value) { return hn::Set(d, value); };
  const W bounded = hn::Min(hn::Max(x, c(-200.0)), c(200.0));
  const W shift = c(0x1.8p52);
  const W n = hn::Sub(hn::Add(hn::Mul(bounded, c(1.44269504088896340736)), shift), shift);
  const W hi = hn::Sub(bounded, hn::Mul(n, c(0x1.62e42fef00000p-1)));
  const W lo = hn::Mul(n, c(0x1.473de6af278edp-34));
  const W r = hn::Sub(hi, lo);
  const W err = hn::Sub(hn::Sub(hi, r), lo);
  W p = c(1.0 / 87178291200.0);
  for (const double term :
       {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
        1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0})
    p = hn::Add(hn::Mul(p, r), c(term));
  const W square = hn::Mul(r, r);
  const W tail = hn::Add(hn::Add(hn::Mul(square, c(0.5)), hn::Mul(hn::Mul(square, r), p)), err);
  const W mantissa = hn::Add(c(1.0), hn::Add(r, tail));
  const hn::RebindToSigned<D> s;
  const auto exponent = hn::Add(hn::ConvertTo(s, n), hn::Set(s, 1023));
  const W scaled = hn::Mul(mantissa, hn::BitCast(d, hn::ShiftLeft<52>(exponent)));
  return hn::IfThenElse(hn::IsNaN(x), x, scaled);
}

template <class D>
HWY_INLINE void expAt(D d, const float* x, float* y) {
  const hn::Rebind<float, D> half;
  hn::StoreU(hn::DemoteTo(half, expOf(d, hn::PromoteTo(d, hn::LoadU(half, x)))), half, y);
}

void Exponential(const uint8_t* a, uint8_t* out, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* x = reinterpret_cast<const float*>(a);
  float* y = reinterpret_cast<float*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) expAt(d, x + i, y + i);
  for (; i < n; ++i) expAt(one, x + i, y + i);
}
#endif

UnaryLoop FindUnary(hlo::Opcode op) {
#if HWY_HAVE_FLOAT64
  if (op == hlo::Opcode::exponential) return Exponential;
#endif
  return nullptr;
}

BinaryLoop FindBinary(hlo::Opcode op) {
  switch (op) {
    case hlo::Opcode::add:
      return Add;
    case hlo::Opcode::subtract:
      return Subtract;
    case hlo::Opcode::multiply:
      return Multiply;
    case hlo::Opcode::divide:
      return Divide;
    case hlo::Opcode::maximum:
      return Maximum;
    case hlo::Opcode::minimum:
      return Minimum;
    default:
      return nullptr;
  }
}

}  // namespace tpu::eval::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tpu::eval {
HWY_EXPORT(FindUnary);
HWY_EXPORT(FindBinary);

UnaryLoop findVectorUnary(hlo::Opcode op) { return HWY_DYNAMIC_DISPATCH(FindUnary)(op); }
BinaryLoop findVectorBinary(hlo::Opcode op) { return HWY_DYNAMIC_DISPATCH(FindBinary)(op); }

}  // namespace tpu::eval
#endif
