// The inner loop of matrix products: weight sets pushed, left-hand rows streamed, results popped and added.
#pragma once
#include "dot_plan.h"

namespace tpu::lower::emit {

/// Base addresses of one matrix's areas in VMEM.
struct DotAreas {
  S lhs, rhs, acc;
};

/// Multiplies one block: acc (+)= lhs * rhs. `k_block` is the grid index along K (or none): where it is 0 and with the
/// first weights of a result, acc is set rather than added to.
///
/// One iteration streams `chunk` row groups through one weight set per unit. Iterations follow each other without a
/// pause: the pops lag `lag` row groups behind the multiplications, across iterations, and the next weights are pushed
/// in between.
void emitDotBlock(Vec& e, const DotPlan& plan, const DotAreas& areas, llo::Scalar k_block);

/// Brings an operand into register form in its scratch area (`area`); `source` is its block's matrix.
void prepareOperand(Vec& e, const DotPlan& plan, const DotOperand& operand, S source, S area);
/// Zeroes what lies beyond `valid` lanes (columns) or rows of every part of an area.
void clearColumns(Vec& e, const DotPlan& plan, const DotOperand& operand, S area, int64_t valid);
void clearRows(Vec& e, const DotPlan& plan, const DotOperand& operand, S area, int64_t valid);
/// Writes the accumulated block out in the result's type and layout.
void storeResult(Vec& e, const DotPlan& plan, S acc, S out);

}  // namespace tpu::lower::emit
