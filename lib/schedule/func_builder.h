// Appends machine instructions to the blocks of a Func. New blocks open at labels; a label is a block index
// that may be asked for before its block is begun.
#pragma once
#include <initializer_list>

#include "mir.h"
#include "tpu/llo/builder.h"

namespace tpu::schedule {

/// A predicate on emitted instructions; id < 0: always.
struct Guard {
  int32_t id = -1;
  bool negated = false;
};

class FuncBuilder {
 public:
  explicit FuncBuilder(Func& func) : func_(func) { begin(); }

  Func& func() { return func_; }
  void setOp(uint32_t op) { op_ = op; }
  uint32_t op() const { return op_; }

  llo::S newS() { return {func_.num_regs[0]++}; }
  llo::V newV() { return {func_.num_regs[1]++}; }
  llo::M newM() { return {func_.num_regs[2]++}; }
  llo::P newP() { return {func_.num_regs[3]++}; }

  Insn& emit(isa::Opcode op, std::initializer_list<llo::Arg> args, Guard guard = {});
  Insn& append(const isa::Instruction& insn);

  llo::S s(isa::Opcode op, std::initializer_list<llo::Arg> args);
  llo::P p(isa::Opcode op, std::initializer_list<llo::Arg> args);
  llo::S imm(int64_t value) { return s(isa::Opcode::smov, {value}); }
  void setReg(llo::S to, llo::Arg value, Guard guard = {}) { emit(isa::Opcode::smov, {to, value}, guard); }

  /// Ends the current block and opens the next one; returns its index.
  int begin();
  int current() const { return static_cast<int>(func_.blocks.size()) - 1; }
  /// A label for a block that comes later; `place` begins that block.
  int newLabel();
  void place(int label);
  /// Branch to a label, or to a block index (backwards); ends the block.
  void branchTo(int label, Guard guard = {});
  void branchBack(int block, Guard guard = {});
  void terminate(isa::Opcode op, std::initializer_list<llo::Arg> args);
  /// A call of function `callee`: its label is resolved when code is laid out.
  void call(int callee, int link_register);
  /// Replaces labels by block indices; call once at the end.
  void finish();

  void enterLoop() {
    ++depth_;
    func_.blocks.back().depth = depth_;
  }
  void leaveLoop() {
    --depth_;
    func_.blocks.back().depth = depth_;
  }

 private:
  template <class Result>
  Result define(Result result, isa::Opcode op, std::initializer_list<llo::Arg> args);
  Block& block() { return func_.blocks.back(); }
  Func& func_;
  uint32_t op_ = 0;
  int depth_ = 0;
  std::vector<int> label_block_;
};

isa::Operand physicalScalar(int reg);

}  // namespace tpu::schedule
