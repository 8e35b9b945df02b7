// Rules of operations that fold by a region: reduce, reduce_window, select_and_scatter, and sort, top_k.
#include "window.h"

namespace tpu::hlo {
namespace {

// Operands and init values in pairs: same shapes, scalar inits of the operand's element type.
llvm::Error needFoldOperands(OpCheck& c, Label count_label, Label shape, Label element) {
  if (auto e = c.needTensors(1)) return e;
  if (c.numIn() % 2)
    return c.fail(count_label, "takes operands and as many init values; found " + llvm::Twine(c.numIn()));
  size_t count = c.numIn() / 2;
  for (size_t i = 0; i < count; ++i) {
    const Type& init = c.in(count + i);
    if (auto e = c.needSameDims(0, i, shape)) return e;
    if (init.rank() != 0 || init.element != c.in(i).element)
      return c.fail(init.rank() ? I(2) : element,
                    "init value is " + c.text(init) + " for an operand of " + c.text(c.in(i)));
  }
  return llvm::Error::success();
}

constexpr WindowLabels kReduceWindow = {C(6), C(7), C(8), C(9), C(10), C(11), C(12)};
constexpr WindowLabels kSelectAndScatter = {C(6), C(7), {}, {}, {}, {}, C(8)};

// C9: the selecting region compares two elements.
llvm::Error needSelector(OpCheck& c) {
  const Region& region = c.region(0);
  llvm::SmallVector<TypeId, 2> selects = c.yields(0);
  bool fits =
      region.args.size() == 2 && selects.size() == 1 && isScalarOf(c.m.type(selects[0]), ElementType::kPred);
  for (size_t i = 0; fits && i < 2; ++i) {
    const Type& arg = c.m.typeOf(region.args[i]);
    fits = arg.kind == TypeKind::kTensor && arg.rank() == 0 &&
           (!c.in(0).encoding.empty() || promotable(c.in(0).element, arg.element));
  }
  if (fits) return llvm::Error::success();
  return c.fail(C(9), "the selecting region must take two scalars of " + c.text(c.in(0)) + " and yield pred");
}

}  // namespace

llvm::Error ruleReduce(OpCheck& c) {
  c.resultsBy(C(8), C(7), C(3));
  if (auto e = needFoldOperands(c, C(3), C(1), C(2))) return e;
  if (auto e = c.needDims(AttrKey::dimensions, c.in(0).rank(), C(4), C(5))) return e;
  size_t count = c.numIn() / 2;
  llvm::SmallVector<ElementType, 2> elements;
  if (auto e = c.needReducer(0, count, C(6), elements)) return e;
  Dims dims;
  for (int64_t d = 0; d < c.in(0).rank(); ++d)
    if (!llvm::is_contained(c.ints(AttrKey::dimensions), d))
      dims.push_back(c.in(0).dims[static_cast<size_t>(d)]);
  for (ElementType element : elements) c.yield(element, dims);
  return llvm::Error::success();
}

llvm::Error ruleReduceWindow(OpCheck& c) {
  c.resultsBy(C(16), C(15), C(1));
  if (auto e = needFoldOperands(c, C(1), C(2), C(3))) return e;
  const Type& in = c.in(0);
  if (auto e = c.needLength(AttrKey::window_dimensions, in.dims.size(), C(4))) return e;
  if (auto e = c.needPositive(AttrKey::window_dimensions, C(5))) return e;
  if (auto e = needWindow(c, kReduceWindowKeys, in.dims.size(), kReduceWindow)) return e;
  llvm::SmallVector<ElementType, 2> elements;
  if (auto e = c.needReducer(0, c.numIn() / 2, C(13), elements)) return e;
  for (size_t i = 1; i < c.numOut(); ++i)
    if (c.out(i).kind == TypeKind::kTensor && !compatibleDims(c.out(0).dims, c.out(i).dims))
      return c.fail(C(14), "results differ in shape: " + c.text(c.out(0)) + " and " + c.text(c.out(i)));
  Dims dims;
  for (size_t i = 0; i < in.dims.size(); ++i)
    dims.push_back(windowPositions(c, kReduceWindowKeys, c.ints(AttrKey::padding), i, in.dims[i],
                                   c.ints(AttrKey::window_dimensions)[i]));
  for (ElementType element : elements) c.yield(element, dims);
  return llvm::Error::success();
}

llvm::Error ruleSelectAndScatter(OpCheck& c) {
  c.resultsBy(C(12), C(11));
  if (auto e = c.needTensors()) return e;
  const Type& operand = c.in(0);
  const Type& source = c.in(1);
  if (source.element != operand.element)
    return c.fail(C(1), "source is " + c.text(source) + " for an operand of " + c.text(operand));
  if (auto e = c.needRank(2, 0, I(3))) return e;
  if (c.in(2).element != operand.element)
    return c.fail(C(3), "init value is " + c.text(c.in(2)) + " for an operand of " + c.text(operand));
  if (auto e = c.needAttr(AttrKey::window_dimensions, I(4))) return e;
  if (auto e = c.needLength(AttrKey::window_dimensions, operand.dims.size(), C(4))) return e;
  if (auto e = c.needPositive(AttrKey::window_dimensions, C(5))) return e;
  if (auto e = needWindow(c, kReduceWindowKeys, operand.dims.size(), kSelectAndScatter)) return e;
  Dims expected;
  for (size_t i = 0; i < operand.dims.size(); ++i) {
    int64_t window = c.ints(AttrKey::window_dimensions)[i];
    expected.push_back(
        windowPositions(c, kReduceWindowKeys, c.ints(AttrKey::padding), i, operand.dims[i], window));
  }
  if (!compatibleDims(source.dims, expected))
    return c.fail(C(2), "source is " + c.text(source) + ", the windows of " + c.text(operand) + " give " +
                            listText(expected));
  if (auto e = needSelector(c)) return e;
  llvm::SmallVector<ElementType, 1> elements;
  if (auto e = c.needReducer(1, 1, C(10), elements)) return e;
  c.yield(elements[0], operand.dims);
  return llvm::Error::success();
}

llvm::Error ruleSort(OpCheck& c) {
  c.resultsBy(C(2), C(2), C(2));
  if (auto e = c.needTensors(1)) return e;
  int64_t rank = c.in(0).rank(), dim = c.num(AttrKey::dimension, -1);
  if (dim < -rank || dim >= std::max<int64_t>(rank, 1))
    return c.fail(C(4), "dimension = " + llvm::Twine(dim) + " leaves the rank " + llvm::Twine(rank));
  const Region& region = c.region(0);
  if (region.args.size() != 2 * c.numIn())
    return c.fail(C(5), "comparator takes " + llvm::Twine(region.args.size()) + " arguments, expected " +
                            llvm::Twine(2 * c.numIn()));
  for (size_t i = 0; i < c.numIn(); ++i) {
    if (auto e = c.needSameDims(0, i, C(3))) return e;
    for (size_t side : {0, 1}) {
      const Type& arg = c.m.typeOf(region.args[2 * i + side]);
      if (!isScalarOf(arg, c.in(i).element))
        return c.fail(C(5),
                      "comparator argument is " + c.text(arg) + " for an operand of " + c.text(c.in(i)));
    }
    c.yield(c.in(i));
  }
  llvm::SmallVector<TypeId, 2> yields = c.yields(0);
  if (yields.size() != 1 || !isScalarOf(c.m.type(yields[0]), ElementType::kPred))
    return c.fail(C(5), "comparator must yield one pred");
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
