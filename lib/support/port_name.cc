#include "tpu/support/port_name.h"

namespace tpu {

std::string plainName(llvm::StringRef name) {
  std::string out;
  for (char c : name) {
    if (c == '[') {
      if (!out.empty()) out += '.';
    } else if (c != ']' && c != '\'' && c != '"') {
      out += c;
    }
  }
  return out;
}

bool sameName(llvm::StringRef a, llvm::StringRef b) { return a == b || plainName(a) == plainName(b); }

std::optional<size_t> findPort(llvm::ArrayRef<llvm::StringRef> names, llvm::StringRef key) {
  size_t position;
  if (!key.getAsInteger(10, position)) return position < names.size() ? std::optional(position) : std::nullopt;
  for (size_t i = 0; i < names.size(); ++i)
    if (sameName(names[i], key)) return i;
  return std::nullopt;
}

}  // namespace tpu
