// Rank-0 integers and predicates are computed by the driver's scalar unit, on SMEM words.
#include "lowering.h"

namespace tpu::lower {

using hlo::AttrKey;
using HloOp = hlo::Opcode;
using isa::Opcode;

namespace {

bool scalarType(ElementType t) { return t == ElementType::kS32 || t == ElementType::kU32 || t == ElementType::kPred; }

bool scalarOp(HloOp op) {
  switch (op) {
    case HloOp::add: case HloOp::subtract: case HloOp::multiply: case HloOp::divide: case HloOp::remainder:
    case HloOp::and_: case HloOp::or_: case HloOp::xor_: case HloOp::not_: case HloOp::maximum: case HloOp::minimum:
    case HloOp::compare: case HloOp::select: case HloOp::convert: case HloOp::negate: case HloOp::abs: case HloOp::clamp:
    case HloOp::shift_left: case HloOp::shift_right_logical: case HloOp::shift_right_arithmetic: return true;
    default: return false;
  }
}

}  // namespace

bool Lowering::driverScalar(hlo::OpId id) const {
  const hlo::Op& op = m_.op(id);
  if (!scalarOp(op.opcode) || op.results.size() != 1 || !isScalar(op.results[0]) || !scalarType(typeOf(op.results[0]).element)) return false;
  for (hlo::ValueId v : op.operands)
    if (!isScalar(v) || !scalarType(typeOf(v).element)) return false;
  return true;
}

llo::S Lowering::loadScalar(int32_t smem) {
  llo::S address = b_.pseudo(llo::PseudoKind::kSmem, smem);
  llo::S word = b_.s(Opcode::sld, {llo::Addr{address, 0}});
  switch (out_.buffers[smem].element) {
    case ElementType::kPred: case ElementType::kU8: return b_.s(Opcode::sand, {word, 0xff});
    case ElementType::kS8: return b_.s(Opcode::sshra, {b_.s(Opcode::sshl, {word, 24}), 24});
    default: return word;
  }
}

void Lowering::storeScalar(int32_t smem, llo::S value) {
  llo::S address = b_.pseudo(llo::PseudoKind::kSmem, smem);
  b_.emit(Opcode::sst, {llo::Addr{address, 0}, value});
}

// Integer index clamped to [0, limit]; unsigned indices beyond the signed range clamp to the limit.
llo::S Lowering::clampIndex(hlo::ValueId index, int64_t limit, llvm::Error& err) {
  auto word = scalar(index);
  if (!word) {
    err = word.takeError();
    return b_.imm(0);
  }
  llo::S s = loadScalar(*word);
  if (isUnsigned(typeOf(index).element)) {
    llo::P below = b_.p(Opcode::scmp_leu, {s, limit});
    return b_.s(Opcode::ssel, {below, s, limit});
  }
  return b_.s(Opcode::smin, {b_.s(Opcode::smax, {s, 0}), limit});
}

llvm::Error Lowering::lowerDriverScalar(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  ElementType type = typeOf(op.results[0]).element;
  ElementType in_type = op.operands.empty() ? type : typeOf(op.operands[0]).element;
  bool is_unsigned = in_type == ElementType::kU32 || in_type == ElementType::kPred;
  llvm::SmallVector<llo::S, 3> in;
  for (hlo::ValueId v : op.operands) {
    auto word = scalar(v);
    if (!word) return word.takeError();
    in.push_back(loadScalar(*word));
  }
  auto two = [&](Opcode o) { return b_.s(o, {in[0], in[1]}); };
  auto pick = [&](llo::P p, llo::S a, llo::S b) { return b_.s(Opcode::ssel, {p, a, b}); };
  auto bit = [&](llo::P p) { return b_.s(Opcode::ssel, {p, b_.imm(1), 0}); };
  llo::S r;
  switch (op.opcode) {
    case HloOp::add: r = two(type == ElementType::kPred ? Opcode::sor : Opcode::sadd); break;
    case HloOp::subtract: r = two(Opcode::ssub); break;
    case HloOp::multiply: r = two(type == ElementType::kPred ? Opcode::sand : Opcode::smul); break;
    case HloOp::divide: r = two(is_unsigned ? Opcode::sdivu : Opcode::sdivs); break;
    case HloOp::remainder: r = two(is_unsigned ? Opcode::sremu : Opcode::srems); break;
    case HloOp::and_: r = two(Opcode::sand); break;
    case HloOp::or_: r = two(Opcode::sor); break;
    case HloOp::xor_: r = two(Opcode::sxor); break;
    case HloOp::not_: r = b_.s(Opcode::sxor, {in[0], type == ElementType::kPred ? 1 : -1}); break;
    case HloOp::shift_left: r = two(Opcode::sshl); break;
    case HloOp::shift_right_logical: r = two(Opcode::sshr); break;
    case HloOp::shift_right_arithmetic: r = two(Opcode::sshra); break;
    case HloOp::negate: r = b_.s(Opcode::ssub, {b_.imm(0), in[0]}); break;
    case HloOp::abs: r = b_.s(Opcode::smax, {in[0], b_.s(Opcode::ssub, {b_.imm(0), in[0]})}); break;
    case HloOp::maximum:
      r = is_unsigned ? pick(b_.p(Opcode::scmp_ltu, {in[0], in[1]}), in[1], in[0]) : two(Opcode::smax);
      break;
    case HloOp::minimum:
      r = is_unsigned ? pick(b_.p(Opcode::scmp_ltu, {in[0], in[1]}), in[0], in[1]) : two(Opcode::smin);
      break;
    case HloOp::clamp:
      if (is_unsigned) {
        llo::S low = pick(b_.p(Opcode::scmp_ltu, {in[1], in[0]}), in[0], in[1]);
        r = pick(b_.p(Opcode::scmp_ltu, {low, in[2]}), low, in[2]);
      } else {
        r = b_.s(Opcode::smin, {b_.s(Opcode::smax, {in[1], in[0]}), in[2]});
      }
      break;
    case HloOp::select: r = pick(b_.p(Opcode::scmp_ne, {in[0], 0}), in[1], in[2]); break;
    case HloOp::convert: r = type == ElementType::kPred ? bit(b_.p(Opcode::scmp_ne, {in[0], 0})) : in[0]; break;
    case HloOp::compare: {
      llvm::StringRef d = m_.getString(id, AttrKey::comparison_direction);
      llo::S a = in[0], b = in[1];
      if (d == "GT" || d == "GE") std::swap(a, b);
      Opcode o = d == "EQ" ? Opcode::scmp_eq : d == "NE" ? Opcode::scmp_ne
                 : d == "LT" || d == "GT" ? (is_unsigned ? Opcode::scmp_ltu : Opcode::scmp_lt)
                                          : (is_unsigned ? Opcode::scmp_leu : Opcode::scmp_le);
      r = bit(b_.p(o, {a, b}));
      break;
    }
    default: return refuse(id);
  }
  int32_t word = resultBuffer(op.results[0], {});
  storeScalar(word, r);
  addForm(op.results[0], word, {});
  return llvm::Error::success();
}

}  // namespace tpu::lower
