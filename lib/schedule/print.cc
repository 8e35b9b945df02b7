// Functions between passes, for people.
#include "work.h"

namespace tpu::schedule {

void printFunc(const Func& func, llvm::raw_ostream& os) {
  os << func.name << ":\n";
  for (size_t b = 0; b < func.blocks.size(); ++b) {
    const Block& block = func.blocks[b];
    if (block.code.empty() && !block.has_term) continue;
    std::vector<std::string> names;
    for (size_t k = 0; k < func.blocks.size(); ++k) names.push_back("b" + std::to_string(k));
    os << " b" << b << ":" << (block.fixed ? " pipelined, " + std::to_string(block.length) + " cycles" : "")
       << "\n";
    for (size_t i = 0; i < block.code.size(); ++i) {
      os << "   ";
      if (block.fixed) os << block.cycle[i] << ": ";
      os << isa::print(block.code[i].insn, names) << "\n";
    }
    if (!block.has_term) continue;
    os << "   ";
    if (block.fixed) os << block.term_cycle << ": ";
    Insn term = block.term;
    if (term.insn.op == isa::Opcode::call)
      os << "call function " << labelOf(term) << "\n";
    else
      os << isa::print(term.insn, names) << "\n";
  }
}

}  // namespace tpu::schedule
