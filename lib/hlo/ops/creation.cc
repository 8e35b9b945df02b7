// Rules of operations that make values out of nothing: constants, counters, random bits, device ids.
#include "check.h"

namespace tpu::hlo {

llvm::Error ruleConstant(OpCheck& c) {
  c.resultsBy(C(1), C(1));
  const Attr* value = c.m.findAttr(c.id, AttrKey::value);
  if (!value || !value->literal) return c.fail(I(1), "has no value");
  const Literal& literal = c.m.literal(value->literal);
  const Type& type = c.m.type(literal.type);
  if (type.kind != TypeKind::kTensor) return c.fail(I(1), "its value is no tensor");
  size_t count = literal.splat ? 1 : static_cast<size_t>(type.numElements());
  if (literal.bytes.size() != count * static_cast<size_t>(hostBytes(type.element)))
    return c.fail(I(1), "value has " + llvm::Twine(literal.bytes.size()) + " bytes, " + c.text(type) +
                            " needs " + llvm::Twine(count * static_cast<size_t>(hostBytes(type.element))));
  c.yield(type);
  return llvm::Error::success();
}

llvm::Error ruleIota(OpCheck& c) {
  if (auto e = c.needGiven()) return e;
  if (auto e = c.needDim(AttrKey::iota_dimension, c.out(0).rank(), C(1))) return e;
  if (c.out(0).element == ElementType::kPred) return c.fail(O(1), "does not count in pred");
  if (auto e = c.needStaticResult(0, O(1))) return e;
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleRng(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  for (size_t i : {0, 1}) {
    if (auto e = c.needRank(i, 0, I(i + 1))) return e;
    if (isComplex(c.in(i).element))
      return c.fail(I(i + 1), "does not take " + elementTypeName(c.in(i).element));
    if (c.in(i).element != c.out(0).element) return c.fail(C(1), "bounds and result differ in element type");
  }
  if (auto e = c.needAttr(AttrKey::rng_distribution, I(4))) return e;
  if (c.m.getString(c.id, AttrKey::rng_distribution) == "NORMAL" && !isFloat(c.out(0).element))
    return c.fail(C(2), "normal distribution of " + elementTypeName(c.out(0).element));
  if (c.numIn() == 3)
    if (auto e = c.needResultShape(2, I(3), C(3))) return e;
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleRngBitGenerator(OpCheck& c) {
  c.resultsBy(C(1), C(1));
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven(2)) return e;
  if (auto e = c.needRank(0, 1, I(2))) return e;
  if (auto e = c.needAttr(AttrKey::rng_algorithm, I(1))) return e;
  if (auto e = c.needStaticResult(1, O(2))) return e;
  const Type& state = c.in(0);
  if (!isInteger(state.element)) return c.fail(I(2), "the state is " + c.text(state) + ", expected integers");
  if (!compatibleDims(state.dims, c.out(0).dims))
    return c.fail(C(1), "the new state differs in shape from the old");
  // The state's size is that of 64-bit words; other integers hold as many bits.
  const llvm::StringRef algorithm = c.m.getString(c.id, AttrKey::rng_algorithm);
  if (state.dims[0] != kDynamicDim && (algorithm == "THREE_FRY" || algorithm == "PHILOX")) {
    const int64_t bits = elementBits(state.element);
    const bool fits =
        state.dims[0] == 2 * 64 / bits || (algorithm == "PHILOX" && state.dims[0] == 3 * 64 / bits);
    if (!fits) return c.fail(C(2), algorithm + " takes no state of " + c.text(state));
  }
  if (isComplex(c.out(1).element) || c.out(1).element == ElementType::kPred)
    return c.fail(O(2), "does not make " + elementTypeName(c.out(1).element));
  c.yield(state);
  c.yield(c.out(1));
  return llvm::Error::success();
}

llvm::Error ruleDeviceId(OpCheck& c) {
  c.resultsBy(O(1), O(1));
  c.yield(ElementType::kU32, {});
  return llvm::Error::success();
}

}  // namespace tpu::hlo
