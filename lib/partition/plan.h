// The cheapest way from one sharding of a value to another: a shortest path over axis lists. Steps are the
// collectives themselves; the cost is what they put on the wires, so a full copy is only ever made where
// nothing cheaper exists.
#pragma once
#include <string>
#include <vector>

#include "llvm/ADT/StringMap.h"
#include "tpu/sharding/axes.h"

namespace tpu::partition {

struct Layout {
  llvm::SmallVector<sharding::Axes, 4> dims;
  sharding::Axes unreduced;
  friend bool operator==(const Layout&, const Layout&) = default;
};

Layout layoutOf(const hlo::Module& m, hlo::ShardingId sharding, int64_t rank);
hlo::ShardingId internLayout(hlo::Module& m, hlo::MeshId mesh, const Layout& layout);
/// Of the fullest device.
double elementsHeld(llvm::ArrayRef<int64_t> sizes, const Layout& layout);
/// Per-device dims.
hlo::Dims localDims(llvm::ArrayRef<int64_t> dims, const Layout& layout);

enum class MoveKind : uint8_t { kSlice, kGather, kAllToAll, kPermute, kReduceScatter, kAllReduce };
llvm::StringRef moveName(MoveKind kind);

struct Move {
  MoveKind kind;
  int from = -1, to = -1;  // dims: gather (from), all_to_all (from, to), reduce_scatter (to)
  sharding::Axes axes;     // gathered, exchanged, reduced; permute: the axes whose devices exchange data
  Layout after;
  int64_t wire_bytes = 0;  // sent per device, mean
};

constexpr double kPerCollective = 128;  // bytes that one more collective is worth

struct Plan {
  std::vector<Move> moves;
  int64_t wire_bytes = 0;
  double cost = 0;         // bytes plus a small charge per collective and for copies larger than both ends
  int64_t largest_bytes = 0;  // held per device by the largest step
  bool full_copy = false;  // a step holds more per device than both the source and the destination
};

/// Plans are memoised: programs repeat few distinct ones.
class Planner {
 public:
  explicit Planner(const hlo::Mesh& mesh) : mesh_(mesh) {}
  const Plan& plan(llvm::ArrayRef<int64_t> dims, int element_bits, const Layout& from, const Layout& to);

 private:
  hlo::Mesh mesh_;
  llvm::StringMap<Plan> memo_;
};

/// Source and target positions inside the group of `axes` (row-major) that turn `before` into `after`;
/// positions that keep their data are left out.
struct PermutePairs {
  std::vector<int64_t> pairs;  // source, target, ...
  int64_t moving = 0, group = 1;
};
PermutePairs permutePairs(const hlo::Mesh& mesh, const Layout& before, const Layout& after,
                          sharding::AxesRef group);

}  // namespace tpu::partition
