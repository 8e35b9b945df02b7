// Code of one function (the driver, or a kernel with its tile pipeline expanded) between structured llo and
// bundles: a control-flow graph of machine instructions, first on virtual registers, later on physical ones.
//
// Blocks stand in layout order; control falls through to the next block unless the terminator says otherwise.
// Label operands of terminators hold block indices. A block that the modulo scheduler has placed is `fixed`:
// its instructions carry cycles, in ascending order; all other blocks are in program order until the list
// scheduler orders them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tpu/isa/isa.h"

namespace tpu::schedule {

inline constexpr int kNumClasses = 4;  // isa::RegClass

/// Regions of VMEM that never overlap: a base register belongs to one of them, or to none that is known.
enum : int32_t { kAnyObject = -1, kSpillObject = -2 };

struct Insn {
  isa::Instruction insn;
  uint32_t op = 0;              // op slot, for locations
  int32_t object = kAnyObject;  // region a vector load or store accesses
  bool fresh = false;  // a partial write of a register whose old contents do not matter (fresh.h)
  bool fetch = false;  // dma.start into a slot that no instruction around it touches
  int32_t skip = 0;    // branches: bundles at the target's beginning that stand in the delay bundles instead
};

struct Block {
  std::vector<Insn> code;
  std::vector<int32_t> cycle;  // fixed: cycle of each instruction
  bool fixed = false;
  int32_t length = 0;  // fixed: cycles, delay bundles of the terminator included
  bool has_term = false;
  Insn term;               // br, call, ret, halt
  int32_t term_cycle = 0;  // fixed
  int32_t depth = 0;       // loops around it
  /// Innermost loops: the block is its own only successor inside; `induction` counts up to `trip`.
  bool loop_body = false;
  int64_t trip_imm = -1;  // trips where constant, else -1
  int32_t trip_reg = -1;  // register that holds the trips
};

struct Func {
  std::string name;
  std::vector<Block> blocks;
  int32_t num_regs[kNumClasses] = {0, 0, 0, 0};  // virtual registers by isa::RegClass
  int32_t num_units[2] = {0, 0};                 // virtual matrix and cross-lane units
  std::vector<int32_t> base_object;              // by virtual scalar register; kAnyObject where not a base
  bool entered_by_call = false;                  // first instruction saves the link register
  int32_t kernel = -1;                           // row of llo::Module::kernels, -1: driver
  std::vector<uint32_t> op_locs;                 // op slot -> row of Module::locs
  int64_t vmem_spill_limit = 0;                  // VMEM addresses below it may hold spilled vectors
  int64_t vmem_spill_end = 0;                    // where the next one goes
};

inline int classIndex(isa::RegClass cls) { return static_cast<int>(cls); }

/// The block a branch or call goes to, or -1; Operand::imm of its label.
inline int64_t labelOf(const Insn& term) {
  for (const isa::Operand& o : term.insn.ops())
    if (o.kind == isa::Operand::kLabel) return o.imm;
  return -1;
}

}  // namespace tpu::schedule
