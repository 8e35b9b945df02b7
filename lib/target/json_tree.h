// A small JSON tree that keeps the position of every value: chip files are written by hand, so each complaint
// must point at its line and column. Numbers are integers.
#pragma once
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tpu::target {

struct JsonNode {
  enum Kind : uint8_t { kNull, kBool, kInt, kText, kList, kObject } kind = kNull;
  std::string key;  // member of an object
  size_t at = 0;    // byte offset of the value
  bool truth = false;
  int64_t number = 0;
  std::string text;
  std::vector<JsonNode> children;  // of a list, or of an object in order
  const JsonNode* find(llvm::StringRef name) const;
};

/// "file:line:col" of a byte offset.
std::string locate(llvm::StringRef json, llvm::StringRef file, size_t at);
llvm::Expected<JsonNode> parseJsonTree(llvm::StringRef json, llvm::StringRef file);
/// `text` as a JSON string, quotes included.
void appendJsonText(std::string& out, llvm::StringRef text);

}  // namespace tpu::target
