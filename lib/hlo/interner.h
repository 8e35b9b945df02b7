// The hash tables behind Module's interning: equal types, strings, locations and shardings get one id.
#pragma once
#include "llvm/ADT/CachedHashString.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/Support/Allocator.h"
#include "tpu/hlo/module.h"

namespace tpu::hlo {

/// Strings by id; the text lives in an arena and never moves.
class StringTable {
 public:
  uint32_t intern(llvm::StringRef text) {
    llvm::CachedHashStringRef key(text);
    auto it = ids_.find(key);
    if (it != ids_.end()) return it->second;
    llvm::StringRef copy = text.copy(arena_);
    uint32_t id = static_cast<uint32_t>(texts_.size());
    texts_.push_back(copy);
    ids_.try_emplace(llvm::CachedHashStringRef(copy, key.hash()), id);
    return id;
  }
  std::optional<uint32_t> find(llvm::StringRef text) const {
    auto it = ids_.find(llvm::CachedHashStringRef(text));
    if (it == ids_.end()) return std::nullopt;
    return it->second;
  }
  llvm::StringRef text(uint32_t id) const { return id < texts_.size() ? texts_[id] : llvm::StringRef(); }
  llvm::ArrayRef<llvm::StringRef> all() const { return texts_; }

 private:
  llvm::BumpPtrAllocator arena_;
  std::vector<llvm::StringRef> texts_;
  llvm::DenseMap<llvm::CachedHashStringRef, uint32_t> ids_;
};

/// Hash -> ids of the rows with that hash; the rows themselves stay in the module's tables.
class RowIndex {
 public:
  template <class Equal>
  std::optional<uint32_t> find(uint64_t hash, const Equal& equal) const {
    auto it = heads_.find(hash);
    if (it == heads_.end()) return std::nullopt;
    for (uint32_t id : it->second)
      if (equal(id)) return id;
    return std::nullopt;
  }
  void add(uint64_t hash, uint32_t id) { heads_[hash].push_back(id); }

 private:
  llvm::DenseMap<uint64_t, llvm::SmallVector<uint32_t, 1>> heads_;
};

struct Module::Interner {
  StringTable strings;
  StringTable locs;
  RowIndex types;
  RowIndex shardings;
};

}  // namespace tpu::hlo
