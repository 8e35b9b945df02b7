// Sharding propagation: from the shardings that the user wrote to one for every value, with the reason of
// every step.
#pragma once
#include "flow.h"
#include "tpu/sharding/rules.h"

namespace tpu::partition {

using DimStates = llvm::SmallVector<hlo::DimSharding, 4>;

/// One step of propagation: `axes` were added to dimension `dim` of `slot` because of `op` (or of an edge of
/// it), coming from `from`.
struct Step {
  Slot slot = 0, from = 0;
  int dim = 0;
  sharding::Axes axes;
  hlo::OpId op;
};

struct Propagated {
  Flow flow;
  std::vector<bool> free;               // value -> made where needed
  std::vector<DimStates> dims;          // slot -> sharding; read through flow.owner
  std::vector<sharding::OpRule> rules;  // op -> rule (empty for control ops and free ones)
  std::vector<Step> steps;
  const DimStates& of(Slot s) const { return dims[flow.owner[s]]; }
};

/// Reads wishes from Value::sharding and from the entry's ports.
Propagated propagate(const hlo::Module& module, hlo::MeshId mesh);

}  // namespace tpu::partition
