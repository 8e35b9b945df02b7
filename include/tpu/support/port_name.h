// Names of arguments and results as people type them: JAX's "params['layers'][0]['w1']" is also params.layers.0.w1, which
// needs no quotes in a shell.
#pragma once
#include <optional>
#include <string>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tpu {

/// The spelling with dots.
std::string plainName(llvm::StringRef name);
/// True where both are the same name, in either spelling.
bool sameName(llvm::StringRef a, llvm::StringRef b);
/// The port that `key` names: a position from 0, or a name in either spelling. Nothing where there is none.
std::optional<size_t> findPort(llvm::ArrayRef<llvm::StringRef> names, llvm::StringRef key);

}  // namespace tpu
