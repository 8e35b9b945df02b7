// Merging sorted shards gives a stable sort's result where elements that the comparator calls equal are told apart by
// their position in the whole array, or where nobody can tell them apart. One liberty is taken: a float sort that makes zeros
// alike and NaNs alike puts -0 before 0 and NaNs in the order of their bits, as a total order does, rather than as they came.
#pragma once
#include <optional>

#include "tpu/hlo/module.h"

namespace tpu::partition {

/// The type of the positions that travel along when `shards` shards of `size` elements in all are merged, the narrowest that
/// counts them; none where elements can do without: a single array without padding, ordered by the elements themselves.
std::optional<ElementType> positionType(const hlo::Module& m, hlo::OpId sort, int64_t size, int64_t shards);

}  // namespace tpu::partition
