// Nearest names by edit distance; the first in the list wins ties.
#include "tpu/support/nearest.h"

#include <algorithm>

#include "llvm/ADT/StringExtras.h"

namespace tpu {

llvm::StringRef nearestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> known) {
  llvm::StringRef best;
  auto length = static_cast<unsigned>(name.size());
  unsigned bound = std::min(std::max(2u, length / 3), length > 1 ? length - 1 : 0);  // a swap of letters counts two
  for (llvm::StringRef k : known) {
    unsigned distance = name.edit_distance(k, true, bound + 1);
    if (distance > bound) continue;
    best = k;
    if (distance == 0) break;
    bound = distance - 1;
  }
  return best;
}

std::string suggestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> known) {
  llvm::StringRef best = nearestName(name, known);
  if (!best.empty()) return ("; did you mean '" + best + "'?").str();
  if (known.empty() || known.size() > 24) return "";
  return "; known are " + llvm::join(known.begin(), known.end(), ", ");
}

}  // namespace tpu
