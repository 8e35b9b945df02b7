// What writing and reading documents share.
#pragma once
#include <string>

#include "llvm/ADT/ArrayRef.h"

namespace tpu::hlo {

/// Constants of more bytes than this stand in a table of their own.
inline constexpr size_t kInlineLiteral = 4096;
/// Integer constants of at most this many elements are lists of numbers.
inline constexpr int64_t kDenseElements = 64;

/// Bytes as hexadecimal digits, last byte first: the digits of a little-endian number.
inline std::string hexText(llvm::ArrayRef<uint8_t> bytes) {
  std::string text;
  for (size_t i = bytes.size(); i-- > 0;) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

}  // namespace tpu::hlo
