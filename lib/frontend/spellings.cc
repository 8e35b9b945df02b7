// Which formats can say which op, from the tables of their readers.
#include "llvm/ADT/STLExtras.h"
#include "tpu/frontend/frontend.h"

namespace tpu::frontend {
namespace {

using hlo::Opcode;

constexpr Opcode kBytecode[] = {
#define BYTECODE_OP(name, opcode, properties) Opcode::opcode,
#include "bytecode/ops.def"
};

constexpr Opcode kHloText[] = {
#define TPU_HLO_TEXT_OP(name, op) Opcode::op,
#include "hlo_text/opcodes.def"
    // Those that the reader builds op by op.
    Opcode::constant, Opcode::custom_call, Opcode::dynamic_slice, Opcode::dynamic_update_slice, Opcode::tuple,
    Opcode::get_tuple_element, Opcode::after_all, Opcode::optimization_barrier, Opcode::while_, Opcode::case_,
    Opcode::if_, Opcode::call, Opcode::return_, Opcode::all_to_all, Opcode::rng, Opcode::sdy_manual_computation};

}  // namespace

Spellings spellingsOf(Opcode opcode) {
  const llvm::StringRef name = hlo::opInfo(opcode).name;
  const bool shared = name.starts_with("chlo.") || name.starts_with("sdy.");
  return {shared || llvm::is_contained(kBytecode, opcode), llvm::is_contained(kHloText, opcode)};
}

}  // namespace tpu::frontend
