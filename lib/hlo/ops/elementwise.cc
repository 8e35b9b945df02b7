// Rules of elementwise operations: which element types each takes, and the shape of its result.
#include "quantization.h"

namespace tpu::hlo {
namespace {

enum Class : unsigned {
  kP = 1,
  kS = 2,
  kU = 4,
  kF = 8,
  kC = 16,
  kInts = kS | kU,
  kNumbers = kInts | kF | kC,
  kAny = kNumbers | kP
};

unsigned classOf(ElementType element) {
  switch (elementClass(element)) {
    case ElementClass::kPred:
      return kP;
    case ElementClass::kSigned:
      return kS;
    case ElementClass::kUnsigned:
      return kU;
    case ElementClass::kFloat:
      return kF;
    case ElementClass::kComplex:
      return kC;
    case ElementClass::kOther:
      return 0;
  }
  return 0;
}

unsigned allowed(Opcode opcode) {
  switch (opcode) {
    case Opcode::abs:
      return kS | kF | kC;
    case Opcode::negate:
      return kNumbers;
    case Opcode::sign:
      return kS | kF | kC;
    case Opcode::cbrt:
    case Opcode::cosine:
    case Opcode::exponential:
    case Opcode::exponential_minus_one:
    case Opcode::log:
    case Opcode::log_plus_one:
    case Opcode::logistic:
    case Opcode::rsqrt:
    case Opcode::sine:
    case Opcode::sqrt:
    case Opcode::tan:
    case Opcode::tanh:
    case Opcode::atan2:
      return kF | kC;
    case Opcode::ceil:
    case Opcode::floor:
    case Opcode::round_nearest_afz:
    case Opcode::round_nearest_even:
    case Opcode::is_finite:
    case Opcode::reduce_precision:
      return kF;
    case Opcode::chlo_mulhi:
    case Opcode::count_leading_zeros:
    case Opcode::popcnt:
    case Opcode::shift_left:
    case Opcode::shift_right_logical:
    case Opcode::shift_right_arithmetic:
      return kInts;
    case Opcode::not_:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
      return kInts | kP;
    case Opcode::divide:
    case Opcode::power:
    case Opcode::remainder:
    case Opcode::subtract:
      return kNumbers;
    default:
      return kAny;
  }
}

// Storage types of quantized tensors stand for numbers of another kind, so their class says nothing.
llvm::Error needClass(OpCheck& c, size_t operand) {
  const Type& type = c.in(operand);
  if (!type.encoding.empty() || (classOf(type.element) & allowed(c.op.opcode))) return llvm::Error::success();
  return c.fail(I(operand + 1), "does not take " + elementTypeName(type.element));
}

llvm::Error needSameTypes(OpCheck& c, size_t a, size_t b, Label label) {
  if (compatible(c.in(a), c.in(b))) return llvm::Error::success();
  return c.fail(label, "operands differ in type: " + c.text(c.in(a)) + " and " + c.text(c.in(b)));
}

// Dims of two compatible shapes, static where either is.
Dims merge(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  Dims dims(a.begin(), a.end());
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == kDynamicDim) dims[i] = b[i];
  return dims;
}

ElementType partOf(ElementType element) {
  if (element == ElementType::kC64) return ElementType::kF32;
  return element == ElementType::kC128 ? ElementType::kF64 : element;
}

}  // namespace

llvm::Error ruleUnary(OpCheck& c) {
  c.resultsBy(C(1), C(1));
  if (auto e = c.needTensors()) return e;
  if (auto e = needClass(c, 0)) return e;
  c.yield(c.in(0));
  return llvm::Error::success();
}

llvm::Error ruleBinary(OpCheck& c) {
  c.resultsBy(C(1), C(1));
  if (auto e = c.needTensors()) return e;
  if (c.op.opcode == Opcode::add && anyQuantized(c))
    if (auto e = needSumQuantization(c)) return e;
  if (auto e = needClass(c, 0)) return e;
  if (auto e = needSameTypes(c, 0, 1, C(1))) return e;
  Type type = c.in(0);
  type.dims = merge(c.in(0).dims, c.in(1).dims);
  c.yield(std::move(type));
  return llvm::Error::success();
}

llvm::Error ruleUnaryToPred(OpCheck& c) {
  c.resultsBy(O(1), C(1));
  if (auto e = c.needTensors()) return e;
  if (!isFloat(c.in(0).element) && !isQuantized(c.in(0)))
    return c.fail(I(1), "does not take " + elementTypeName(c.in(0).element));
  c.yield(ElementType::kPred, c.in(0).dims);
  return llvm::Error::success();
}

