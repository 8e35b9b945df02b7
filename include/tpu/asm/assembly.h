// Assembly text: one bundle per line, instructions separated by ';', labels `name:`, comments with '#'. Directives state
// the target, signature, constants, memory map, device table and locations, so that text is complete: disassembled text
// assembles to the same object bytes. `man tpu-isa` describes the language.
#pragma once
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "tpu/isa/program.h"

namespace tpu::assembly {

/// `name` is the file's name for locations. Instructions without a location of their own get "name:line", unless the text
/// says `.autoloc off`.
/// `files_read` takes the chip files that the text names.
llvm::Expected<isa::Program> assemble(llvm::StringRef text, llvm::StringRef name,
                                      std::vector<std::string>* files_read = nullptr);

struct DisassembleOptions {
  bool show_encoding = false;  // the 64-bit words of each bundle, as comments
};
std::string disassemble(const isa::Program& program, const DisassembleOptions& options = {});

}  // namespace tpu::assembly
