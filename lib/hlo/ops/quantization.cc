// What quantized operands and results may be combined.
#include "quantization.h"

namespace tpu::hlo {
namespace {

std::optional<Quantization> quantizationOf(const Type& type) {
  return isQuantized(type) ? parseQuantization(type.encoding) : std::nullopt;
}

}  // namespace

int64_t quantizedDim(const Quantization& q) {
  return q.axes.size() == 1 && q.blocks[0] == 1 ? q.axes[0] : -1;
}

bool isPerTensor(const Quantization& q) { return q.axes.empty(); }

llvm::Error needSumQuantization(OpCheck& c) {
  if (c.numOut() != 1) return llvm::Error::success();
  const std::optional<Quantization> lhs = quantizationOf(c.in(0)), rhs = quantizationOf(c.in(1)),
                                    out = quantizationOf(c.out(0));
  if (!lhs || !rhs || !out) return c.fail(C(2), "mixes quantized tensors with others");
  if (lhs->storage != rhs->storage || lhs->storage != out->storage)
    return c.fail(C(3), "operands and result differ in storage type: " + elementTypeName(lhs->storage) +
                            ", " + elementTypeName(rhs->storage) + " and " + elementTypeName(out->storage));
  if (lhs->expressed != rhs->expressed || lhs->expressed != out->expressed)
    return c.fail(C(4), "operands and result differ in expressed type: " + elementTypeName(lhs->expressed) +
                            ", " + elementTypeName(rhs->expressed) + " and " +
                            elementTypeName(out->expressed));
  const int64_t along = quantizedDim(*out);
  if ((quantizedDim(*lhs) >= 0 || quantizedDim(*rhs) >= 0) != (along >= 0))
    return c.fail(C(5), "scales vary along a dimension of operands or result, but not of both");
  for (size_t side : {0, 1}) {
    const int64_t own = quantizedDim(side ? *rhs : *lhs);
    if (own >= 0 && own != along)
      return c.fail(C(6 + side), "scales of operand " + llvm::Twine(side) + " vary along dimension " +
                                     llvm::Twine(own) + ", those of the result along " + llvm::Twine(along));
  }
  return llvm::Error::success();
}

llvm::Error needSameQuantization(OpCheck& c, Label label) {
  if (!anyQuantized(c) || c.numOut() != 1) return llvm::Error::success();
  std::optional<Quantization> in = quantizationOf(c.in(0)), out = quantizationOf(c.out(0));
  bool same = in && out && in->storage == out->storage && in->expressed == out->expressed &&
              in->min == out->min && in->max == out->max && isPerTensor(*in) == isPerTensor(*out);
  if (same && (isPerTensor(*in) || in->scales.size() == out->scales.size()))
    same = in->scales == out->scales && in->zero_points == out->zero_points;
  if (same) return llvm::Error::success();
  auto text = [&](const Type& type) { return type.encoding.empty() ? c.text(type) : type.encoding; };
  return c.fail(label, "operand and result are quantized differently: " + text(c.in(0)) + " and " + text(c.out(0)));
}

int64_t scalesAlong(const Type& type) {
  const std::optional<Quantization> q = quantizationOf(type);
  return q ? quantizedDim(*q) : -1;
}

llvm::Error needScalesBroadcast(OpCheck& c) {
  const int64_t from = scalesAlong(c.in(0)), to = scalesAlong(c.out(0));
  if (from < 0 || to < 0) return llvm::Error::success();
  const int64_t moved = c.ints(AttrKey::broadcast_dimensions)[static_cast<size_t>(from)];
  if (to != moved)
    return c.fail(C(6), "scales of the operand move to dimension " + llvm::Twine(moved) +
                            ", those of the result vary along " + llvm::Twine(to));
  if (c.in(0).dims[static_cast<size_t>(from)] != 1) return llvm::Error::success();
  const Quantization in = *quantizationOf(c.in(0)), out = *quantizationOf(c.out(0));
  for (size_t i = 0; i < out.scales.size(); ++i)
    if (out.scales[i] != in.scales[0] || out.zero_points[i] != in.zero_points[0])
      return c.fail(C(6), "the one scale of the operand becomes others in the result");
  return llvm::Error::success();
}

llvm::Error needScalesReshape(OpCheck& c) {
  const int64_t from = scalesAlong(c.in(0)), to = scalesAlong(c.out(0));
  if (from < 0 || to < 0) return llvm::Error::success();
  auto before = [](const Type& type, int64_t dim) {
    int64_t count = 1;
    for (int64_t i = 0; i < dim; ++i) {
      const int64_t size = type.dims[static_cast<size_t>(i)];
      if (size == kDynamicDim) return kDynamicDim;
      if (__builtin_mul_overflow(count, size, &count)) return kDynamicDim;
    }
    return count;
  };
  const int64_t a = before(c.in(0), from), b = before(c.out(0), to);
  const bool fits = compatibleDims({a, c.in(0).dims[static_cast<size_t>(from)]},
                                   {b, c.out(0).dims[static_cast<size_t>(to)]});
  if (fits) return llvm::Error::success();
  return c.fail(C(3), "splits or joins the dimension that scales vary along: " + llvm::Twine(from) + " of " +
                          c.text(c.in(0)) + ", " + llvm::Twine(to) + " of " + c.text(c.out(0)));
}

llvm::Error needScalesTranspose(OpCheck& c) {
  if (c.numOut() != 1) return llvm::Error::success();
  const int64_t from = scalesAlong(c.in(0)), to = scalesAlong(c.out(0));
  if (from < 0 || to < 0 || static_cast<size_t>(to) >= c.ints(AttrKey::permutation).size() ||
      c.ints(AttrKey::permutation)[static_cast<size_t>(to)] == from)
    return llvm::Error::success();
  return c.fail(C(4), "scales of the operand vary along dimension " + llvm::Twine(from) +
                          ", those of the result along " + llvm::Twine(to));
}

llvm::Error needContractionQuantization(OpCheck& c, Label first, size_t next) {
  if (!anyQuantized(c) || c.numOut() != 1) return llvm::Error::success();
  const std::optional<Quantization> lhs = quantizationOf(c.in(0)), rhs = quantizationOf(c.in(1)),
                                    out = quantizationOf(c.out(0));
  if (!rhs || lhs.has_value() != out.has_value())
    return c.fail(
        first, "quantized contractions take a quantized rhs, and lhs and result both quantized or neither");
  if (!lhs) {
    if (c.in(0).element == rhs->expressed && c.out(0).element == rhs->expressed)
      return llvm::Error::success();
    return c.fail(C(next + 3), "rhs expresses " + elementTypeName(rhs->expressed) + ", lhs and result are " +
                                   c.text(c.in(0)) + " and " + c.text(c.out(0)));
  }
  if (lhs->storage != rhs->storage)
    return c.fail(C(next), "operands differ in storage type: " + elementTypeName(lhs->storage) + " and " +
                               elementTypeName(rhs->storage));
  if (lhs->expressed != rhs->expressed || lhs->expressed != out->expressed)
    return c.fail(C(next + 1),
                  "operands and result differ in expressed type: " + elementTypeName(lhs->expressed) + ", " +
                      elementTypeName(rhs->expressed) + " and " + elementTypeName(out->expressed));
  if (isPerTensor(*rhs) && !isPerTensor(*out))
    return c.fail(C(next + 2), "rhs has one scale, the result several");
  return llvm::Error::success();
}

}  // namespace tpu::hlo
