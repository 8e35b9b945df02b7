// Rules of control flow, calls, tuples and tokens.
#include "check.h"

namespace tpu::hlo {
namespace {

llvm::Error needTypes(OpCheck& c, Label label, const llvm::Twine& what, llvm::ArrayRef<TypeId> found,
                      llvm::ArrayRef<TypeId> expected) {
  if (found.size() != expected.size())
    return c.fail(label, what + " has " + llvm::Twine(found.size()) + " values, expected " +
                             llvm::Twine(expected.size()));
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != expected[i] && !compatible(c.m.type(found[i]), c.m.type(expected[i])))
      return c.fail(label, what + " has " + typeText(c.m, found[i]) + " at " + llvm::Twine(i) +
                               ", expected " + typeText(c.m, expected[i]));
  return llvm::Error::success();
}

llvm::SmallVector<TypeId, 4> typesOf(const Module& m, llvm::ArrayRef<ValueId> values) {
  llvm::SmallVector<TypeId, 4> types;
  for (ValueId v : values) types.push_back(m.value(v).type);
  return types;
}

}  // namespace

llvm::Error ruleWhile(OpCheck& c) {
  c.resultsBy(C(3), C(3), C(3));
  llvm::SmallVector<TypeId, 4> carried = typesOf(c.m, c.op.operands);
  for (size_t i = 0; i < c.op.regions.size(); ++i)
    if (auto e = needTypes(c, C(i + 1), i ? "the body's arguments" : "the condition's arguments",
                           typesOf(c.m, c.region(i).args), carried))
      return e;
  if (c.op.regions.size() == 2) {
    llvm::SmallVector<TypeId, 2> cond = c.yields(0);
    if (cond.size() != 1 || !isScalarOf(c.m.type(cond[0]), ElementType::kPred))
      return c.fail(C(1), "the condition must yield one scalar pred");
    if (auto e = needTypes(c, C(2), "the body's yield", c.yields(1), carried)) return e;
  }
  for (TypeId type : carried) c.yield(c.m.type(type));
  return llvm::Error::success();
}

llvm::Error ruleBranches(OpCheck& c) {
  const bool is_if = c.op.opcode == Opcode::if_;
  const size_t first = is_if ? 1 : 2;  // case numbers the count of branches before what if has
  c.resultsBy(C(first + 2), C(first + 2), C(first + 2));
  ElementType index = is_if ? ElementType::kPred : ElementType::kS32;
  if (!isScalarOf(c.in(0), index))
    return c.fail(I(1), "branches on " + c.text(c.in(0)) + ", expected " + elementTypeName(index) + "[]");
  if (c.op.regions.empty()) return c.fail(C(1), "has no branches");
  llvm::SmallVector<TypeId, 2> expected = c.yields(0);
  for (size_t i = 0; i < c.op.regions.size(); ++i) {
    if (!c.region(i).args.empty()) return c.fail(C(first), "branch " + llvm::Twine(i) + " takes arguments");
    if (auto e = needTypes(c, C(first + 1), "branch " + llvm::Twine(i), c.yields(i), expected)) return e;
  }
  for (TypeId type : expected) c.yield(c.m.type(type));
  return llvm::Error::success();
}

llvm::Error ruleCall(OpCheck& c) {
  llvm::StringRef name = c.m.getString(c.id, AttrKey::callee);
  FuncId callee = c.m.findFunc(name);
  if (!callee) return fail(Code::kBadCall, c.m.loc(c.op.loc), "call of unknown function @" + name);
  const Func& func = c.m.func(callee);
  if (auto e = needTypes(c, {}, "the call of @" + name, typesOf(c.m, c.op.operands),
                         typesOf(c.m, c.m.region(func.body).args)))
    return e;
  for (TypeId type : func.result_types) c.yield(c.m.type(type));
  return llvm::Error::success();
}

// What a region must yield is the business of the op that owns it.
llvm::Error ruleReturn(OpCheck& c) { return llvm::Error::success(); }

llvm::Error ruleTuple(OpCheck& c) {
  c.resultsBy(C(1), C(1));
  Type type;
  type.kind = TypeKind::kTuple;
  for (ValueId v : c.op.operands) type.elements.push_back(c.m.value(v).type);
  c.yield(std::move(type));
  return llvm::Error::success();
}

