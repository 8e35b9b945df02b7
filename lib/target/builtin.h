// Chip files embedded at build time.
#pragma once
#include "llvm/ADT/StringRef.h"

namespace tpu::target {

struct BuiltinChip {
  const char* name;
  const char* json;
};
extern const BuiltinChip kBuiltinChips[];  // generated from lib/target/chips; in order of age
extern const int kNumBuiltinChips;

/// The text of a built-in chip, or null.
const char* findBuiltin(llvm::StringRef name);
/// Letters, digits, '_' and '-', not starting with a digit.
bool isChipName(llvm::StringRef name);

}  // namespace tpu::target
