// Base64 with padding (RFC 4648, standard alphabet, no line breaks): constants in documents.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tpu {

std::string encodeBase64(llvm::ArrayRef<uint8_t> bytes);
/// Nothing when `text` is not canonical base64.
std::optional<std::vector<uint8_t>> decodeBase64(llvm::StringRef text);

}  // namespace tpu
