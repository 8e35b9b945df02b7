// What is wrong with a mesh or a sharding, in words, with the nearest thing that would be right. Every reader and the
// verifier say it alike.
#pragma once
#include <string>

#include "tpu/hlo/module.h"

namespace tpu::hlo {

/// "mesh 'm' has no axis 'q'; did you mean 'x'?"
std::string unknownAxisText(const Mesh& mesh, llvm::StringRef name);

/// The part :(pre)size of an axis exists: pre * size divides the axis.
bool subAxisDivides(const Mesh& mesh, const AxisRef& ref);
/// "sub-axis "x":(1)3 does not divide axis 'x' of size 4; "x":(1)2 does"
std::string badSubAxisText(const Mesh& mesh, const AxisRef& ref);

/// "sharding uses axis 'x' twice; still free are "y", "z":(2)2"
std::string axisTwiceText(const Mesh& mesh, const AxisRef& ref, llvm::ArrayRef<AxisRef> used);

/// "sharding of 3 dimensions on f32[16,8]; write [{"x"}, {}]"
std::string shardingRankText(const Module& module, const Sharding& sharding, const Type& type);

/// Empty where `ids` are all of 0 .. n - 1, else "3 stands twice, 1 is missing".
std::string permutationText(llvm::ArrayRef<int64_t> ids);
/// Empty where `ids` are a permutation of the devices 0 .. devices - 1, else what is wrong with them.
std::string deviceIdsText(llvm::ArrayRef<int64_t> ids, int64_t devices);

}  // namespace tpu::hlo
