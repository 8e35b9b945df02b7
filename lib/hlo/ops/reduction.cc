// Rules of operations that fold by a region: reduce, reduce_window, select_and_scatter, and sort, top_k.
#include "window.h"

namespace tpu::hlo {
namespace {

// Operands and init values in pairs: same shapes, scalar inits of the operand's element type.
llvm::Error needFoldOperands(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (c.numIn() % 2) return c.fail("takes operands and as many init values; found " + llvm::Twine(c.numIn()));
  size_t count = c.numIn() / 2;
  for (size_t i = 0; i < count; ++i) {
    if (auto e = c.needSameDims(0, i)) return e;
    const Type& init = c.in(count + i);
    if (init.rank() != 0 || init.element != c.in(i).element)
      return c.fail("init value is " + c.text(init) + " for an operand of " + c.text(c.in(i)));
  }
  return llvm::Error::success();
}

}  // namespace

llvm::Error ruleReduce(OpCheck& c) {
  if (auto e = needFoldOperands(c)) return e;
  if (auto e = c.needDims(AttrKey::dimensions, c.in(0).rank())) return e;
  size_t count = c.numIn() / 2;
  llvm::SmallVector<ElementType, 2> elements;
  if (auto e = c.needReducer(0, count, elements)) return e;
  Dims dims;
  for (int64_t d = 0; d < c.in(0).rank(); ++d)
    if (!llvm::is_contained(c.ints(AttrKey::dimensions), d))
      dims.push_back(c.in(0).dims[static_cast<size_t>(d)]);
  for (ElementType element : elements) c.yield(element, dims);
  return llvm::Error::success();
}

llvm::Error ruleReduceWindow(OpCheck& c) {
  if (auto e = needFoldOperands(c)) return e;
  const Type& in = c.in(0);
  if (auto e = c.needLength(AttrKey::window_dimensions, in.dims.size())) return e;
  for (int64_t size : c.ints(AttrKey::window_dimensions))
    if (size <= 0) return c.fail("window_dimensions must be positive");
  if (auto e = needWindow(c, kReduceWindowKeys, in.dims.size())) return e;
  llvm::SmallVector<ElementType, 2> elements;
  if (auto e = c.needReducer(0, c.numIn() / 2, elements)) return e;
  Dims dims;
  for (size_t i = 0; i < in.dims.size(); ++i)
    dims.push_back(
        windowPositions(c, kReduceWindowKeys, i, in.dims[i], c.ints(AttrKey::window_dimensions)[i]));
  for (ElementType element : elements) c.yield(element, dims);
  return llvm::Error::success();
}

llvm::Error ruleSelectAndScatter(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  const Type& operand = c.in(0);
  const Type& source = c.in(1);
  if (auto e = c.needRank(2, 0)) return e;
  if (c.has(AttrKey::window_dimensions))
    if (auto e = c.needLength(AttrKey::window_dimensions, operand.dims.size())) return e;
  if (auto e = needWindow(c, kReduceWindowKeys, operand.dims.size())) return e;
  Dims expected;
  for (size_t i = 0; i < operand.dims.size(); ++i) {
    int64_t window = c.has(AttrKey::window_dimensions) ? c.ints(AttrKey::window_dimensions)[i] : 1;
    expected.push_back(windowPositions(c, kReduceWindowKeys, i, operand.dims[i], window));
  }
  if (!compatibleDims(source.dims, expected))
    return c.fail("source is " + c.text(source) + ", the windows of " + c.text(operand) + " give " +
                  listText(expected));
  llvm::SmallVector<TypeId, 2> selects = c.yields(0);
  bool selects_pred = c.region(0).args.size() == 2 && selects.size() == 1 &&
                      c.m.type(selects[0]).rank() == 0 && c.m.type(selects[0]).element == ElementType::kPred;
  if (!selects_pred) return c.fail("the selecting region must take two scalars and yield pred");
  llvm::SmallVector<ElementType, 1> elements;
  if (auto e = c.needReducer(1, 1, elements)) return e;
  c.yield(elements[0], operand.dims);
  return llvm::Error::success();
}

llvm::Error ruleSort(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  int64_t rank = c.in(0).rank(), dim = c.num(AttrKey::dimension, -1);
  if (dim < -rank || dim >= std::max<int64_t>(rank, 1))
    return c.fail("dimension = " + llvm::Twine(dim) + " leaves the rank " + llvm::Twine(rank));
  const Region& region = c.region(0);
  if (region.args.size() != 2 * c.numIn())
    return c.fail("comparator takes " + llvm::Twine(region.args.size()) + " arguments, expected " +
                  llvm::Twine(2 * c.numIn()));
  for (size_t i = 0; i < c.numIn(); ++i) {
    if (auto e = c.needSameDims(0, i)) return e;
    for (size_t side : {0, 1}) {
      const Type& arg = c.m.typeOf(region.args[2 * i + side]);
      if (arg.rank() != 0 || arg.element != c.in(i).element)
        return c.fail("comparator argument is " + c.text(arg) + " for an operand of " + c.text(c.in(i)));
    }
    c.yield(c.in(i));
  }
  llvm::SmallVector<TypeId, 2> yields = c.yields(0);
  if (yields.size() != 1 || c.m.type(yields[0]).rank() != 0 ||
      c.m.type(yields[0]).element != ElementType::kPred)
    return c.fail("comparator must yield one pred");
  return llvm::Error::success();
}

llvm::Error ruleTopK(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  Type type = c.in(0);
  int64_t k = c.num(AttrKey::k);
  if (type.rank() == 0) return c.fail("takes at least one dimension");
  if (k < 0 || (type.dims.back() != kDynamicDim && k > type.dims.back()))
    return c.fail("k = " + llvm::Twine(k) + " exceeds the last dimension of " + c.text(type));
  type.dims.back() = k;
  c.yield(type);
  c.yield(ElementType::kS32, type.dims);
  return llvm::Error::success();
}

}  // namespace tpu::hlo
