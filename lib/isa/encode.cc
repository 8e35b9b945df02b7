// The 64-bit instruction word: a walk over the row's operand kinds, packing fields from the high bits down.
#include "llvm/Support/MathExtras.h"
#include "tpu/isa/isa.h"

namespace tpu::isa {
namespace {

constexpr int kOpcodeShift = 55, kPredShift = 50;

RegClass classOf(OperandKind kind) {
  switch (kind) {
    case OperandKind::Vd:
    case OperandKind::Va:
    case OperandKind::Vb:
    case OperandKind::Vc:
    case OperandKind::Vx:
      return RegClass::kVector;
    case OperandKind::Md:
    case OperandKind::Ma:
    case OperandKind::Mb:
      return RegClass::kMask;
    case OperandKind::Pd:
    case OperandKind::Pa:
    case OperandKind::Pb:
      return RegClass::kPred;
    default:
      return RegClass::kScalar;
  }
}

llvm::Error outOfRange(const Instruction& insn, const llvm::Twine& what) {
  return fail(Code::kFieldRange, "", "'" + print(insn) + "': " + what);
}

// An immediate operand's field, or an error text.
llvm::Expected<uint64_t> immediateField(const Instruction& insn, OperandKind kind, int64_t imm) {
  bool fits;
  uint64_t field = static_cast<uint64_t>(imm);
  if (kind == OperandKind::SI || kind == OperandKind::U32) {
    fits = llvm::isInt<32>(imm) || llvm::isUInt<32>(imm);
    field = static_cast<uint32_t>(imm);
  } else {
    fits = llvm::isUIntN(kind == OperandKind::S16 ? 16 : fieldBits(kind), field);
  }
  if (!fits) return outOfRange(insn, "immediate " + llvm::Twine(imm) + " is out of range");
  return field;
}

llvm::Expected<uint64_t> memField(const Instruction& insn, const Operand& o) {
  const int unit = memUnit(insn.op);
  if (o.imm % unit)
    return outOfRange(insn, "offset " + llvm::Twine(o.imm) + " is not a multiple of " + llvm::Twine(unit));
  const int64_t units = o.imm / unit;
  if (o.has_base ? !llvm::isInt<18>(units) : !llvm::isUInt<18>(units))
    return outOfRange(insn, "offset " + llvm::Twine(o.imm) + " is out of range");
  if (o.has_base && (o.reg < 0 || o.reg > 31)) return outOfRange(insn, "no such base register");
  return (o.has_base ? uint64_t{1} << 23 | static_cast<uint64_t>(o.reg) << 18 : 0) |
         (static_cast<uint64_t>(units) & 0x3ffff);
}

llvm::Expected<uint64_t> operandField(const Instruction& insn, OperandKind kind, const Operand& o) {
  if (o.virt)
    return fail(Code::kVirtualRegister, "", "'" + print(insn) + "' names a virtual register or unit");
  const int bits = fieldBits(kind);
  switch (o.kind) {
    case Operand::kReg: {
      const bool choice = kind == OperandKind::SI || kind == OperandKind::S16;
      if (!llvm::isUIntN(choice ? 5 : bits, static_cast<uint64_t>(int64_t{o.reg})))
        return outOfRange(insn, "register " + llvm::Twine(o.reg) + " is out of range");
      return choice ? uint64_t{1} << (bits - 1) | static_cast<uint64_t>(o.reg) : static_cast<uint64_t>(o.reg);
    }
    case Operand::kUnit:
    case Operand::kLabel: {
      const int64_t value = o.kind == Operand::kUnit ? o.reg : o.imm;
      if (!llvm::isUIntN(bits, static_cast<uint64_t>(value)))
        return outOfRange(insn, "number " + llvm::Twine(value) + " is out of range");
      return static_cast<uint64_t>(value);
    }
    case Operand::kMem:
      return memField(insn, o);
    case Operand::kImm:
      return immediateField(insn, kind, o.imm);
  }
  return 0;
}

Operand decodeMem(uint64_t field, int unit) {
  Operand o;
  o.kind = Operand::kMem;
  o.has_base = field >> 23 & 1;
  o.reg = o.has_base ? static_cast<int32_t>(field >> 18 & 31) : 0;
  o.imm =
      (o.has_base ? llvm::SignExtend64<18>(field & 0x3ffff) : static_cast<int64_t>(field & 0x3ffff)) * unit;
  return o;
}

Operand decodeOperand(OperandKind kind, uint64_t field, int mem_unit) {
  Operand o;
  switch (kind) {
    case OperandKind::Mem:
      return decodeMem(field, mem_unit);
    case OperandKind::Mxu:
    case OperandKind::Xlu:
      o.kind = Operand::kUnit, o.reg = static_cast<int32_t>(field);
      return o;
    case OperandKind::Label:
      o.kind = Operand::kLabel, o.imm = static_cast<int64_t>(field);
      return o;
    case OperandKind::SI:
    case OperandKind::S16: {
      const bool is_register = field >> (fieldBits(kind) - 1) & 1;
      if (is_register) {
        o.kind = Operand::kReg, o.reg = static_cast<int32_t>(field & 31);
      } else {
        o.imm = kind == OperandKind::SI ? int64_t{static_cast<int32_t>(field)}
                                        : static_cast<int64_t>(field & 0xffff);
      }
      return o;
    }
    case OperandKind::I1:
    case OperandKind::I2:
    case OperandKind::I3:
    case OperandKind::I4:
    case OperandKind::I7:
    case OperandKind::I8:
    case OperandKind::U32:
      o.imm = static_cast<int64_t>(field);
      return o;
    default:
      o.kind = Operand::kReg, o.cls = classOf(kind), o.reg = static_cast<int32_t>(field);
      return o;
  }
}

llvm::Error badWord(uint64_t word) {
  return fail(Code::kBadEncoding, "", "0x" + llvm::Twine::utohexstr(word) + " is not an instruction");
}

}  // namespace

llvm::Expected<uint64_t> encode(const Instruction& insn) {
  const InstructionInfo& row = info(insn.op);
  assert(insn.num_operands == row.num_operands && "operands do not follow the row");
  if (insn.pred_virt)
    return fail(Code::kVirtualRegister, "", "'" + print(insn) + "' has a virtual predicate");
  if (insn.pred < 0 || insn.pred > 15) return outOfRange(insn, "no such predicate register");
  uint64_t word = static_cast<uint64_t>(insn.op) << kOpcodeShift;
  word |= (uint64_t{insn.pred_neg} << 4 | static_cast<uint64_t>(insn.pred)) << kPredShift;
  int shift = kPredShift;
  for (int i = 0; i < insn.num_operands; ++i) {
    auto field = operandField(insn, row.operands[i], insn.operands[i]);
    if (!field) return field.takeError();
    shift -= fieldBits(row.operands[i]);
    word |= *field << shift;
  }
  return word;
}

llvm::Expected<Instruction> decode(uint64_t word) {
  const uint64_t opcode = word >> kOpcodeShift;
  if (opcode >= static_cast<uint64_t>(Opcode::kCount)) return badWord(word);
  Instruction insn;
  insn.op = static_cast<Opcode>(opcode);
  insn.pred = static_cast<int32_t>(word >> kPredShift & 15);
  insn.pred_neg = word >> (kPredShift + 4) & 1;
  const InstructionInfo& row = info(insn.op);
  insn.num_operands = row.num_operands;
  int shift = kPredShift;
  for (int i = 0; i < row.num_operands; ++i) {
    const int bits = fieldBits(row.operands[i]);
    shift -= bits;
    insn.operands[i] =
        decodeOperand(row.operands[i], word >> shift & ((uint64_t{1} << bits) - 1), memUnit(insn.op));
  }
  auto again = encode(insn);  // spare bits and unused parts of fields must be zero
  if (!again) return again.takeError();
  if (*again != word) return badWord(word);
  return insn;
}

}  // namespace tpu::isa
