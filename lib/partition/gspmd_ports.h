// GSPMD's strings on arguments and results, which the reader leaves among their other attributes.
#pragma once
#include <string>

#include "llvm/ADT/StringRef.h"

namespace tpu::partition {

/// The value of `mhlo.sharding = "..."` in a port's remaining attributes; empty where there is none.
llvm::StringRef portSharding(llvm::StringRef attrs);
/// Takes it out of them.
std::string takePortSharding(std::string& attrs);

}  // namespace tpu::partition
