// Writes structured llo code: typed virtual registers in, statements out. Each call appends to the innermost open block.
#pragma once
#include <cassert>
#include <initializer_list>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "tpu/llo/llo.h"

namespace tpu::llo {

struct S { int32_t id = -1; };
struct V { int32_t id = -1; };
struct M { int32_t id = -1; };
struct P { int32_t id = -1; };
struct MxuUnit { int32_t id = 0; };
struct XluUnit { int32_t id = 0; };
/// [base + offset]; no base: absolute.
struct Addr {
  S base;
  int64_t offset = 0;
};

/// One operand of an instruction, made from a register, an immediate, an address or a unit.
struct Arg {
  isa::Operand o;
  Arg(S r) { reg(isa::RegClass::kScalar, r.id); }
  Arg(V r) { reg(isa::RegClass::kVector, r.id); }
  Arg(M r) { reg(isa::RegClass::kMask, r.id); }
  Arg(P r) { reg(isa::RegClass::kPred, r.id); }
  Arg(MxuUnit u) { unit(u.id); }
  Arg(XluUnit u) { unit(u.id); }
  Arg(Addr a) {
    o.kind = isa::Operand::kMem;
    o.has_base = a.base.id >= 0;
    o.virt = o.has_base;
    o.reg = o.has_base ? a.base.id : 0;
    o.imm = a.offset;
  }
  Arg(int64_t v) { imm(v); }
  Arg(int v) { imm(v); }
  Arg(uint32_t v) { imm(static_cast<int64_t>(v)); }
  Arg(Scalar s) {
    if (s.is_reg) reg(isa::RegClass::kScalar, s.reg);
    else imm(s.imm);
  }

 private:
  void reg(isa::RegClass cls, int32_t id) {
    assert(id >= 0 && "register without a value");
    o.kind = isa::Operand::kReg;
    o.cls = cls;
    o.virt = true;
    o.reg = id;
  }
  void unit(int32_t id) {
    o.kind = isa::Operand::kUnit;
    o.virt = true;
    o.reg = id;
  }
  void imm(int64_t v) {
    o.kind = isa::Operand::kImm;
    o.imm = v;
  }
};

class CodeBuilder {
 public:
  explicit CodeBuilder(Code& code) : code_(code) { open_.push_back(&code.body); }

  Code& code() { return code_; }
  /// The op slot given to statements from here on.
  void setOp(uint32_t op) { op_ = op; }

  S newS() { return {code_.num_s++}; }
  V newV() { return {code_.num_v++}; }
  M newM() { return {code_.num_m++}; }
  P newP() { return {code_.num_p++}; }
  MxuUnit newMxu() { return {code_.num_mxu++}; }
  XluUnit newXlu() { return {code_.num_xlu++}; }

  /// Appends an instruction with all operands given, destinations included.
  void emit(isa::Opcode op, std::initializer_list<Arg> args) { append(op, args.begin(), args.size()); }
  /// Appends an instruction whose first operand is a new register of the right class, and returns it.
  S s(isa::Opcode op, std::initializer_list<Arg> args) { return def<S>(newS(), op, args); }
  V v(isa::Opcode op, std::initializer_list<Arg> args) { return def<V>(newV(), op, args); }
  M m(isa::Opcode op, std::initializer_list<Arg> args) { return def<M>(newM(), op, args); }
  P p(isa::Opcode op, std::initializer_list<Arg> args) { return def<P>(newP(), op, args); }

  S imm(int64_t value) { return s(isa::Opcode::smov, {value}); }
  V vimm(uint32_t bits) { return v(isa::Opcode::vimm, {static_cast<int64_t>(bits)}); }
  V vimmF32(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, 4);
    return vimm(bits);
  }
  S pseudo(PseudoKind kind, int32_t index) {
    S r = newS();
    Stmt st = make(StmtKind::kPseudo);
    st.pseudo = kind;
    st.reg = r.id;
    st.index = index;
    push(std::move(st));
    return r;
  }
  S grid(int d) { return pseudo(PseudoKind::kGrid, d); }
  S param(int word) { return pseudo(PseudoKind::kParam, word); }
  S block(int b) { return pseudo(PseudoKind::kBlock, b); }
  S scratch(int i) { return pseudo(PseudoKind::kScratch, i); }

