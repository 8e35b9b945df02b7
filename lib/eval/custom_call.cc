// Custom calls whose meaning is known by name: markers of shardings and memory, ops that frameworks spell as
// calls, and the checks of conformance programs.
#include "checks.h"
#include "interpreter.h"
#include "tpu/hlo/literal.h"
#include "values.h"

namespace tpu::eval {
namespace {

struct Renamed {
  llvm::StringLiteral target;
  Opcode opcode;
};
// Calls that stand for an elementwise op.
constexpr Renamed kRenamed[] = {
    {"mhlo.erf", Opcode::chlo_erf},     {"mhlo.erf_inv", Opcode::chlo_erf_inv},
    {"mhlo.tan", Opcode::tan},          {"mhlo.acos", Opcode::chlo_acos},
    {"mhlo.acosh", Opcode::chlo_acosh}, {"mhlo.asin", Opcode::chlo_asin},
    {"mhlo.asinh", Opcode::chlo_asinh}, {"mhlo.atan", Opcode::chlo_atan},
    {"mhlo.atanh", Opcode::chlo_atanh}, {"mhlo.cosh", Opcode::chlo_cosh},
    {"mhlo.sinh", Opcode::chlo_sinh},   {"mhlo.square", Opcode::chlo_square},
};

// Markers that give their operand back.
constexpr llvm::StringLiteral kIdentity[] = {
    "Sharding", "annotate_device_placement", "MoveToHost", "MoveToDevice", "PinToHost", "LayoutConstraint"};

}  // namespace

LanesOutcome Interpreter::runCustomCall(hlo::OpId id, LaneList in, const Team& team) {
  const llvm::StringRef target = module_.getString(id, AttrKey::call_target_name);
  for (llvm::StringRef name : kIdentity)
    if (target == name) return in;
  if (target == hlo::kElidedConstant) return fail(Code::kBadLiteral, locOf(id), hlo::kElidedAdvice);
  if (isCheck(target)) return runCheck(id, in, team);
  if (target.starts_with("interpreter.") || target == "check.expect_serialized_eq")
    return runInterpreterOp(id, std::move(in), team);
  if (target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape")
    return runShapeBorder(id, std::move(in[0]), target == "SPMDFullToShardShape", team);
  const bool known =
      target == "mhlo.topk" || llvm::any_of(kRenamed, [&](const Renamed& r) { return r.target == target; });
  if (known) return runKernelOnLanes(id, std::move(in), team);
  const std::string name = nameOfCall(module_, id);
  if (const Replacements* others = host_.options.replacements)
    if (const auto it = others->find(name); it != others->end()) return runReplacement(id, it->second, in, team);
  const std::string whose = name == target ? "" : " with the kernel '" + name + "'";
  return fail(Code::kEvalUnsupported, locOf(id), "the evaluator does not know custom_call '" + target + "'" + whose +
                                                     "; --replace-call=" + name + "=FILE runs a program in its place");
}

// check.eq gives whether it holds, the others give nothing; all stop the program where they do not.
LanesOutcome Interpreter::runCheck(hlo::OpId id, const LaneList& in, const Team& team) {
  const hlo::Attr* value = module_.findAttr(id, AttrKey::value);
  for (int64_t d : team.devices) {
    const Tensor got = in[0].at(d), want = value ? literalAt(value->literal) : in[1].at(d);
    if (llvm::Error e = checkHolds(module_, id, *got, *want)) return e;
  }
  if (module_.op(id).results.empty()) return LaneList{};
  return LaneList{Lanes(scalarOf(ElementType::kPred, 1))};
}

Outcome customCall(Call& call) {
  const llvm::StringRef target = call.module.getString(call.id, AttrKey::call_target_name);
  if (target == "mhlo.topk") return topK(call);
  for (const Renamed& r : kRenamed)
    if (r.target == target) {
      Tensor out = unaryOf(r.opcode, call.in[0]);
      if (out) return Tensors{out};
    }
  return unsupported(call, "'" + target + "'");
}

}  // namespace tpu::eval
