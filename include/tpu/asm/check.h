// Whether a program can stand in the bundles of its chip: slots, registers, units, fields, labels, tables. Every reader and
// writer of programs calls it, so what the emulator gets is well-formed.
#pragma once
#include <string>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "tpu/isa/program.h"
#include "tpu/target/chip.h"

namespace tpu::assembly {

/// Where instruction `insn` of bundle `bundle` stands, for messages; insn -1: the bundle itself.
using InstructionLoc = llvm::function_ref<std::string(uint32_t bundle, int insn)>;

/// Checks everything that can be checked without running: slots of each bundle, two writes of one register in a bundle (unless
/// under opposite predicates), registers, units, operand types and FIFO kinds that the chip has, fields, branch targets, label names,
/// ranges, locations, signature and device table.
llvm::Error checkProgram(const isa::Program& program, const target::Chip& chip, InstructionLoc locOf);
/// The same with locations "bundle 12", or the instruction's own location where it has one.
llvm::Error checkProgram(const isa::Program& program, const target::Chip& chip);

/// Whether a label may have this name (see Program::label_at).
bool isLabelName(llvm::StringRef name);
/// Orders the instructions of every bundle by slot kind, keeping the order within a kind.
void orderBySlot(isa::Bundle& bundle);

}  // namespace tpu::assembly
