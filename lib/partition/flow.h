// Which values must share one sharding because control flow makes them one: carried values of loops, results
// of branches, the borders of manual regions, the results of the program. Everything else is said by the
// operations' factor rules.
#pragma once
#include <vector>

#include "llvm/ADT/SmallVector.h"
#include "tpu/hlo/module.h"
#include "tpu/sharding/axes.h"

namespace tpu::partition {

/// Slots are values (slot = value id) followed by one slot per result of the entry function.
using Slot = uint32_t;

/// `targets` are one value with `owner` (their state is the owner's); `sources` flow into it and may be
/// resharded on the way. For a border of a manual region `prefix[d]` are the manual axes that lead dimension
/// d outside and are gone inside: then sources are the outer side if `enters`, else the inner side.
struct Edge {
  Slot owner = 0;
  llvm::SmallVector<Slot, 2> sources;
  llvm::SmallVector<Slot, 3> targets;
  bool manual = false, enters = false;
  llvm::SmallVector<sharding::Axes, 4> prefix;
  hlo::OpId op;  // the control operation, none for program results
};

struct Flow {
  std::vector<Edge> edges;
  std::vector<Slot> owner;                               // slot -> owning slot (itself mostly)
  std::vector<llvm::SmallVector<uint32_t, 1>> edges_of;  // slot -> edges that it takes part in
  size_t num_values = 0, num_slots = 0;
  Slot resultSlot(size_t i) const { return static_cast<Slot>(num_values + i); }
};

/// Reads the entry function (calls are inlined already).
Flow findFlow(const hlo::Module& module);

/// True for values that depend on nothing but literals and iotas through cheap operations: they are made
/// where they are needed, in the sharding that is needed, and never sent.
std::vector<bool> findFreeValues(const hlo::Module& module);

/// Visits the ops of a region and of all regions inside, in order.
template <class Fn>
void walk(const hlo::Module& m, hlo::RegionId region, Fn&& fn) {
  for (hlo::OpId id : m.region(region).ops) {
    fn(id);
    for (hlo::RegionId r : m.op(id).regions) walk(m, r, fn);
  }
}
/// Same, without entering reducers and comparators: only regions whose ops are partitioned.
bool hasPartitionedRegions(hlo::Opcode opcode);
template <class Fn>
void walkPartitioned(const hlo::Module& m, hlo::RegionId region, Fn&& fn) {
  for (hlo::OpId id : m.region(region).ops) {
    fn(id);
    if (!hasPartitionedRegions(m.op(id).opcode)) continue;
    for (hlo::RegionId r : m.op(id).regions) walkPartitioned(m, r, fn);
  }
}

}  // namespace tpu::partition
