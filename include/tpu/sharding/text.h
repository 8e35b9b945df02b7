// Shardings as people write them: [{"x", "y":(1)2, ?}p1, {}], replicated={"z"}, unreduced={"w"}.
#pragma once
#include <string>

#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"
#include "tpu/sharding/axes.h"

namespace tpu::sharding {

std::string print(const Mesh& mesh, const AxisRef& axis);
/// {"x", "y":(1)2}
std::string print(const Mesh& mesh, AxesRef axes);
/// [{"x", ?}, {}], replicated={...}, unreduced={...}
std::string print(const Mesh& mesh, const hlo::Sharding& sharding);
/// The sharding of a value; "replicated" where the id is none.
std::string print(const hlo::Module& module, hlo::ShardingId sharding);

/// Reads what print writes; the outer brackets may be missing. Unknown or repeated axes, sub-axes that do not
/// divide and a rank other than `rank` are refused at `where`.
llvm::Expected<hlo::Sharding> parse(const hlo::Module& module, hlo::MeshId mesh, llvm::StringRef text,
                                    int64_t rank, llvm::StringRef where);
/// x=4,y=2
llvm::Expected<Mesh> parseMesh(llvm::StringRef text);
std::string printMesh(const Mesh& mesh);

/// The mesh of XLA's named groups and shardings, taken from the front of `text`: mesh['a'=2,'b'=4], and behind it, where
/// devices are not counted in their order, device_ids=([4,2]T(1,0)) or device_ids=(0,2,1,3).
llvm::Expected<Mesh> parseNamedMesh(llvm::StringRef& text, llvm::StringRef where);
/// {'a', 'b':(1)2}: no part of an axis twice.
llvm::Expected<Axes> parseAxes(const Mesh& mesh, llvm::StringRef text, llvm::StringRef where);

/// XLA's named sharding: a mesh, [{'a'}, {'b':(1)2, ?}], replicated={...}, unreduced={...}, manual={...}; or instead of lists
/// replicated, unreduced or manual, meant of all axes. No dims: none is cut.
struct NamedSharding {
  Mesh mesh;
  hlo::Sharding sharding;  // its mesh id is none
  Axes manual;
};
llvm::Expected<NamedSharding> parseNamedSharding(llvm::StringRef text, llvm::StringRef where);

/// Axes exist, no part of one is used twice, sub-axes divide, rank agrees.
llvm::Error check(const Mesh& mesh, const hlo::Sharding& sharding, int64_t rank, llvm::StringRef where);

}  // namespace tpu::sharding
