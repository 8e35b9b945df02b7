// "did you mean": the nearest of the known names, by edit distance.
#pragma once
#include <string>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tpu {

/// The known name nearest to `name`, or empty where none is near (more than two or a third of its letters differ).
llvm::StringRef nearestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> known);
/// "; did you mean 'x'?" or, for few names, "; known are a, b" - to append to a message.
std::string suggestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> known);

}  // namespace tpu
