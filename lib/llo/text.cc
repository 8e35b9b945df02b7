// llo for people: kernels with grid, blocks and body, then the driver; nesting by indentation.
#include "tpu/llo/document.h"

namespace tpu::llo {
namespace {

class Printer {
 public:
  Printer(const Module& m, llvm::raw_ostream& os) : m_(m), os_(os) {}

  void run() {
    os_ << "llo " << m_.target << ", " << m_.devices << (m_.devices == 1 ? " device\n" : " devices\n");
    for (size_t i = 0; i < m_.buffers.size(); ++i) buffer(i);
    for (const Kernel& k : m_.kernels) kernel(k);
    for (const Companion& c : m_.companions) {
      os_ << "companion " << c.name << " done " << registerName(isa::RegClass::kPred, c.done) << "\n";
      body(c.step);
    }
    os_ << "driver\n";
    body(m_.driver);
  }

 private:
  void buffer(size_t i) {
    constexpr const char* kRoles[] = {"", " argument", " result", " constant"};
    const Buffer& b = m_.buffers[i];
    os_ << "buffer " << i << " " << b.name << " " << typeText(b.element, b.dims) << " " << isa::spaceName(b.space) << kRoles[static_cast<int>(b.role)] << " " << b.bytes << " B";
    if (b.alias >= 0) os_ << " in " << b.alias;
    os_ << "\n";
  }

  void kernel(const Kernel& k) {
    os_ << "kernel " << k.name << "(";
    for (size_t i = 0; i < k.params.size(); ++i) os_ << (i ? ", " : "") << k.params[i].name;
    os_ << ") grid " << dimsText(k.grid) << "\n";
    for (const PipelineBlock& b : k.blocks) {
      os_ << "  " << (b.direction == Direction::kIn ? "in  " : "out ") << b.name << " " << b.bytes
          << " B step " << dimsText(b.step) << "\n";
    }
    for (int64_t s : k.scratch) os_ << "  scratch " << s << " B\n";
    body(k.code);
  }

  void body(const Code& code) {
    code_ = &code;
    block(code.body, 2);
  }

  void block(const Block& b, int indent) {
    for (const Stmt& s : b) {
      os_.indent(indent);
      stmt(s, indent);
    }
  }

  void place(const Place& p) {
    constexpr const char* kKinds[] = {"buffer", "param", "block", "scratch"};
    os_ << kKinds[p.kind] << " " << p.index;
    if (p.offset) os_ << "+" << p.offset;
    for (int32_t r : p.regs) os_ << "+" << registerName(isa::RegClass::kScalar, r);
  }

  void stmt(const Stmt& s, int indent) {
    using isa::RegClass;
    switch (s.kind) {
      case StmtKind::kInsn:
        os_ << isa::print(s.insn) << "\n";
        return;
      case StmtKind::kPseudo:
        os_ << registerName(RegClass::kScalar, s.reg) << " = " << pseudoName(s.pseudo) << " " << s.index
            << "\n";
        return;
      case StmtKind::kLoop:
        os_ << "for " << registerName(RegClass::kScalar, s.reg) << " < " << scalarName(s.amount) << "\n";
        block(s.blocks[0], indent + 2);
        return;
      case StmtKind::kWhile:
        os_ << "while\n";
        block(s.blocks[0], indent + 2);
        os_.indent(indent) << "holds " << (s.pred_neg ? "!" : "") << registerName(RegClass::kPred, s.reg)
                           << "\n";
        block(s.blocks[1], indent + 2);
        return;
      case StmtKind::kIf:
        os_ << "if " << (s.pred_neg ? "!" : "") << registerName(RegClass::kPred, s.reg) << "\n";
        block(s.blocks[0], indent + 2);
        if (s.blocks.size() < 2 || s.blocks[1].empty()) return;
        os_.indent(indent) << "else\n";
        block(s.blocks[1], indent + 2);
        return;
      case StmtKind::kCall:
        return call(s);
      case StmtKind::kDma:
        return dma(code_->dmas[s.index]);
      case StmtKind::kSemRead:
        os_ << registerName(RegClass::kScalar, s.reg) << " = sem.read ";
        semaphore(s.index, s.sem_plus);
        os_ << "\n";
        return;
      case StmtKind::kHook:
        os_ << "hook\n";
        return;
      case StmtKind::kDrain:
        os_ << "drain " << m_.companions[s.index].name << "\n";
        return;
      default:
        os_ << stmtName(s.kind) << " ";
        semaphore(s.index, s.sem_plus);
        os_ << ", " << scalarName(s.amount);
        if (s.kind == StmtKind::kSemSignal) os_ << " on " << scalarName(s.device);
        os_ << "\n";
        return;
    }
  }

  void semaphore(int32_t index, int32_t plus) {
    os_ << index;
    if (plus >= 0) os_ << "+" << registerName(isa::RegClass::kScalar, plus);
  }

  void dma(const Dma& d) {
    os_ << "dma ";
    place(d.src);
    os_ << " -> ";
    if (d.remote) os_ << "device " << scalarName(d.device) << " ";
    place(d.dst);
    os_ << ", " << d.run << " B";
    for (const DmaDim& dim : d.dims)
      if (dim.count != 1) os_ << " x" << dim.count << "(" << dim.src_stride << "," << dim.dst_stride << ")";
    if (d.src_sem >= 0) {
      os_ << " src_sem ";
      semaphore(d.src_sem, d.src_sem_plus);
    }
    if (d.dst_sem >= 0) {
      os_ << " dst_sem ";
      semaphore(d.dst_sem, d.dst_sem_plus);
    }
    os_ << "\n";
  }

  void call(const Stmt& s) {
    os_ << "call " << m_.kernels[s.index].name << "(";
    for (size_t i = 0; i < s.args.size(); ++i) {
      const CallArg& a = s.args[i];
      os_ << (i ? ", " : "");
      if (a.is_buffer) os_ << m_.buffers[a.buffer].name;
      if (!a.is_buffer || a.offset.is_reg || a.offset.imm != 0)
        os_ << (a.is_buffer ? "+" : "") << scalarName(a.offset);
    }
    os_ << ")";
    for (int32_t c : s.companions) os_ << " with " << m_.companions[c].name;
    os_ << "\n";
  }

  const Module& m_;
  llvm::raw_ostream& os_;
  const Code* code_ = nullptr;
};

}  // namespace

void printText(const Module& module, llvm::raw_ostream& os) { Printer(module, os).run(); }

}  // namespace tpu::llo
