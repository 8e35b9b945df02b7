// Base64 through LLVM's coder, without its error type.
#include "tpu/serial/base64.h"

#include "llvm/Support/Base64.h"
#include "llvm/Support/Error.h"

namespace tpu {

std::string encodeBase64(llvm::ArrayRef<uint8_t> bytes) { return llvm::encodeBase64(bytes); }

std::optional<std::vector<uint8_t>> decodeBase64(llvm::StringRef text) {
  std::vector<char> out;
  if (llvm::Error e = llvm::decodeBase64(text, out)) {
    llvm::consumeError(std::move(e));
    return std::nullopt;
  }
  return std::vector<uint8_t>(out.begin(), out.end());
}

}  // namespace tpu
