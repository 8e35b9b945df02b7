// Random programs for tests: a mesh, arguments, constraints and operations of many kinds, all from one seed.
#pragma once
#include "tpu/hlo/builder.h"
#include "tpu/hlo/module.h"

namespace tpu::partition {

struct Random {
  uint64_t state;
  uint64_t next();
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
};

/// The first `num_ops` operations of the program of `seed`, so that a failure can be cut down.
hlo::Module randomProgram(uint64_t seed, int num_ops);

}  // namespace tpu::partition
