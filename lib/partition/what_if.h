// The cheapest annotation that removes a collective, found by trying: the program is partitioned once more without one
// of its requests, then with what the value has without it.
#pragma once
#include "passes.h"
#include "report.h"

namespace tpu::partition {

/// Says in `report` how to remove the collectives that a single constraint of the program causes. `requested` is the
/// program before propagation. Only requests that cost wire bytes and save no work are named; at most 16 are tried, fewer in
/// very large programs.
void findRemovals(const hlo::Module& requested, const State& state, PartitionReport& report);

}  // namespace tpu::partition
