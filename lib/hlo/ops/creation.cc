// Rules of operations that make values out of nothing: constants, counters, random bits, device ids.
#include "check.h"

namespace tpu::hlo {

llvm::Error ruleConstant(OpCheck& c) {
  const Attr* value = c.m.findAttr(c.id, AttrKey::value);
  if (!value || !value->literal) return c.fail("has no value");
  const Literal& literal = c.m.literal(value->literal);
  const Type& type = c.m.type(literal.type);
  if (type.kind != TypeKind::kTensor) return c.fail("its value is no tensor");
  size_t count = literal.splat ? 1 : static_cast<size_t>(type.numElements());
  if (literal.bytes.size() != count * static_cast<size_t>(hostBytes(type.element)))
    return c.fail("value has " + llvm::Twine(literal.bytes.size()) + " bytes, " + c.text(type) + " needs " +
                  llvm::Twine(count * static_cast<size_t>(hostBytes(type.element))));
  c.yield(type);
  return llvm::Error::success();
}

llvm::Error ruleIota(OpCheck& c) {
  if (auto e = c.needGiven()) return e;
  if (auto e = c.needDim(AttrKey::iota_dimension, c.out(0).rank())) return e;
  if (c.out(0).element == ElementType::kPred) return c.fail("does not count in pred");
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleRng(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  for (size_t i : {0, 1}) {
    if (auto e = c.needRank(i, 0)) return e;
    if (c.in(i).element != c.out(0).element) return c.fail("bounds and result differ in element type");
  }
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleRngBitGenerator(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven(2)) return e;
  if (auto e = c.needRank(0, 1)) return e;
  if (!compatibleDims(c.in(0).dims, c.out(0).dims))
    return c.fail("the new state differs in shape from the old");
  c.yield(c.in(0));
  c.yield(c.out(1));
  return llvm::Error::success();
}

llvm::Error ruleDeviceId(OpCheck& c) {
  c.yield(ElementType::kU32, {});
  return llvm::Error::success();
}

}  // namespace tpu::hlo
