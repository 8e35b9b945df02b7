// GSPMD's manual regions as sdy.manual_computation.
#pragma once
#include <vector>

#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"

namespace tpu::partition {

/// A custom call @SPMDFullToShardShape or @SPMDShardToFullShape.
bool isManualBorder(const hlo::Module& m, hlo::OpId op);

/// Puts the ops between the borders of manual regions into sdy.manual_computation ops. Calls must be inlined. Each border
/// carries `sharding`, that of its whole side, and `manual_axes`: of its manual side where it enters, of what is left
/// manual behind it where it leaves. Returns the new ops, outer ones first.
llvm::Expected<std::vector<hlo::OpId>> formManualRegions(hlo::Module& m, hlo::MeshId mesh);

}  // namespace tpu::partition
