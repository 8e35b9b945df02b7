// The rule of custom calls. Nobody can say what operands an unknown one takes; those whose meaning the tools know must have
// the form that goes with it. And einsums, whose form stands in a text.
#include "check.h"
#include "llvm/ADT/StringSwitch.h"

namespace tpu::hlo {
namespace {

enum class Known { kNone, kSame, kElementwise, kBorder, kTopK, kCheck, kProbe };

Known knownOf(llvm::StringRef target) {
  return llvm::StringSwitch<Known>(target)
      .Cases("Sharding", "annotate_device_placement", "MoveToHost", "MoveToDevice", Known::kSame)
      .Cases("PinToHost", "LayoutConstraint", Known::kSame)
      .Cases("SPMDFullToShardShape", "SPMDShardToFullShape", Known::kBorder)
      .Cases("mhlo.erf", "mhlo.erf_inv", "mhlo.tan", "mhlo.acos", "mhlo.acosh", "mhlo.asin", Known::kElementwise)
      .Cases("mhlo.asinh", "mhlo.atan", "mhlo.atanh", "mhlo.cosh", "mhlo.sinh", "mhlo.square", Known::kElementwise)
      .Case("mhlo.topk", Known::kTopK)
      .Cases("check.eq", "check.expect_eq", "check.expect_eq_const", Known::kCheck)
      .Cases("check.expect_almost_eq", "check.expect_almost_eq_const", "check.expect_close", Known::kCheck)
      .Cases("interpreter.print", "interpreter.probe", "check.expect_serialized_eq", Known::kProbe)
      .Default(Known::kNone);
}

bool areTensors(OpCheck& c) {
  for (size_t i = 0; i < c.numIn(); ++i)
    if (c.in(i).kind != TypeKind::kTensor) return false;
  for (size_t i = 0; i < c.numOut(); ++i)
    if (c.out(i).kind != TypeKind::kTensor) return false;
  return true;
}

bool isTopK(OpCheck& c) {
  if (c.numIn() != 1 || c.numOut() != 2 || c.in(0).rank() < 1) return false;
  Type values = c.in(0);
  if (c.out(0).rank() != values.rank()) return false;
  values.dims.back() = c.out(0).dims.back();
  const bool fits = values.dims.back() == kDynamicDim || c.in(0).dims.back() == kDynamicDim ||
                    (values.dims.back() >= 0 && values.dims.back() <= c.in(0).dims.back());
  return fits && compatible(values, c.out(0)) && isInteger(c.out(1).element) && compatibleDims(c.out(1).dims, values.dims);
}

bool hasForm(OpCheck& c, Known known) {
  switch (known) {
    case Known::kNone:
      return true;
    case Known::kSame:
    case Known::kElementwise:
      return c.numIn() == 1 && c.numOut() == 1 && compatible(c.in(0), c.out(0));
    case Known::kBorder:
      return c.numIn() == 1 && c.numOut() == 1 && c.in(0).element == c.out(0).element && c.in(0).rank() == c.out(0).rank();
    case Known::kTopK:
      return isTopK(c);
    case Known::kCheck:
      return (c.numIn() == 2 || (c.numIn() == 1 && c.has(AttrKey::value))) &&
             (c.numOut() == 0 || (c.numOut() == 1 && isScalarOf(c.out(0), ElementType::kPred)));
    case Known::kProbe:
      return c.numIn() == 1 && (c.numOut() == 0 || (c.numOut() == 1 && compatible(c.in(0), c.out(0))));
  }
  return true;
}

}  // namespace

// interpreter.run_parallel: the operands of all processes in a row, and their results.
static llvm::Error needProcesses(OpCheck& c) {
  const Attr* programs = c.m.findAttr(c.id, AttrKey::programs);
  const int64_t partitions = c.num(AttrKey::grid_partitions, 1);
  if (!programs || programs->strs.empty() || partitions < 1 ||
      static_cast<int64_t>(programs->strs.size()) % partitions != 0)
    return c.fail("the grid of processes is not of so many partitions");
  size_t next = 0;
  for (const std::string& name : programs->strs) {
    const FuncId func = c.m.findFunc(name);
    if (!func) return c.fail("runs an unknown function '" + name + "'");
    for (ValueId arg : c.m.region(c.m.func(func).body).args) {
      if (next >= c.numIn() || !compatible(c.in(next), c.m.typeOf(arg)))
        return c.fail("has no operand of type " + c.text(c.m.typeOf(arg)) + " for @" + name);
      ++next;
    }
  }
  return llvm::Error::success();
}

llvm::Error ruleCustomCall(OpCheck& c) {
  const llvm::StringRef target = c.m.getString(c.id, AttrKey::call_target_name);
  if (target == "interpreter.run_parallel")
    if (auto e = needProcesses(c)) return e;
  const Known known = knownOf(target);
  if (known != Known::kNone && !(areTensors(c) && hasForm(c, known)))
    return c.fail("'" + target + "' does not take these operands, or does not give these results");
  c.yieldGiven();
  return llvm::Error::success();
}

// "ij,jk->ik": a letter for each dimension, one size for each letter. What "..." stands for is left to who runs it.
llvm::Error ruleEinsum(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  const llvm::StringRef text = c.m.getString(c.id, AttrKey::einsum_config);
  const auto [inputs, out] = text.split("->");
  c.yieldGiven();
  if (text.contains("...")) return llvm::Error::success();
  const auto bad = [&](const llvm::Twine& why) { return c.fail("einsum_config '" + text + "' " + why); };
  llvm::SmallVector<llvm::StringRef, 2> labels;
  inputs.split(labels, ',');
  if (!text.contains("->") || labels.size() != c.numIn()) return bad("is not of " + llvm::Twine(c.numIn()) + " operands");
  int64_t sizes[256];
  bool known[256] = {};
  const auto take = [&](llvm::StringRef letters, const Type& type, bool result) -> llvm::Error {
    letters = letters.trim();
    if (letters.size() != type.dims.size()) return bad("has other letters than the dimensions of " + c.text(type));
    for (size_t i = 0; i < letters.size(); ++i) {
      const auto l = static_cast<uint8_t>(letters[i]);
      if (!llvm::isAlpha(letters[i])) return bad("names a dimension by no letter");
      if (result && (!known[l] || letters.drop_front(i + 1).contains(letters[i])))
        return bad("gives a dimension that no operand has, or one twice");
      if (known[l] && sizes[l] != kDynamicDim && type.dims[i] != kDynamicDim && sizes[l] != type.dims[i])
        return bad("gives '" + llvm::Twine(letters[i]) + "' two sizes: " + llvm::Twine(sizes[l]) + " and " +
                   llvm::Twine(type.dims[i]));
      if (!known[l] || sizes[l] == kDynamicDim) sizes[l] = type.dims[i];
      known[l] = true;
    }
    return llvm::Error::success();
  };
  for (size_t i = 0; i < c.numIn(); ++i)
    if (auto e = take(labels[i], c.in(i), false)) return e;
  return take(out, c.out(0), true);
}

}  // namespace tpu::hlo
