// The `bundles` document: a program as JSON tables, one row per line.
#pragma once
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/isa/program.h"

namespace tpu::assembly {

llvm::Expected<isa::Program> readProgramDocument(llvm::StringRef json, llvm::StringRef name);
/// Canonical text; equal programs give equal bytes. With `only`, the rows of that table alone, one per line; fails for an unknown table.
llvm::Error writeProgramDocument(const isa::Program& program, llvm::raw_ostream& os, llvm::StringRef only = "");
std::string writeProgramDocument(const isa::Program& program);

/// An object, a `bundles` document or assembly text, told apart by the first bytes.
llvm::Expected<isa::Program> readAnyProgram(llvm::StringRef bytes, llvm::StringRef name,
                                            std::vector<std::string>* files_read = nullptr);

}  // namespace tpu::assembly
