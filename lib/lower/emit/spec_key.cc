// Canonical text of specs, so that equal kernels are found, and which ops have emitters.
#include "expr.h"
#include "llvm/Support/raw_ostream.h"

namespace tpu::lower {
namespace {

void put(llvm::raw_ostream& os, const Dims& dims) {
  os << '[';
  for (int64_t d : dims) os << d << ',';
  os << ']';
}
void put(llvm::raw_ostream& os, const std::vector<ExprNode>& nodes) {
  for (const ExprNode& n : nodes) {
    os << ' ' << static_cast<int>(n.kind) << ':' << elementTypeName(n.type);
    if (n.kind == ExprNode::kConstant) os << '=' << n.bits;
    else if (n.kind == ExprNode::kOp) os << ':' << hlo::opInfo(n.op).mnemonic << '(' << n.detail << ')';
    else os << '#' << n.index;
    for (int a : n.args) os << ' ' << '%' << a;
    os << '@' << n.op_slot << ';';
  }
}
template <class T>
void putList(llvm::raw_ostream& os, const T& list) {
  os << '<';
  for (const auto& x : list) os << static_cast<int64_t>(x) << ',';
  os << '>';
}

bool isComparable(const ExprNode& node, ElementType t) {
  return node.type == ElementType::kPred && emit::isComputable(t);
}

}  // namespace

std::string specKey(const LoopSpec& spec) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "loop";
  put(os, spec.shape);
  for (const InputSpec& in : spec.inputs) {
    os << elementTypeName(in.type) << (in.scalar ? "s" : "");
    put(os, in.dims);
  }
  put(os, spec.nodes);
  putList(os, spec.outputs);
  return text;
}

std::string specKey(const ReduceSpec& spec) {
  std::string text = "reduce " + specKey(spec.producer);
  llvm::raw_string_ostream os(text);
  putList(os, spec.reduced);
  put(os, spec.combiner);
  putList(os, spec.combined);
  putList(os, spec.init_bits);
  putList(os, spec.init_inputs);
  return text;
}

std::string specKey(const DotSpec& spec) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "dot " << spec.batch << ' ' << spec.m << ' ' << spec.n << ' ' << spec.k << ' ' << elementTypeName(spec.lhs) << ' '
     << elementTypeName(spec.rhs) << ' ' << elementTypeName(spec.out) << (spec.rhs_transposed ? " t " : " ") << spec.passes;
  return text;
}

std::string specKey(const TransposeSpec& spec) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "transpose " << spec.batch << ' ' << spec.rows << ' ' << spec.cols << ' ' << elementTypeName(spec.type);
  return text;
}

bool canEmit(const ExprNode& node, llvm::ArrayRef<ElementType> args) {
  if (!emit::isComputable(node.type)) return false;
  for (ElementType t : args)
    if (!emit::isComputable(t)) return false;
  if (node.kind != ExprNode::kOp) return true;
  const bool is_float = isFloat(node.type), is_int = isInteger(node.type), is_pred = node.type == ElementType::kPred;
  using hlo::Opcode;
  switch (node.op) {
    case Opcode::convert: case Opcode::select: return true;
    case Opcode::bitcast_convert: return elementBits(node.type) == 32 && elementBits(args[0]) == 32;
    case Opcode::clamp: return is_float || is_int;
    case Opcode::compare: return isComparable(node, args[0]);
    case Opcode::is_finite: return is_pred && isFloat(args[0]);
    case Opcode::abs: case Opcode::negate: case Opcode::sign: case Opcode::chlo_square: case Opcode::subtract:
    case Opcode::divide: case Opcode::remainder: case Opcode::power: return is_float || is_int;
    case Opcode::add: case Opcode::multiply: case Opcode::maximum: case Opcode::minimum: return true;
    case Opcode::and_: case Opcode::or_: case Opcode::xor_: case Opcode::not_: return is_int || is_pred;
    case Opcode::popcnt: case Opcode::count_leading_zeros: case Opcode::shift_left: case Opcode::shift_right_arithmetic:
    case Opcode::shift_right_logical: return is_int;
    case Opcode::cbrt: case Opcode::ceil: case Opcode::cosine: case Opcode::exponential:
    case Opcode::exponential_minus_one: case Opcode::floor: case Opcode::log: case Opcode::log_plus_one:
    case Opcode::logistic: case Opcode::round_nearest_afz: case Opcode::round_nearest_even: case Opcode::rsqrt:
    case Opcode::sine: case Opcode::sqrt: case Opcode::tan: case Opcode::tanh: case Opcode::atan2:
    case Opcode::chlo_tan: case Opcode::chlo_erf: case Opcode::chlo_erf_inv: case Opcode::reduce_precision: return is_float;
    default: return false;
  }
}

}  // namespace tpu::lower
