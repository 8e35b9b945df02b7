// A contraction followed by a transpose, as every einsum prints it, asks for the product in one order of dimensions and
// then for another. Often the first order is a bad one for memory - heads or groups of 2 in the lanes - so the product is
// made in an order that stands well: operands change places, free dimensions are reordered within an operand.
#pragma once
#include "tpu/hlo/module.h"

namespace tpu::lower {

/// Rewrites dot_general ops whose only user is a transpose, wherever that moves fewer padded bytes. The sums stay as they
/// are, term by term.
void foldTransposes(hlo::Module& module);

}  // namespace tpu::lower
