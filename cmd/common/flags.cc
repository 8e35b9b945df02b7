// The shared rows, and what is read off a row.
#include "common/flags.h"

#include "llvm/ADT/SmallVector.h"

namespace tpu {
namespace {

constexpr Flag kShared[] = {
#define TPU_FLAG(group, name, letter, kind, value, otherwise, level, help) \
  {name, letter, FlagKind::kind, value, otherwise, FlagLevel::level, help, group},
#include "common/shared_flags.def"
};

}  // namespace

std::string Flag::spelling() const {
  bool compiler_like = name.starts_with("M") || name.starts_with("W");
  return (compiler_like ? "-" : "--") + name.str();
}

std::vector<llvm::StringRef> Flag::choices() const {
  if (value.empty()) return {};
  llvm::SmallVector<llvm::StringRef, 4> parts;
  llvm::StringRef(value).split(parts, '|');
  for (llvm::StringRef part : parts)  // "seed:N|@FILE" are forms, not the only values
    if (part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != llvm::StringRef::npos) return {};
  return {parts.begin(), parts.end()};
}

std::vector<Flag> allFlags(llvm::ArrayRef<Flag> own, unsigned groups) {
  std::vector<Flag> out(own.begin(), own.end());
  auto replaced = [&](const Flag& shared) {
    for (const Flag& f : own)
      if (f.name == shared.name) return true;
    return false;
  };
  for (const Flag& f : kShared)
    if ((f.group & (groups | kCommonFlags)) && !replaced(f)) out.push_back(f);
  return out;
}

}  // namespace tpu
