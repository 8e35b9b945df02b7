// Rules of operations that move values without computing: broadcast, reshape, transpose, slice, pad,
// concatenate ...
#include "quantization.h"

namespace tpu::hlo {

llvm::Error ruleBroadcast(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  llvm::ArrayRef<int64_t> sizes = c.ints(AttrKey::broadcast_sizes);
  Dims dims(sizes.begin(), sizes.end());
  dims.append(c.in(0).dims.begin(), c.in(0).dims.end());
  for (int64_t size : sizes)
    if (size < 0) return c.fail("broadcast_sizes " + listText(sizes) + " holds a negative size");
  c.yield(c.in(0).element, dims);
  return llvm::Error::success();
}

llvm::Error ruleBroadcastInDim(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  if (auto e = c.needStaticResult(0, O(1))) return e;
  if (auto e = needBroadcast(c)) return e;
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error needBroadcast(OpCheck& c) {
  const Type& in = c.in(0);
  const Type& out = c.out(0);
  if (auto e = c.needLength(AttrKey::broadcast_dimensions, in.dims.size(), C(2))) return e;
  if (auto e = c.needDims(AttrKey::broadcast_dimensions, out.rank(), C(3), C(4))) return e;
  llvm::ArrayRef<int64_t> map = c.ints(AttrKey::broadcast_dimensions);
  for (size_t i = 0; i < map.size(); ++i) {
    int64_t from = in.dims[i], to = out.dims[static_cast<size_t>(map[i])];
    if (from != 1 && from != to && from != kDynamicDim && to != kDynamicDim)
      return c.fail(C(5), "dimension " + llvm::Twine(i) + " of " + c.text(in) +
                              " does not stretch to dimension " + llvm::Twine(map[i]) + " of " + c.text(out));
  }
  if (in.encoding.empty() && out.encoding.empty()) return c.needKeptElement(C(1));
  if (auto e = needSameQuantization(c, C(1))) return e;
  return needScalesBroadcast(c);
}

llvm::Error needSameNumber(OpCheck& c) {
  const Type& in = c.in(0);
  const Type& out = c.out(0);
  auto dynamic = [](const Type& t) { return llvm::is_contained(t.dims, kDynamicDim); };
  if (auto e = c.needKeptElement(C(1))) return e;
  if (auto e = needSameQuantization(c, C(1))) return e;
  if (!dynamic(in) && !dynamic(out) && in.numElements() != out.numElements())
    return c.fail(C(2), "changes the number of elements from " + c.text(in) + " to " + c.text(out));
  return needScalesReshape(c);
}

llvm::Error ruleReshape(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  if (auto e = c.needStaticResult(0, O(1))) return e;
  if (auto e = needSameNumber(c)) return e;
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleTranspose(OpCheck& c) {
  c.resultsBy(C(1), C(3));
  if (auto e = c.needTensors()) return e;
  const Type& in = c.in(0);
  if (auto e = c.needLength(AttrKey::permutation, in.dims.size(), C(2))) return e;
  if (auto e = c.needDims(AttrKey::permutation, in.rank(), C(2), C(2))) return e;
  if (auto e = needSameQuantization(c, C(1))) return e;
  if (auto e = needScalesTranspose(c)) return e;
  Type type = in;
  for (size_t i = 0; i < in.dims.size(); ++i)
    type.dims[i] = in.dims[static_cast<size_t>(c.ints(AttrKey::permutation)[i])];
  c.yield(std::move(type));
  return llvm::Error::success();
}

llvm::Error ruleSlice(OpCheck& c) {
  c.resultsBy(C(1), C(5));
  if (auto e = c.needTensors()) return e;
  const Type& in = c.in(0);
  for (AttrKey key : {AttrKey::start_indices, AttrKey::limit_indices, AttrKey::strides})
    if (auto e = c.needLength(key, in.dims.size(), C(2))) return e;
  Type type = in;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    int64_t start = c.ints(AttrKey::start_indices)[i], limit = c.ints(AttrKey::limit_indices)[i];
    int64_t stride = c.ints(AttrKey::strides)[i];
    bool inside = start >= 0 && start <= limit && (in.dims[i] == kDynamicDim || limit <= in.dims[i]);
    if (!inside || stride <= 0)
      return c.fail(C(inside ? 4 : 3), "[" + llvm::Twine(start) + ":" + llvm::Twine(limit) + ":" +
                                           llvm::Twine(stride) + "] does not fit dimension " +
                                           llvm::Twine(i) + " of " + c.text(in));
    type.dims[i] = (limit - start) / stride + ((limit - start) % stride != 0);
  }
  c.yield(std::move(type));
  return llvm::Error::success();
}

llvm::Error needPaddingValue(OpCheck& c) {
  if (auto e = c.needRank(1, 0, I(2))) return e;
  if (c.in(0).element == c.in(1).element) return llvm::Error::success();
  return c.fail(C(1), "pads " + c.text(c.in(0)) + " with " + c.text(c.in(1)));
}

__int128 paddedSize(int64_t size, int64_t low, int64_t high, int64_t interior) {
  return static_cast<__int128>(std::max<int64_t>(size - 1, 0)) * interior + size + low + high;
}

llvm::Error rulePad(OpCheck& c) {
  c.resultsBy(C(1), C(4));
  if (auto e = c.needTensors()) return e;
  const Type& in = c.in(0);
  if (auto e = needPaddingValue(c)) return e;
  for (AttrKey key : {AttrKey::edge_padding_low, AttrKey::edge_padding_high, AttrKey::interior_padding})
    if (auto e = c.needLength(key, in.dims.size(), C(2))) return e;
  Type type = in;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    int64_t low = c.ints(AttrKey::edge_padding_low)[i], high = c.ints(AttrKey::edge_padding_high)[i];
    int64_t interior = c.ints(AttrKey::interior_padding)[i];
    if (interior < 0) return c.fail(C(3), "negative interior padding");
    if (in.dims[i] == kDynamicDim) continue;
    const __int128 size = paddedSize(in.dims[i], low, high, interior);
    if (size < 0) return c.fail(C(4), "padding removes more than dimension " + llvm::Twine(i) + " holds");
    if (size > INT64_MAX) return c.fail(C(4), "padding makes dimension " + llvm::Twine(i) + " too large");
    type.dims[i] = static_cast<int64_t>(size);
  }
  c.yield(std::move(type));
  return llvm::Error::success();
}

llvm::Error ruleConcatenate(OpCheck& c) {
  c.resultsBy(C(5), C(6));
  if (auto e = c.needTensors(1)) return e;
  if (auto e = c.needDim(AttrKey::dimension, c.in(0).rank(), C(4))) return e;
  size_t dim = static_cast<size_t>(c.num(AttrKey::dimension));
  Type type = c.in(0);
  for (size_t i = 1; i < c.numIn(); ++i) {
    Type other = c.in(i);
    if (other.element != type.element)
      return c.fail(C(1), "joins " + c.text(c.in(0)) + " and " + c.text(c.in(i)));
    if (other.rank() != type.rank()) return c.fail(C(2), "joins " + c.text(type) + " and " + c.text(other));
    int64_t size = other.dims[dim];
    other.dims[dim] = type.dims[dim];
    if (!compatible(type, other)) return c.fail(C(2), "joins " + c.text(c.in(0)) + " and " + c.text(c.in(i)));
    if (size == kDynamicDim || type.dims[dim] == kDynamicDim)
      type.dims[dim] = kDynamicDim;
    else if (__builtin_add_overflow(type.dims[dim], size, &type.dims[dim]))
      return c.fail(C(6), "the result is too large");
  }
  c.yield(std::move(type));
  return llvm::Error::success();
}

llvm::Error ruleReverse(OpCheck& c) {
  c.resultsBy(C(1), C(1));
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needAttr(AttrKey::dimensions, I(2))) return e;
  if (auto e = c.needDims(AttrKey::dimensions, c.in(0).rank(), C(3), C(2))) return e;
  c.yield(c.in(0));
  return llvm::Error::success();
}

llvm::Error ruleGetDimensionSize(OpCheck& c) {
  c.resultsBy(O(1), O(1));
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needDim(AttrKey::dimension, c.in(0).rank(), C(1))) return e;
  c.yield(ElementType::kS32, {});
  return llvm::Error::success();
}

llvm::Error ruleSetDimensionSize(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needDim(AttrKey::dimension, c.in(0).rank(), {})) return e;
  if (auto e = c.needScalarInts(1)) return e;
  Type type = c.in(0);
  type.dims[static_cast<size_t>(c.num(AttrKey::dimension))] = kDynamicDim;
  c.yield(std::move(type));
  return llvm::Error::success();
}

}  // namespace tpu::hlo
