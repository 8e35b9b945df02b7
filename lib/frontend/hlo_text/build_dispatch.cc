// Which function builds which operation, as opcodes.def lists them, and the builders of a few lines.
#include <optional>

#include "build.h"

namespace tpu::frontend::hlo_text {

using llvm::StringRef;

namespace {

using hlo::Opcode;

std::optional<Opcode> rowOf(StringRef opcode) {
  static const llvm::StringMap<Opcode> rows = {
#define TPU_HLO_TEXT_OP(name, op) {name, Opcode::op},
#define TPU_HLO_TEXT_BUILT(name, function, ...)
#define TPU_HLO_TEXT_UNREAD(name, why)
#include "opcodes.def"
  };
  const auto found = rows.find(opcode);
  return found == rows.end() ? std::nullopt : std::optional(found->second);
}

StringRef whyUnread(StringRef opcode) {
  static const llvm::StringMap<StringRef> rows = {
#define TPU_HLO_TEXT_OP(name, op)
#define TPU_HLO_TEXT_BUILT(name, function, ...)
#define TPU_HLO_TEXT_UNREAD(name, why) {name, why},
#include "opcodes.def"
  };
  return rows.lookup(opcode);
}

}  // namespace

Build::Builder Build::builderOf(StringRef opcode) {
  static const llvm::StringMap<Builder> rows = {
#define TPU_HLO_TEXT_OP(name, op)
#define TPU_HLO_TEXT_BUILT(name, function, ...) {name, &Build::function},
#define TPU_HLO_TEXT_UNREAD(name, why)
#include "opcodes.def"
  };
  return rows.lookup(opcode);
}

bool Build::build(Frame& frame, const Instruction& i, Val* out) {
  if (const Builder builder = builderOf(i.opcode)) return (this->*builder)(frame, i, out);
  if (const auto row = rowOf(i.opcode)) return simple(frame, i, *row, i.shape, out);
  if (i.opcode.ends_with("-done")) return buildDone(frame, i, out);
  StringRef base = i.opcode;
  if (const auto row = base.consume_back("-start") ? rowOf(base) : std::nullopt) {
    Val result;
    return simple(frame, i, *row, resultShape(i, base), &result) && started(frame, i, base, std::move(result), out);
  }
  const StringRef why = whyUnread(i.opcode);
  if (why.empty()) return fail(i, "unknown operation '" + i.opcode + "' of HLO", Code::kUnknownOp);
  return fail(i, "operation '" + i.opcode + "' of HLO is not read: " + why, Code::kUnknownOp);
}

bool Build::someOperands(Frame& frame, const Instruction& i, size_t least, Vals* in) {
  return operands(frame, i, in) &&
         (in->size() >= least || fail(i, "'" + i.opcode + "' has too few operands"));
}

bool Build::leavesOf(Frame& frame, const Instruction& i, llvm::SmallVectorImpl<ValueId>* values) {
  Vals in;
  if (!operands(frame, i, &in)) return false;
  for (const Val& v : in)
    if (!leaves(v, i.at, *values)) return false;
  return true;
}

bool Build::buildTuple(Frame& frame, const Instruction& i, Val* out) {
  out->tuple = true;
  return operands(frame, i, &out->elements);
}

bool Build::buildElement(Frame& frame, const Instruction& i, Val* out) {
  Vals in;
  int64_t index;
  if (!someOperands(frame, i, 1, &in)) return false;
  if (i.get("index").getAsInteger(10, index) || !in[0].tuple || index < 0 ||
      index >= static_cast<int64_t>(in[0].elements.size()))
    return fail(i, "there is no element " + i.get("index") + " of this value");
  *out = in[0].elements[static_cast<size_t>(index)];
  return true;
}

bool Build::buildSame(Frame& frame, const Instruction& i, Val* out) {
  Vals in;
  if (!someOperands(frame, i, 1, &in)) return false;
  *out = in[0];
  return true;
}

bool Build::buildAfterAll(Frame& frame, const Instruction& i, Val* out) {
  llvm::SmallVector<ValueId, 4> tokens;
  if (!leavesOf(frame, i, &tokens)) return false;
  out->v = b.result(b.create(Opcode::after_all, tokens, {m.tokenType()}));
  return true;
}

bool Build::buildBarrier(Frame& frame, const Instruction& i, Val* out) {
  llvm::SmallVector<ValueId, 8> values;
  if (!leavesOf(frame, i, &values)) return false;
  llvm::SmallVector<hlo::TypeId, 8> types;
  for (ValueId v : values) types.push_back(m.value(v).type);
  std::vector<const Shape*> shapes;
  leaves(i.shape, shapes);
  if (shapes.size() != values.size()) return fail(i, "'" + i.opcode + "' does not give the tuple or array that is stated");
  const OpId op = b.create(Opcode::optimization_barrier, values, types);
  const llvm::SmallVector<ValueId, 8> made(m.op(op).results.begin(), m.op(op).results.end());
  llvm::ArrayRef<ValueId> rest(made);
  *out = assemble(i.shape, rest);
  return true;
}

bool Build::buildBitcast(Frame& frame, const Instruction& i, Val* out) {
  Vals in;
  if (!someOperands(frame, i, 1, &in)) return false;
  if (in[0].tuple || !in[0].v.valid() || i.shape.kind != Shape::kArray ||
      m.typeOf(in[0].v).kind != hlo::TypeKind::kTensor)
    return fail(i, "a bitcast takes an array");
  const auto operand = frame.computation->index.find(i.operands[0]);
  return bitcast(i, in[0].v, frame.computation->instructions[operand->second].shape, out);
}

bool Build::inlined(const Instruction& i, StringRef attribute, const Vals& in, Val* out) {
  const Computation* callee = called(i, attribute);
  Val result;
  if (!callee || !computation(*callee, in, &result)) return false;
  *out = std::move(result);
  return true;
}

// The body of a manual computation is entered by what stands around it.
bool Build::buildCall(Frame& frame, const Instruction& i, Val* out) {
  Vals in;
  if (!operands(frame, i, &in)) return false;
  const bool body = i.get("to_apply").ltrim("%").starts_with("xla.sdy.manual_computation_body");
  if (!body || (!in.empty() && !in[0].manual)) {
    return inlined(i, "to_apply", in, out);
  }
  out->manual = in.empty() ? std::make_shared<Manual>() : in[0].manual;
  out->manual->call = &i;
  for (const Val& v : in) out->manual->order.push_back(v.index);
  out->tuple = i.shape.kind == Shape::kTuple;
  out->elements.resize(out->tuple ? i.shape.elements.size() : 0, *out);
  return true;
}

bool Build::buildFusion(Frame& frame, const Instruction& i, Val* out) {
  Vals in;
  if (!operands(frame, i, &in)) return false;
  return inlined(i, "calls", in, out);
}

bool Build::buildAsyncStart(Frame& frame, const Instruction& i, Val* out) {
  Val result;
  return buildFusion(frame, i, &result) && started(frame, i, i.opcode, std::move(result), out);
}

bool Build::buildCopyStart(Frame& frame, const Instruction& i, Val* out) {
  Val copied;
  return buildSame(frame, i, &copied) && started(frame, i, i.opcode, std::move(copied), out);
}

bool Build::buildDone(Frame& frame, const Instruction& i, Val* out) {
  Vals in;
  if (!someOperands(frame, i, 1, &in)) return false;
  if (!in[0].done) return fail(i, "'" + i.opcode + "' without a start", Code::kUnsupportedFormat);
  *out = i.opcode == "async-update" ? in[0] : *in[0].done;
  return true;
}

bool Build::buildWhile(Frame& frame, const Instruction& i, Val* out) {
  Vals in;
  return someOperands(frame, i, 1, &in) && whileLoop(i, in[0], out);
}

bool Build::buildConditional(Frame& frame, const Instruction& i, Val* out) {
  Vals in;
  return operands(frame, i, &in) && conditional(i, in, out);
}

bool Build::buildAllToAll(Frame& frame, const Instruction& i, Val* out) {
  llvm::SmallVector<ValueId, 8> in;
  return leavesOf(frame, i, &in) && allToAll(i, in, out);
}

bool Build::buildRng(Frame& frame, const Instruction& i, Val* out) {
  llvm::SmallVector<ValueId, 8> in;
  return leavesOf(frame, i, &in) && rng(i, in, out);
}

}  // namespace tpu::frontend::hlo_text
