// Rewrites that bring a program to the ops that have emitters, before any of them is lowered:
//   - tuples that the program builds and takes apart go away;
//   - a broadcast_in_dim whose dimensions do not ascend becomes a transpose and an ascending one;
//   - a bitcast_convert that changes the width becomes shifts of 32-bit words.
#pragma once
#include "tpu/hlo/module.h"

namespace tpu::lower {

/// Calls must be inlined. Leaves dead ops behind.
void decompose(hlo::Module& module);

}  // namespace tpu::lower
