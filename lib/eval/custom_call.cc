// Custom calls whose meaning is known by name: markers of shardings and memory, ops that frameworks spell as
// calls, and the checks of conformance programs.
#include <cmath>
#include <cstdlib>

#include "interpreter.h"
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

// How near the operands of a check must be.
enum class Nearness { kEqual, kAlmost, kClose };
constexpr int64_t kCloseUlps = 3;

// Steps between two values of a type, in that type.
int64_t ulpsBetween(ElementType type, double x, double y) {
  const auto rank = [&](double v) {
    Tensor t = makeTensor(ElementType::kF64, {});
    *t->data<double>() = v;
    t = convertTo(t, type);
    const auto magnitude = static_cast<int64_t>((uint64_t{1} << (elementBits(type) - 1)) - 1);
    const int64_t code = integerAt(*t, 0) & magnitude;
    return std::signbit(v) ? -code : code;
  };
  return std::llabs(rank(x) - rank(y));
}

bool nearEnough(ElementType type, double x, double y, Nearness nearness) {
  if (x == y || (x != x && y != y)) return true;
  if (nearness == Nearness::kEqual || x - x != 0 || y - y != 0) return false;
  if (nearness == Nearness::kClose) return ulpsBetween(type, x, y) <= kCloseUlps;
  return std::fabs(x - y) <= 0.001 * std::fmax(1.0, std::fmin(std::fabs(x), std::fabs(y)));
}

// Real or imaginary parts.
Tensor partOf(const Tensor& t, size_t offset) {
  const ElementType half = t->element == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
  Tensor out = makeTensor(half, t->dims);
  stridedCopy({t->numElements()}, hostBytes(half), t->bytes.data() + offset * hostBytes(half), {2},
              out->bytes.data(), {1});
  return out;
}

bool agree(const Tensor& got, const Tensor& want, Nearness nearness) {
  if (got->element != want->element || got->dims != want->dims) return false;
  if (isComplex(got->element))
    return agree(partOf(got, 0), partOf(want, 0), nearness) &&
           agree(partOf(got, 1), partOf(want, 1), nearness);
  if (!isFloat(got->element)) return got->bytes == want->bytes;
  const Tensor a = convertTo(got, ElementType::kF64), b = convertTo(want, ElementType::kF64);
  for (int64_t i = 0; i < a->numElements(); ++i)
    if (!nearEnough(got->element, a->data<double>()[i], b->data<double>()[i], nearness)) return false;
  return true;
}

std::optional<Nearness> checkOf(llvm::StringRef target) {
  if (target == "check.expect_eq") return Nearness::kEqual;
  if (target == "check.expect_almost_eq") return Nearness::kAlmost;
  if (target == "check.expect_close") return Nearness::kClose;
  return std::nullopt;
}

}  // namespace

LanesOutcome Interpreter::runCustomCall(hlo::OpId id, LaneList in, const Team& team) {
  const llvm::StringRef target = module_.getString(id, AttrKey::call_target_name);
  for (llvm::StringRef name : kIdentity)
    if (target == name) return in;
  if (const std::optional<Nearness> check = checkOf(target)) {
    for (int64_t d : team.devices)
      if (!agree(in[0].at(d), in[1].at(d), *check))
        return fail(Code::kEvalCheckFailed, locOf(id), target + ": the operands differ",
                    ExitStatus::kDiffers);
    return LaneList{};
  }
  if (target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape")
    return runShapeBorder(id, std::move(in[0]), target == "SPMDFullToShardShape", team);
  const bool known =
      target == "mhlo.topk" || llvm::any_of(kRenamed, [&](const Renamed& r) { return r.target == target; });
  if (known) return runKernelOnLanes(id, std::move(in), team);
  return fail(Code::kEvalUnsupported, locOf(id), "the evaluator does not know custom_call '" + target + "'");
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
