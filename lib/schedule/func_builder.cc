#include "func_builder.h"

namespace tpu::schedule {
namespace {

// While a function is being built, a branch to a label that is not placed yet holds ~label.
isa::Operand labelOperand(int64_t value) {
  isa::Operand o;
  o.kind = isa::Operand::kLabel;
  o.imm = value;
  return o;
}

}  // namespace

isa::Operand physicalScalar(int reg) {
  isa::Operand o;
  o.kind = isa::Operand::kReg;
  o.cls = isa::RegClass::kScalar;
  o.reg = reg;
  return o;
}

Insn& FuncBuilder::append(const isa::Instruction& insn) {
  Insn& i = block().code.emplace_back();
  i.insn = insn;
  i.op = op_;
  return i;
}

Insn& FuncBuilder::emit(isa::Opcode op, std::initializer_list<llo::Arg> args, Guard guard) {
  isa::Instruction insn;
  insn.op = op;
  for (const llo::Arg& a : args) insn.operands[insn.num_operands++] = a.o;
  if (guard.id >= 0) {
    insn.pred = guard.id;
    insn.pred_virt = true;
    insn.pred_neg = guard.negated;
  }
  return append(insn);
}

template <class Result>
Result FuncBuilder::define(Result result, isa::Opcode op, std::initializer_list<llo::Arg> args) {
  isa::Instruction insn;
  insn.op = op;
  insn.operands[insn.num_operands++] = llo::Arg(result).o;
  for (const llo::Arg& a : args) insn.operands[insn.num_operands++] = a.o;
  append(insn);
  return result;
}

llo::S FuncBuilder::s(isa::Opcode op, std::initializer_list<llo::Arg> args) { return define(newS(), op, args); }

llo::P FuncBuilder::p(isa::Opcode op, std::initializer_list<llo::Arg> args) { return define(newP(), op, args); }

int FuncBuilder::begin() {
  func_.blocks.emplace_back().depth = depth_;
  return current();
}

int FuncBuilder::newLabel() {
  label_block_.push_back(-1);
  return static_cast<int>(label_block_.size()) - 1;
}

void FuncBuilder::place(int label) { label_block_[label] = begin(); }

void FuncBuilder::branchTo(int label, Guard guard) { branchBack(~label, guard); }

void FuncBuilder::branchBack(int target, Guard guard) {
  Block& b = block();
  b.has_term = true;
  b.term = Insn();
  b.term.op = op_;
  b.term.insn.op = isa::Opcode::br;
  b.term.insn.num_operands = 1;
  b.term.insn.operands[0] = labelOperand(target);
  if (guard.id >= 0) {
    b.term.insn.pred = guard.id;
    b.term.insn.pred_virt = true;
    b.term.insn.pred_neg = guard.negated;
  }
  begin();
}

void FuncBuilder::terminate(isa::Opcode op, std::initializer_list<llo::Arg> args) {
  emit(op, args);
  Block& b = block();
  b.term = b.code.back();
  b.code.pop_back();
  b.has_term = true;
  begin();
}

void FuncBuilder::call(int callee, int link_register) {
  Block& b = block();
  b.has_term = true;
  b.term = Insn();
  b.term.op = op_;
  b.term.insn.op = isa::Opcode::call;
  b.term.insn.num_operands = 2;
  b.term.insn.operands[0] = physicalScalar(link_register);
  b.term.insn.operands[1] = labelOperand(callee);
  begin();
}

void FuncBuilder::finish() {
  for (Block& b : func_.blocks) {
    if (!b.has_term || b.term.insn.op != isa::Opcode::br) continue;
    int64_t& target = b.term.insn.operands[0].imm;
    if (target < 0) target = label_block_[~target];
  }
}

}  // namespace tpu::schedule
