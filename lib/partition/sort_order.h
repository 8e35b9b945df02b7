// Merging sorted shards keeps a stable sort's result where elements that the comparator calls equal are told apart by
// their position in the whole array, or where nobody can tell them apart.
#pragma once
#include <optional>

#include "tpu/hlo/module.h"

namespace tpu::partition {

/// The type of the positions that travel along when `shards` shards of `size` elements in all are merged, the narrowest that counts them; none where
/// elements can do without: a single array without padding, ordered by the elements themselves. Of floats sorted by value
/// (zeros alike, NaNs alike) those that are alike are then ordered by their bits.
std::optional<ElementType> positionType(const hlo::Module& m, hlo::OpId sort, int64_t size, int64_t shards);

}  // namespace tpu::partition
