// What a reducer region computes: partial results of devices can only be combined where that is known.
#pragma once
#include <optional>

#include "tpu/hlo/module.h"

namespace tpu::sharding {

/// The single elementwise op of a region `(a, b) -> op(a, b)` on its two arguments: add, multiply, maximum,
/// minimum, and_, or_, xor_. None for anything else. sdy.sharding_constraint inside the region is looked
/// through.
std::optional<hlo::Opcode> reducerOf(const hlo::Module& module, hlo::RegionId region);

/// Parts may be folded again by the same region: a single known op, or a selection (compare, select, and, or
/// ... only), for which folding the init value in more than once does no harm.
bool isCombinable(const hlo::Module& module, hlo::RegionId region);

}  // namespace tpu::sharding
