// The tape behind JsonDoc: nodes in document order, each container naming the node after its end.
#pragma once
#include <string>
#include <vector>

#include "tpu/serial/json.h"

namespace tpu::detail {

struct JsonNode {
  JsonKind kind;
  uint32_t next;         // the node after this value (its whole subtree)
  uint64_t end_offset;   // bytes of text up to the end of the value's token (containers: of the opening bracket)
  union {
    int64_t i;
    uint64_t u;          // also: offset into strings
    double d;
    bool b;
  };
  uint32_t size;         // bytes of a string, elements of an array, members of an object
};

struct JsonTape {
  std::string name, text;
  std::vector<JsonNode> nodes;  // an object's members are key node, value node
  std::string strings;          // decoded
  llvm::StringRef string(const JsonNode& n) const { return llvm::StringRef(strings).substr(n.u, n.size); }
  /// "file:line:col" of the token that ends at `end_offset`.
  std::string locate(const JsonNode& n) const;
};

/// "name:line:col" of a byte.
std::string locateByte(llvm::StringRef name, llvm::StringRef text, uint64_t offset);

}  // namespace tpu::detail
