// Integer expressions of assembly text: + - * / % << >> & | ^ ~ ( ), decimal and 0x numbers, names.
#pragma once
#include <optional>
#include <string>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace tpu::assembly {

/// Gives the text a name stands for.
using NameLookup = llvm::function_ref<std::optional<llvm::StringRef>(llvm::StringRef name)>;

struct ExpressionResult {
  int64_t value = 0;
  size_t error_at = 0;  // offset into the expression
  std::string error;    // empty: no error
};
/// The usual precedence of C; 64-bit arithmetic that wraps; division towards zero.
ExpressionResult evaluate(llvm::StringRef text, NameLookup lookup);

/// Letters, digits, '_', '.' and '$': what a name, mnemonic or label is made of.
bool isWordChar(char c);

}  // namespace tpu::assembly
