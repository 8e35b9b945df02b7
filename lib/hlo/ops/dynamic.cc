// Rules of operations whose place or shape is known only at run time. Shape operands that are constants are
// checked like attributes.
#include "check.h"

namespace tpu::hlo {
namespace {

llvm::Error needSameStarts(OpCheck& c, size_t from, Label label) {
  for (size_t i = from + 1; i < c.numIn(); ++i)
    if (c.in(i).element != c.in(from).element)
      return c.fail(label, "start indices differ in type: " + c.text(c.in(from)) + " and " + c.text(c.in(i)));
  return llvm::Error::success();
}

}  // namespace

llvm::Error ruleDynamicSlice(OpCheck& c) {
  c.resultsBy(C(1), C(5));
  if (auto e = c.needTensors(2)) return e;
  const Type& in = c.in(0);
  if (c.numIn() != 1 + in.dims.size())
    return c.fail(C(2), "has " + llvm::Twine(c.numIn() - 1) + " start indices for " + c.text(in));
  if (auto e = c.needScalarInts(1, I(2))) return e;
  if (auto e = needSameStarts(c, 1, C(3))) return e;
  if (auto e = c.needLength(AttrKey::slice_sizes, in.dims.size(), C(2))) return e;
  Type type = in;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    int64_t size = c.ints(AttrKey::slice_sizes)[i];
    if (size < 0 || (in.dims[i] != kDynamicDim && size > in.dims[i]))
      return c.fail(C(4), "slice of " + llvm::Twine(size) + " does not fit dimension " + llvm::Twine(i) +
                              " of " + c.text(in));
    type.dims[i] = size;
  }
  c.yield(std::move(type));
  return llvm::Error::success();
}

llvm::Error ruleDynamicUpdateSlice(OpCheck& c) {
  c.resultsBy(C(1), C(1));
  if (auto e = c.needTensors(3)) return e;
  const Type& in = c.in(0);
  const Type& update = c.in(1);
  if (c.numIn() != 2 + in.dims.size())
    return c.fail(C(4), "has " + llvm::Twine(c.numIn() - 2) + " start indices for " + c.text(in));
  if (auto e = c.needScalarInts(2, I(3))) return e;
  if (auto e = needSameStarts(c, 2, C(5))) return e;
  auto misfit = [&](Label label) {
    return c.fail(label, "update of " + c.text(update) + " does not fit " + c.text(in));
  };
  if (update.element != in.element) return misfit(C(2));
  if (update.rank() != in.rank()) return misfit(C(3));
  for (size_t i = 0; i < in.dims.size(); ++i)
    if (in.dims[i] != kDynamicDim && update.dims[i] != kDynamicDim && update.dims[i] > in.dims[i])
      return misfit(C(6));
  c.yield(in);
  return llvm::Error::success();
}

llvm::Error ruleDynamicIota(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  if (auto e = c.needDim(AttrKey::iota_dimension, c.out(0).rank(), C(1))) return e;
  if (auto e = c.needResultShape(0, I(1), C(2))) return e;
  if (c.out(0).element == ElementType::kPred) return c.fail(O(1), "does not count in pred");
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleDynamicBroadcastInDim(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  if (auto e = needBroadcast(c)) return e;
  if (auto e = c.needResultShape(1, I(2), C(7))) return e;
  if (auto e = c.needInRange(AttrKey::known_expanding_dimensions, c.in(0).rank(), C(9))) return e;
  if (auto e = c.needInRange(AttrKey::known_nonexpanding_dimensions, c.in(0).rank(), C(10))) return e;
  if (auto e = c.needUnique(AttrKey::known_expanding_dimensions, C(8))) return e;
  if (auto e = c.needUnique(AttrKey::known_nonexpanding_dimensions, C(8))) return e;
  for (int64_t dim : c.ints(AttrKey::known_expanding_dimensions))
    if (llvm::is_contained(c.ints(AttrKey::known_nonexpanding_dimensions), dim))
      return c.fail(C(8), "dimension " + llvm::Twine(dim) + " is known to expand and not to");
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleDynamicReshape(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  if (auto e = needSameNumber(c)) return e;
  if (auto e = c.needResultShape(1, I(2), C(4))) return e;
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleDynamicPad(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  const Type& in = c.in(0);
  if (auto e = needPaddingValue(c)) return e;
  if (auto e = c.needKeptElement(C(1))) return e;
  for (size_t i : {2, 3, 4})
    if (auto e = c.needShapeOperand(i, in.dims.size(), I(i + 1), C(2))) return e;
  if (in.rank() != c.out(0).rank())
    return c.fail(C(4), "result is " + c.text(c.out(0)) + " for an operand of " + c.text(in));
  const auto low = c.constantInts(2), high = c.constantInts(3), interior = c.constantInts(4);
  for (size_t i = 0; interior && i < interior->size(); ++i)
    if ((*interior)[i] < 0) return c.fail(C(3), "negative interior padding");
  for (size_t i = 0; low && high && interior && i < in.dims.size(); ++i) {
    if (in.dims[i] == kDynamicDim || c.out(0).dims[i] == kDynamicDim) continue;
    if (paddedSize(in.dims[i], (*low)[i], (*high)[i], (*interior)[i]) != c.out(0).dims[i])
      return c.fail(C(4), "padding of dimension " + llvm::Twine(i) + " of " + c.text(in) + " does not give " +
                              c.text(c.out(0)));
  }
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleRealDynamicSlice(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  for (size_t i : {1, 2, 3})
    if (auto e = c.needShapeOperand(i, c.in(0).dims.size(), {}, {})) return e;
  if (c.in(0).element != c.out(0).element) return c.fail("changes the element type");
  if (c.in(0).rank() != c.out(0).rank())
    return c.fail("result is " + c.text(c.out(0)) + " for an operand of " + c.text(c.in(0)));
  c.yieldGiven();
  return llvm::Error::success();
}

}  // namespace tpu::hlo
