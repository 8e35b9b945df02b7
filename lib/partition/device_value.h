// Integers that follow from the number of a device, as a partitioned program computes them from partition_id.
#pragma once
#include <optional>

#include "tpu/hlo/module.h"

namespace tpu::partition {

/// None where the value depends on anything else.
std::optional<int64_t> valueOn(const hlo::Module& m, hlo::ValueId v, int64_t device);
/// `a` against `b` by the comparison_direction of `op`.
bool compares(const hlo::Module& m, hlo::OpId op, int64_t a, int64_t b);

}  // namespace tpu::partition
