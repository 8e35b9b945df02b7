// Small questions about llo: spellings, hooks.
#include "tpu/llo/document.h"

namespace tpu::llo {

std::string registerName(isa::RegClass cls, int32_t reg) {
  return std::string("%") + "svmp"[static_cast<int>(cls)] + std::to_string(reg);
}

std::string scalarName(const Scalar& s) {
  return s.is_reg ? registerName(isa::RegClass::kScalar, s.reg) : std::to_string(s.imm);
}

llvm::StringRef pseudoName(PseudoKind kind) {
  constexpr const char* kNames[] = {"grid", "param",   "block",  "scratch",    "smem",
                                    "vmem", "hbm_row", "device", "device_word"};
  return kNames[static_cast<int>(kind)];
}

llvm::StringRef stmtName(StmtKind kind) {
  constexpr const char* kNames[] = {"insn",     "pseudo",     "loop",    "while",    "if",   "call", "dma",
                                    "sem.wait", "sem.signal", "sem.add", "sem.read", "hook", "drain"};
  return kNames[static_cast<int>(kind)];
}

namespace {
bool hasHook(const Block& block) {
  for (const Stmt& s : block) {
    if (s.kind == StmtKind::kHook) return true;
    for (const Block& b : s.blocks)
      if (hasHook(b)) return true;
  }
  return false;
}
}  // namespace

bool hasHook(const Code& code) { return hasHook(code.body); }

}  // namespace tpu::llo
