// What the text and the bytecode of a program have in common: names of attributes, values that printers leave
// out, raw constant data, inlined meshes, the entry function.
#pragma once
#include "tpu/hlo/module.h"
#include "tpu/support/diagnostics.h"

namespace tpu::frontend {

/// The key of a dialect's attribute name; none for attributes that are kept as text.
std::optional<hlo::AttrKey> attrKeyOf(llvm::StringRef name, hlo::Opcode opcode);

/// States what printers leave out because it has its default value; later stages find it stated.
void fillDefaults(hlo::Module& module, hlo::OpId op);

/// Takes raw little-endian bytes as the data of a literal of `type`: pred may come packed, eight to a byte;
/// one element's bytes are a splat. False where the number of bytes does not fit.
bool literalFromBytes(hlo::Literal& literal, const hlo::Type& type, std::vector<uint8_t> bytes);

/// The mesh that a sharding states instead of naming one: it has no name; equal ones are one.
hlo::MeshId inlinedMesh(hlo::Module& module, hlo::Mesh mesh);

/// Sets the entry to @main, or to the only public function, or where `any` will do to the first one. Says why
/// it cannot, else returns an empty text.
std::string chooseEntry(hlo::Module& module, bool any);

/// TensorFlow states aliases on the module (mhlo.input_output_alias) instead of on the arguments of the entry,
/// where they go.
void applyModuleAliases(hlo::Module& module);

}  // namespace tpu::frontend