  /// for (i = 0; i < trip; ++i) body(i)
  void loop(Scalar trip, llvm::function_ref<void(S)> body) {
    S i = newS();
    Stmt st = make(StmtKind::kLoop);
    st.reg = i.id;
    st.amount = trip;
    nest(std::move(st), {[&] { body(i); }});
  }
  void loop(int64_t trip, llvm::function_ref<void(S)> body) { loop(Scalar{false, 0, trip}, body); }
  void loop(S trip, llvm::function_ref<void(S)> body) { loop(Scalar{true, trip.id, 0}, body); }
  /// if (pred) then() else otherwise()
  void ifThen(P pred, llvm::function_ref<void()> then) {
    Stmt st = make(StmtKind::kIf);
    st.reg = pred.id;
    nest(std::move(st), {then, [] {}});
  }
  void ifElse(P pred, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
    Stmt st = make(StmtKind::kIf);
    st.reg = pred.id;
    nest(std::move(st), {then, otherwise});
  }
  /// while (cond()) body(); cond appends code and returns the predicate register, the same on every evaluation.
  void whileLoop(llvm::function_ref<P()> cond, llvm::function_ref<void()> body) {
    Stmt st = make(StmtKind::kWhile);
    P pred;
    auto run_cond = [&] { pred = cond(); };
    st.blocks.resize(2);
    Block* outer[2] = {&st.blocks[0], &st.blocks[1]};
    open_.push_back(outer[0]);
    run_cond();
    open_.pop_back();
    open_.push_back(outer[1]);
    body();
    open_.pop_back();
    st.reg = pred.id;
    push(std::move(st));
  }

  void dma(Dma d) {
    Stmt st = make(StmtKind::kDma);
    st.index = static_cast<int32_t>(code_.dmas.size());
    code_.dmas.push_back(std::move(d));
    push(std::move(st));
  }
  void semWait(int32_t sem, Scalar amount) { push(semStmt(StmtKind::kSemWait, sem, amount)); }
  void semAdd(int32_t sem, Scalar amount) { push(semStmt(StmtKind::kSemAdd, sem, amount)); }
  void semSignal(Scalar device, int32_t sem, Scalar amount) {
    Stmt st = semStmt(StmtKind::kSemSignal, sem, amount);
    st.device = device;
    push(std::move(st));
  }
  S semRead(int32_t sem) {
    S r = newS();
    Stmt st = semStmt(StmtKind::kSemRead, sem, {});
    st.reg = r.id;
    push(std::move(st));
    return r;
  }
  void call(int32_t kernel, std::vector<CallArg> args, int32_t call_locs = -1) {
    Stmt st = make(StmtKind::kCall);
    st.index = kernel;
    st.args = std::move(args);
    st.call_locs = call_locs;
    push(std::move(st));
  }

 private:
  Stmt make(StmtKind kind) {
    Stmt st;
    st.kind = kind;
    st.op = op_;
    return st;
  }
  Stmt semStmt(StmtKind kind, int32_t sem, Scalar amount) {
    Stmt st = make(kind);
    st.index = sem;
    st.amount = amount;
    return st;
  }
  void push(Stmt st) { open_.back()->push_back(std::move(st)); }
  void append(isa::Opcode op, const Arg* args, size_t n) {
    assert(n <= isa::kMaxOperands);
    Stmt st = make(StmtKind::kInsn);
    st.insn.op = op;
    st.insn.num_operands = static_cast<uint8_t>(n);
    for (size_t i = 0; i < n; ++i) st.insn.operands[i] = args[i].o;
    push(std::move(st));
  }
  template <class R>
  R def(R r, isa::Opcode op, std::initializer_list<Arg> args) {
    Arg all[isa::kMaxOperands] = {r, 0, 0, 0, 0};
    size_t n = 1;
    for (const Arg& a : args) all[n++] = a;
    append(op, all, n);
    return r;
  }
  void nest(Stmt st, std::initializer_list<llvm::function_ref<void()>> bodies) {
    st.blocks.resize(bodies.size());
    size_t k = 0;
    for (auto& body : bodies) {
      open_.push_back(&st.blocks[k++]);
      body();
      open_.pop_back();
    }
    push(std::move(st));
  }

  Code& code_;
  uint32_t op_ = 0;
  std::vector<Block*> open_;
};

}  // namespace tpu::llo
