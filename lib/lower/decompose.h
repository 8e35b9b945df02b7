// Rewrites that bring a program to the ops that have emitters, before any of them is lowered:
//   - tuples that the program builds and takes apart go away;
//   - a broadcast_in_dim whose dimensions do not ascend becomes a transpose and an ascending one;
//   - a bitcast_convert that changes the width becomes shifts of 32-bit words;
//   - a convolution that is a matrix product becomes a dot_general.
#pragma once
#include "tpu/hlo/builder.h"
#include "tpu/hlo/module.h"

namespace tpu::lower {

/// Calls must be inlined. Leaves dead ops behind.
void decompose(hlo::Module& module);

/// The same values by a dot_general; none where the convolution is not of that kind.
hlo::ValueId productOfConvolution(hlo::Builder& b, hlo::Module& module, hlo::OpId id);

}  // namespace tpu::lower
