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
  constexpr const char* kNames[] = {"insn", "pseudo",   "loop",       "while",   "if",      "call",
                                    "dma",  "sem.wait", "sem.signal", "sem.add", "sem.read"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace tpu::llo
