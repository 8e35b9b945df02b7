// Fills the delay bundles of branches: what is left empty there takes the first bundles of the block that the
// branch goes to, under the branch's predicate, and the branch goes past them.
#pragma once
#include "emit.h"

namespace tpu::schedule {

void fillDelayBundles(Scheduled& func, const Machine& machine);

}  // namespace tpu::schedule
