// The operations of a bytecode file.
#pragma once
#include "file.h"

namespace tpu::frontend::bytecode {

/// Reads the section of operations into file.ops and file.regions.
bool readOperations(Bytes in, File& file);

// file.cc
bool readSection(Bytes& in, uint8_t& kind, llvm::StringRef& data);
bool readIrSection(Bytes& in, llvm::StringRef& data);

}  // namespace tpu::frontend::bytecode
