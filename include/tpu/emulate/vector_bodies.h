// What vector instructions compute, apart from any machine: a body takes whole registers of 8 x 128 words,
// row-major by sublane. Used by the emulator and by whoever interprets machine instructions without time.
#pragma once
#include <cstdint>

#include "tpu/isa/isa.h"

namespace tpu::emulate {

inline constexpr int kVectorWords = 1024;
struct alignas(64) Vector {
  uint32_t w[kVectorWords];
};

/// d = f(a, b, c, imm): vector and mask sources in the order of the instruction's text, immediate or scalar
/// last. Masks are words 0 and ~0. d may be any of the sources. EUP, lane reduce and permute instructions
/// yield the entry that their pop delivers. (vtos yields a itself; vxpose and vxpose.go have no body: see
/// transposeEntry.)
using VectorBody = void (*)(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c,
                            uint32_t imm);

/// The body of a VALU, EUP or XLU instruction; null for others. The choice of instruction set is made at the
/// first call.
VectorBody vectorBody(isa::Opcode op);

/// Entry j of a transposition: word (s, l) = buffer[l * 128 + lane + 8 j + s] of a 128 x 128 buffer.
void transposeEntry(uint32_t* d, const uint32_t* buffer, int lane, int j);

/// Operand values as a matrix unit sees them: rows x 128 f32 (integers as themselves, f32 rounded to bf16),
/// from one register. `type` is any vmatpush or vmatmul opcode of the operand type. Returns the rows (8, 16
/// or 32); out holds rows * 128 floats, at a multiple of 64 bytes.
inline constexpr int kMaxOperandRows = 32;
int mxuOperand(isa::Opcode type, const uint32_t* a, float* out);
/// Whether the results of this operand type are s32.
bool mxuInteger(isa::Opcode type);

}  // namespace tpu::emulate
