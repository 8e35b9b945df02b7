// The object file: a program in binary, versioned and checksummed.
#pragma once
#include <string>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "tpu/isa/program.h"

namespace tpu::assembly {

/// Checks and encodes; equal programs give equal bytes.
llvm::Expected<std::string> writeObject(const isa::Program& program);
/// Decodes and checks. Any bytes are safe: truncated or damaged files are refused.
llvm::Expected<isa::Program> readObject(llvm::StringRef bytes, llvm::StringRef name);
bool isObject(llvm::StringRef bytes);

}  // namespace tpu::assembly