llvm::Error ruleGetTupleElement(OpCheck& c) {
  c.resultsBy(C(2), C(2));
  const Type& tuple = c.in(0);
  int64_t index = c.num(AttrKey::index, -1);
  const bool is_tuple = tuple.kind == TypeKind::kTuple;
  if (!is_tuple || index < 0 || index >= static_cast<int64_t>(tuple.elements.size()))
    return c.fail(is_tuple ? C(1) : I(1), "element " + llvm::Twine(index) + " of " + c.text(tuple));
  c.yield(c.m.type(tuple.elements[static_cast<size_t>(index)]));
  return llvm::Error::success();
}

llvm::Error ruleBarrier(OpCheck& c) {
  c.resultsBy(C(1), C(1), C(1));
  for (size_t i = 0; i < c.numIn(); ++i) c.yield(c.in(i));
  return llvm::Error::success();
}

llvm::Error ruleToken(OpCheck& c) {
  if (c.op.opcode == Opcode::after_all)
    for (size_t i = 0; i < c.numIn(); ++i)
      if (auto e = c.needToken(i, I(1))) return e;
  Type token;
  token.kind = TypeKind::kToken;
  c.yield(std::move(token));
  return llvm::Error::success();
}

// chlo.scan: the body takes a slice of each input along a dimension and the carried values, and gives a slice of each output
// and the next carried values.
llvm::Error ruleScan(OpCheck& c) {
  const llvm::ArrayRef<int64_t> segments = c.ints(AttrKey::operandSegmentSizes);
  if (segments.size() != 2 || segments[0] < 1 || segments[1] < 0 ||
      segments[0] + segments[1] != static_cast<int64_t>(c.numIn()) || c.numOut() < static_cast<size_t>(segments[1]))
    return c.fail("does not say which operands are carried");
  const size_t inputs = static_cast<size_t>(segments[0]), outputs = c.numOut() - static_cast<size_t>(segments[1]);
  const int64_t dim = c.num(AttrKey::dimension, -1);
  const llvm::SmallVector<TypeId, 4> args = typesOf(c.m, c.region(0).args);
  const llvm::SmallVector<TypeId, 2> yields = c.yields(0);
  if (args.size() != c.numIn() || yields.size() != c.numOut())
    return c.fail("the body takes " + llvm::Twine(args.size()) + " and gives " + llvm::Twine(yields.size()) +
                  " values, the operation " + llvm::Twine(c.numIn()) + " and " + llvm::Twine(c.numOut()));
  int64_t steps = kDynamicDim;
  const auto sliced = [&](const Type& whole, TypeId part, const llvm::Twine& what) -> llvm::Error {
    if (whole.kind != TypeKind::kTensor || dim < 0 || dim >= whole.rank())
      return c.fail(what + " " + c.text(whole) + " has no dimension " + llvm::Twine(dim));
    Type slice = whole;
    const int64_t size = whole.dims[static_cast<size_t>(dim)];
    slice.dims.erase(slice.dims.begin() + dim);
    if (!compatible(slice, c.m.type(part)))
      return c.fail("the body has " + typeText(c.m, part) + " for a slice of " + c.text(whole));
    if (steps != kDynamicDim && size != kDynamicDim && steps != size)
      return c.fail(what + " " + c.text(whole) + " has " + llvm::Twine(size) + " slices of " + llvm::Twine(steps));
    if (size != kDynamicDim) steps = size;
    return llvm::Error::success();
  };
  for (size_t i = 0; i < inputs; ++i)
    if (auto e = sliced(c.in(i), args[i], "input")) return e;
  for (size_t i = 0; i < outputs; ++i)
    if (auto e = sliced(c.out(i), yields[i], "output")) return e;
  for (size_t i = 0; inputs + i < c.numIn(); ++i)
    for (const Type& type : {c.m.type(args[inputs + i]), c.m.type(yields[outputs + i]), c.out(outputs + i)})
      if (!compatible(type, c.in(inputs + i)))
        return c.fail("carries " + c.text(c.in(inputs + i)) + " as " + c.text(type));
  c.yieldGiven();
  return llvm::Error::success();
}

// Ops whose results are only known from what they state.
llvm::Error ruleOpaque(OpCheck& c) {
  c.yieldGiven();
  return llvm::Error::success();
}

}  // namespace tpu::hlo
