// How many arrays a tuple type holds. Types are shared, so a short program can state one of 2^60 parts, which whoever walks
// it would not live to see the end of: readers refuse those at once.
#pragma once
#include <algorithm>
#include <vector>

#include "tpu/hlo/module.h"

namespace tpu::frontend {

class TupleParts {
 public:
  /// Whether `id`, just read, has more parts than a program can mean. Its elements have been asked about before.
  bool tooMany(const hlo::Module& module, hlo::TypeId id) {
    const auto& elements = module.type(id).elements;
    uint64_t parts = 1;
    for (hlo::TypeId element : elements) parts += element.v < parts_.size() ? std::max<uint64_t>(1, parts_[element.v]) : 1;
    if (parts > kMost) return true;
    if (id.v >= parts_.size()) parts_.resize(id.v + 1);
    parts_[id.v] = static_cast<uint32_t>(parts);
    return false;
  }

 private:
  static constexpr uint64_t kMost = 1 << 16;
  std::vector<uint32_t> parts_;  // by type; 0 where none were asked about: one
};

}  // namespace tpu::frontend
