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

using enum hlo::Opcode;
constexpr Opcode kHloText[] = {
#define TPU_HLO_TEXT_OP(name, op) op,
#define TPU_HLO_TEXT_BUILT(name, function, ...) __VA_OPT__(__VA_ARGS__, )
#define TPU_HLO_TEXT_UNREAD(name, why)
#include "hlo_text/opcodes.def"
};

}  // namespace

Spellings spellingsOf(Opcode opcode) {
  const llvm::StringRef name = hlo::opInfo(opcode).name;
  const bool shared = name.starts_with("chlo.") || name.starts_with("sdy.");
  return {shared || llvm::is_contained(kBytecode, opcode), llvm::is_contained(kHloText, opcode)};
}

}  // namespace tpu::frontend
