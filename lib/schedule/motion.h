// How the blocks of a tile pipeline move over its grid.
#pragma once
#include <algorithm>
#include <vector>

#include "tpu/llo/llo.h"

namespace tpu::schedule {

/// How a block moves over the grid: what a step adds to its HBM offset, by the dimension that the step
/// advances (those inside it go back to 0).
struct Motion {
  std::vector<int64_t> delta;  // by active dimension
  bool moves() const {
    return std::any_of(delta.begin(), delta.end(), [](int64_t d) { return d != 0; });
  }
};

struct ActiveDim {
  int index;  // grid dimension
  int64_t size;
};

/// Dimensions of more than one index, outermost first.
std::vector<ActiveDim> activeDims(const llo::Kernel& kernel);
Motion motionOf(const llo::PipelineBlock& block, const std::vector<ActiveDim>& dims);

}  // namespace tpu::schedule
