// The algebra of axis lists. A dimension's sharding is a list of mesh axes or sub-axes, major to minor; every
// question the partitioner asks ("what do these two have in common", "may this axis be added here", "where
// does this device stand") is answered on such lists, never on lists of devices, so that its cost does not
// depend on the size of the mesh.
#pragma once
#include <cstdint>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "tpu/hlo/module.h"

namespace tpu::sharding {

using hlo::AxisRef;
using hlo::Mesh;
using Axes = llvm::SmallVector<AxisRef, 2>;
using AxesRef = llvm::ArrayRef<AxisRef>;

/// Number of shards a list makes: the product of its sizes, 1 when empty.
int64_t product(AxesRef axes);

/// The whole of axis `axis`.
AxisRef fullAxis(const Mesh& mesh, uint32_t axis);
inline bool isFull(const Mesh& mesh, const AxisRef& ref) { return ref.size == mesh.axes[ref.axis].size; }

/// True where two refs divide the devices along the same part of an axis.
bool overlaps(const AxisRef& a, const AxisRef& b);
bool overlaps(const AxisRef& a, AxesRef list);
bool overlaps(AxesRef a, AxesRef b);

/// Appends, joining neighbours: "x":(1)2 then "x":(2)2 is "x" of size 4.
void append(Axes& list, const AxisRef& ref);
void append(Axes& list, AxesRef refs);
Axes concat(AxesRef a, AxesRef b);

bool isPrefix(AxesRef prefix, AxesRef list);
/// What is left of `list` behind `prefix`, which must be one.
Axes dropPrefix(AxesRef list, AxesRef prefix);
/// The longest prefix of `list` that makes exactly `count` shards; nothing where an axis would have to be cut
/// unevenly.
bool takeProduct(AxesRef list, int64_t count, Axes& taken, Axes& rest);

/// Parts of `list` that do not overlap `used` (cut to sub-axes where needed), stopping at the first overlap:
/// what may be added behind something that uses `used`.
Axes prefixWithout(AxesRef list, AxesRef used);
/// Every part of every mesh axis that `used` leaves free, in mesh order, neighbours joined.
Axes unused(const Mesh& mesh, AxesRef used);

/// Cuts all lists at each other's borders, so that any two refs of the result are equal or disjoint.
void splitToAtoms(llvm::MutableArrayRef<Axes> lists);
/// Cuts `list` to the atoms of a set of lists without changing their meaning.
Axes cutBy(AxesRef list, AxesRef borders);

/// Devices in row-major mesh order: partition_id / stride(axis) % size is the coordinate along the axis or
/// sub-axis.
int64_t stride(const Mesh& mesh, const AxisRef& ref);
int64_t coordinate(const Mesh& mesh, const AxisRef& ref, int64_t device);
/// Row-major index of a device's coordinates along a list.
int64_t coordinate(const Mesh& mesh, AxesRef axes, int64_t device);

/// Elements per device of a dimension of `size` over `shards`: the last shards are padded.
inline int64_t shardSize(int64_t size, int64_t shards) {
  return shards <= 1 ? size : (size + shards - 1) / shards;
}

/// The axes that recreate `groups` (rows of partition ids over the whole mesh), major to minor in the order
/// of a row; false where no list of axes does.
bool axesOfGroups(const Mesh& mesh, const hlo::Groups& groups, Axes& axes);

/// The fewest axes such that a permute moves data along them alone and alike everywhere; `inside` are its
/// pairs as positions in the group of these axes. False where only the pairs of all devices say it.
bool axesOfPermute(const Mesh& mesh, const hlo::Groups& pairs, Axes& axes, hlo::Groups& inside);

}  // namespace tpu::sharding
