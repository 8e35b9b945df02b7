#include "label_names.h"

namespace tpu::assembly {

LabelNames::LabelNames(const isa::Program& program) : program_(program) {
  for (uint32_t row = 0; row < program.label_at.size(); ++row)
    named_.try_emplace(program.label_at[row].first, row);
  for (const isa::Bundle& bundle : program.bundles)
    for (const isa::PlacedInstruction& placed : bundle.insns)
      for (const isa::Operand& o : placed.insn.ops())
        if (o.kind == isa::Operand::kLabel && !named_.count(static_cast<uint32_t>(o.imm)))
          local_[static_cast<uint32_t>(o.imm)] = true;
}

void LabelNames::print(const isa::Instruction& insn, std::string& out) const {
  for (int i = 0; i < insn.num_operands; ++i) {
    if (insn.operands[i].kind != isa::Operand::kLabel) continue;
    const auto it = named_.find(static_cast<uint32_t>(insn.operands[i].imm));
    const std::string name = it != named_.end() ? program_.label_at[it->second].second
                                                : ".L" + std::to_string(insn.operands[i].imm);
    isa::Instruction by_name = insn;
    by_name.operands[i].imm = 0;
    return isa::printTo(by_name, name, out);
  }
  isa::printTo(insn, {}, out);
}

std::optional<uint32_t> localLabelBundle(llvm::StringRef name) {
  uint32_t bundle = 0;
  if (!name.consume_front(".L") || name.getAsInteger(10, bundle)) return std::nullopt;
  return bundle;
}

}  // namespace tpu::assembly
