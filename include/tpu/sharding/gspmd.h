// GSPMD's tile assignments, converted to mesh axes at the edge: {replicated}, {maximal device=0}, {manual},
// {devices=[4,1,2]<=[8] last_tile_dim_replicate}, {devices=[2,4]<=[4,2]T(1,0)}, {devices=[2,1]0,1} where the
// list is an iota in disguise.
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
  Axes manual;                      // axes of a manual subgroup
};

/// Converts one string (not a tuple). Refused at `where`: forms that no axis list of `mesh` expresses.
llvm::Expected<Gspmd> parseGspmd(const Mesh& mesh, llvm::StringRef text, llvm::StringRef where);
/// The string of a tiling, in the iota form: what parseGspmd reads back to the same lists.
std::string printGspmd(const Mesh& mesh, llvm::ArrayRef<Axes> dims);
/// Number of devices that a string names; 0 for replicated and the like.
int64_t gspmdDevices(llvm::StringRef text);
/// The elements of a tuple sharding {{...}, {...}}; the string itself where it is none.
llvm::SmallVector<llvm::StringRef, 4> splitTuple(llvm::StringRef text);

/// Axes that step through row-major devices with this stride and count, major to minor; false where the mesh
/// is cut differently.
bool axesOfStride(const Mesh& mesh, int64_t stride, int64_t count, Axes& axes);

}  // namespace tpu::sharding