llvm::Error ruleConvert(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  if (!compatibleDims(c.in(0).dims, c.out(0).dims))
    return c.fail(C(1), "changes the shape from " + c.text(c.in(0)) + " to " + c.text(c.out(0)));
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleConstantLike(OpCheck& c) {
  const Attr* value = c.m.findAttr(c.id, AttrKey::value);
  if (!value || !value->literal || c.m.type(c.m.literal(value->literal).type).rank() != 0)
    return c.fail("needs a scalar value");
  return ruleConvert(c);
}

llvm::Error ruleUniformQuantize(OpCheck& c) {
  if (auto e = ruleConvert(c)) return e;
  std::optional<Quantization> out = parseQuantization(c.out(0).encoding);
  if (!out) return c.fail(O(1), "the result " + c.text(c.out(0)) + " is not quantized");
  ElementType expressed = c.in(0).element;
  if (isQuantized(c.in(0))) {
    if (std::optional<Quantization> in = parseQuantization(c.in(0).encoding)) expressed = in->expressed;
  } else if (!isFloat(expressed)) {
    return c.fail(I(1), "does not take " + elementTypeName(expressed));
  }
  if (expressed == out->expressed) return llvm::Error::success();
  return c.fail(C(2), "the result expresses " + elementTypeName(out->expressed) + ", the operand " +
                          elementTypeName(expressed));
}

llvm::Error ruleUniformDequantize(OpCheck& c) {
  if (auto e = ruleConvert(c)) return e;
  std::optional<Quantization> in = parseQuantization(c.in(0).encoding);
  if (!in) return c.fail(I(1), "the operand " + c.text(c.in(0)) + " is not quantized");
  if (c.out(0).encoding.empty() && c.out(0).element == in->expressed) return llvm::Error::success();
  return c.fail(C(2), "the operand expresses " + elementTypeName(in->expressed) + ", the result is " +
                          c.text(c.out(0)));
}

llvm::Error ruleBitcastConvert(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  const Type& from = c.in(0);
  const Type& to = c.out(0);
  int a = elementBits(from.element), b = elementBits(to.element);
  if (isComplex(from.element) != isComplex(to.element))
    return c.fail(C(2), "views " + c.text(from) + " as " + c.text(to));
  Dims expected(from.dims);
  bool fits = true;
  if (a > b) {
    fits = a % b == 0;
    expected.push_back(a / b);
  } else if (a < b) {
    fits = b % a == 0 && !expected.empty() && (expected.back() == b / a || expected.back() == kDynamicDim);
    if (fits) expected.pop_back();
  }
  if (!fits || !compatibleDims(expected, to.dims))
    return c.fail(C(1), "cannot view " + c.text(from) + " as " + c.text(to));
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleRealPart(OpCheck& c) {
  c.resultsBy(C(2), C(1));
  if (auto e = c.needTensors()) return e;
  if (auto e = needClass(c, 0)) return e;
  Type type = c.in(0);
  if (c.op.opcode != Opcode::abs && !isComplex(type.element) && !isFloat(type.element))
    return c.fail(I(1), "does not take " + elementTypeName(type.element));
  type.element = partOf(type.element);
  c.yield(std::move(type));
  return llvm::Error::success();
}

llvm::Error ruleComplex(OpCheck& c) {
  c.resultsBy(C(3), C(2));
  if (auto e = c.needTensors()) return e;
  if (auto e = needSameTypes(c, 0, 1, C(1))) return e;
  ElementType part = c.in(0).element;
  if (part != ElementType::kF32 && part != ElementType::kF64)
    return c.fail(I(1), "takes f32 or f64 parts only");
  c.yield(part == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128,
          merge(c.in(0).dims, c.in(1).dims));
  return llvm::Error::success();
}

llvm::Error needCompareType(OpCheck& c) {
  const llvm::StringRef type = c.m.getString(c.id, AttrKey::compare_type);
  if (type.empty() || type == "NOTYPE" || !c.in(0).encoding.empty()) return llvm::Error::success();
  bool fits = type == "FLOAT";
  const unsigned of = classOf(c.in(0).element);
  if (of == kS) fits = type == "SIGNED";
  if (of == kU || of == kP) fits = type == "UNSIGNED";
  if (of == kF) fits = fits || type == "TOTALORDER";
  if (fits) return llvm::Error::success();
  return c.fail(C(3), "compares " + c.text(c.in(0)) + " as " + type);
}

llvm::Error ruleCompare(OpCheck& c) {
  c.resultsBy(O(1), C(2));
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needAttr(AttrKey::comparison_direction, I(3))) return e;
  if (c.in(0).element != c.in(1).element)
    return c.fail(C(1), "operands differ in type: " + c.text(c.in(0)) + " and " + c.text(c.in(1)));
  if (auto e = needSameTypes(c, 0, 1, C(2))) return e;
  if (auto e = needCompareType(c)) return e;
  Comparison direction = static_cast<Comparison>(c.num(AttrKey::comparison_direction));
  if (isComplex(c.in(0).element) && direction != Comparison::kEq && direction != Comparison::kNe)
    return c.fail(I(3), "complex numbers have no order");
  c.yield(ElementType::kPred, merge(c.in(0).dims, c.in(1).dims));
  return llvm::Error::success();
}

llvm::Error ruleClamp(OpCheck& c) {
  c.resultsBy(C(4), C(4));
  if (auto e = c.needTensors()) return e;
  for (size_t bound : {size_t{0}, size_t{2}}) {
    if (c.in(bound).element != c.in(1).element)
      return c.fail(C(3), "bound is " + c.text(c.in(bound)) + ", the operand " + c.text(c.in(1)));
    if (c.in(bound).rank() == 0) continue;
    if (auto e = c.needSameDims(bound, 1, C(bound ? 2 : 1))) return e;
  }
  c.yield(c.in(1));
  return llvm::Error::success();
}

llvm::Error ruleSelect(OpCheck& c) {
  c.resultsBy(C(2), C(2));
  if (auto e = c.needTensors()) return e;
  if (c.in(0).element != ElementType::kPred)
    return c.fail(I(1), "selects by " + c.text(c.in(0)) + ", expected pred");
  if (auto e = needSameTypes(c, 1, 2, C(2))) return e;
  if (c.in(0).rank() != 0)
    if (auto e = c.needSameDims(0, 1, C(1))) return e;
  Type type = c.in(1);
  type.dims = merge(c.in(1).dims, c.in(2).dims);
  c.yield(std::move(type));
  return llvm::Error::success();
}

llvm::Error ruleMap(OpCheck& c) {
  c.resultsBy(C(4), C(1));
  if (auto e = c.needTensors(1)) return e;
  for (size_t i = 1; i < c.numIn(); ++i)
    if (auto e = c.needSameDims(0, i, C(1))) return e;
  if (auto e = c.needAttr(AttrKey::dimensions, I(2))) return e;
  if (auto e = c.needLength(AttrKey::dimensions, c.in(0).dims.size(), C(3))) return e;
  for (auto [i, dim] : llvm::enumerate(c.ints(AttrKey::dimensions)))
    if (dim != static_cast<int64_t>(i))
      return c.fail(C(3), "dimensions " + listText(c.ints(AttrKey::dimensions)) + " are not those of " +
                              c.text(c.in(0)) + " in order");
  const Region& region = c.region(0);
  if (region.args.size() != c.numIn())
    return c.fail(C(4), "region takes " + llvm::Twine(region.args.size()) + " arguments, expected " +
                            llvm::Twine(c.numIn()));
  for (size_t i = 0; i < c.numIn(); ++i) {
    const Type& arg = c.m.typeOf(region.args[i]);
    if (!isScalarOf(arg, c.in(i).element))
      return c.fail(C(4), "region argument " + llvm::Twine(i) + " is " + c.text(arg) + " for an operand of " +
                              c.text(c.in(i)));
  }
  llvm::SmallVector<TypeId, 2> yields = c.yields(0);
  if (yields.size() != 1 || c.m.type(yields[0]).kind != TypeKind::kTensor || c.m.type(yields[0]).rank() != 0)
    return c.fail(C(4), "region must yield one scalar");
  c.yield(c.m.type(yields[0]).element, c.in(0).dims);
  return llvm::Error::success();
}

llvm::Error ruleReducePrecision(OpCheck& c) {
  if (c.num(AttrKey::exponent_bits) < 1) return c.fail(C(2), "needs at least one exponent bit");
  if (c.num(AttrKey::mantissa_bits) < 0) return c.fail(C(3), "negative number of mantissa bits");
  return ruleUnary(c);
}

// Implicit broadcast as in chlo: operands of lower rank are placed by broadcast_dimensions, else aligned at
// the last dimension; dimensions of size 1 stretch.
llvm::Error ruleChloBroadcast(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  int64_t rank = 0;
  for (size_t i = 0; i < c.numIn(); ++i) rank = std::max(rank, c.in(i).rank());
  Dims dims(static_cast<size_t>(rank), 1);
  for (size_t i = 0; i < c.numIn(); ++i) {
    const Type& type = c.in(i);
    bool placed = c.has(AttrKey::broadcast_dimensions) && type.rank() < rank &&
                  static_cast<int64_t>(c.ints(AttrKey::broadcast_dimensions).size()) == type.rank();
    for (int64_t d = 0; d < type.rank(); ++d) {
      int64_t to =
          placed ? c.ints(AttrKey::broadcast_dimensions)[static_cast<size_t>(d)] : rank - type.rank() + d;
      if (to < 0 || to >= rank) return c.fail("broadcast_dimensions leave the rank " + llvm::Twine(rank));
      int64_t& dim = dims[static_cast<size_t>(to)];
      int64_t own = type.dims[static_cast<size_t>(d)];
      if (dim == 1 || (dim == kDynamicDim && own != 1))
        dim = own;
      else if (own != 1 && own != dim && own != kDynamicDim)
        return c.fail("cannot broadcast " + c.text(type) + " with dimension " + llvm::Twine(dim));
    }
  }
  bool compares = c.op.opcode == Opcode::chlo_broadcast_compare;
  ElementType element = compares ? ElementType::kPred : c.in(c.numIn() - 1).element;
  if (c.op.opcode == Opcode::chlo_broadcast_complex)
    element = element == ElementType::kF64 ? ElementType::kC128 : ElementType::kC64;
  c.yield(element, dims);
  return llvm::Error::success();
}

}  // namespace tpu::hlo
