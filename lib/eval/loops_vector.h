// f32 loops written for the host's vector instructions.
#pragma once
#include "loops.h"

namespace tpu::eval {

/// The loop of an f32 op; null where there is only the plain one.
UnaryLoop findVectorUnary(hlo::Opcode op);
BinaryLoop findVectorBinary(hlo::Opcode op);

}  // namespace tpu::eval
