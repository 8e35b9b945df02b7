// GSPMD's shardings, converted to mesh axes at the edge and back: {replicated}, {maximal device=0}, {manual}, {unknown},
// {devices=[4,1,2]<=[8] last_tile_dim_replicate}, {devices=[2,4]<=[4,2]T(1,0)}, {devices=[2,1]0,1}, subgroups
// last_tile_dims={manual, replicated}, shard_as and shard_like groups, tuples, and the named form of later XLA,
// {mesh['a'=2,'b'=4], [{'a'}, {'b':(1)2}]}. A tile assignment names devices; where its
// list is no iota of any shape, it is one over the mesh's own order of devices (Mesh::device_ids).
#pragma once
#include <string>

#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"
#include "tpu/sharding/axes.h"

namespace tpu::sharding {

enum class GspmdKind : uint8_t { kReplicated, kTiled, kManual, kMaximal, kUnknown };

struct Gspmd {
  GspmdKind kind = GspmdKind::kReplicated;
  llvm::SmallVector<Axes, 4> dims;  // kTiled: one list per tensor dimension
  Axes manual, unreduced;           // axes of subgroups; all that is left replicates
  llvm::SmallVector<int64_t, 2> open;  // dimensions that may be cut further; only a named sharding says so
  int64_t device = 0;               // kMaximal
  int64_t group = -1;               // shard_as or shard_like with others of this number
  bool like = false;                // shard_like: at least as the others
  friend bool operator==(const Gspmd&, const Gspmd&) = default;
};

/// "mhlo.sharding "{devices=[8]<=[8]}" has 1 dimensions, the tensor 2; write {devices=[8,1]<=[8]}"
std::string gspmdRankText(llvm::StringRef text, size_t rank, size_t dims);

/// Converts one string (not a tuple). Refused at `where`: forms that no axis list of `mesh` expresses.
llvm::Expected<Gspmd> parseGspmd(const Mesh& mesh, llvm::StringRef text, llvm::StringRef where);
/// In the iota form, or as a list of devices where the mesh has an order of its own: what parseGspmd reads back to
/// the same.
std::string printGspmd(const Mesh& mesh, const Gspmd& sharding);
/// A mesh over which all strings (tuples split) that name most devices can be said: axes cut where they cut, in the
/// device order of the first list that is no iota. One axis "device" where they do not cut at all, or not alike.
Mesh meshOfGspmd(llvm::ArrayRef<llvm::StringRef> texts);
/// Number of devices that a string names; 0 for replicated and the like.
int64_t gspmdDevices(llvm::StringRef text);
/// The elements of a tuple sharding {{...}, {...}}; the string itself where it is none.
llvm::SmallVector<llvm::StringRef, 4> splitTuple(llvm::StringRef text);

/// The same division of the same devices over another mesh, which may be cut otherwise and order its devices otherwise.
/// False where no axes of `to` say it; `out` is then of no use.
bool translateAxes(const Mesh& from, AxesRef axes, const Mesh& to, Axes& out);
bool translateSharding(const Mesh& from, const hlo::Sharding& sharding, const Mesh& to, hlo::Sharding& out);

/// Axes that step through row-major devices with this stride and count, major to minor; false where the mesh
/// is cut differently.
bool axesOfStride(const Mesh& mesh, int64_t stride, int64_t count, Axes& axes);

}  // namespace tpu::sharding
