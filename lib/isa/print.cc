// Text of one instruction. Documents hold millions of them, so everything is appended to one string without
// formatting machinery.
#include <charconv>

#include "tpu/isa/isa.h"

namespace tpu::isa {
namespace {

void appendInt(std::string& out, int64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

void appendHex(std::string& out, uint64_t value) {
  char buffer[24];
  out += "0x";
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, 16).ptr);
}

void appendRegister(std::string& out, RegClass cls, int reg, bool virt) {
  if (virt) out += '%';
  out += "svmp"[static_cast<int>(cls)];
  appendInt(out, reg);
}

void appendMem(std::string& out, const Operand& o) {
  out += '[';
  if (o.has_base) {
    appendRegister(out, RegClass::kScalar, o.reg, o.virt);
    if (o.imm > 0) out += '+';
    if (o.imm != 0) appendInt(out, o.imm);
  } else {
    appendInt(out, o.imm);
  }
  out += ']';
}

void appendLabel(std::string& out, int64_t label, llvm::ArrayRef<std::string> names) {
  if (static_cast<uint64_t>(label) < names.size()) {
    out += names[label];
    return;
  }
  out += 'L';
  appendInt(out, label);
}

void appendOperand(std::string& out, OperandKind kind, const Operand& o, llvm::ArrayRef<std::string> names) {
  switch (o.kind) {
    case Operand::kReg:
      return appendRegister(out, o.cls, o.reg, o.virt);
    case Operand::kMem:
      return appendMem(out, o);
    case Operand::kLabel:
      return appendLabel(out, o.imm, names);
    case Operand::kUnit:
      if (o.virt) out += '%';
      out += kind == OperandKind::Xlu ? "xlu" : "mxu";
      return appendInt(out, o.reg);
    case Operand::kImm:
      if (kind == OperandKind::U32) return appendHex(out, static_cast<uint32_t>(o.imm));
      return appendInt(out, o.imm);
  }
}

}  // namespace

void printTo(const Instruction& insn, llvm::ArrayRef<std::string> label_names, std::string& out) {
  if (insn.pred != kAlways || insn.pred_neg || insn.pred_virt) {
    out += insn.pred_neg ? "@!" : "@";
    appendRegister(out, RegClass::kPred, insn.pred, insn.pred_virt);
    out += ' ';
  }
  const InstructionInfo& row = info(insn.op);
  out.append(row.mnemonic.data(), row.mnemonic.size());
  for (int i = 0; i < insn.num_operands; ++i) {
    out += i ? ", " : " ";
    appendOperand(out, row.operands[i], insn.operands[i], label_names);
  }
}

std::string print(const Instruction& insn, llvm::ArrayRef<std::string> label_names) {
  std::string out;
  printTo(insn, label_names, out);
  return out;
}

}  // namespace tpu::isa
