// Loops over whole registers that are not the arithmetic of an instruction: definedness, moves and masked merging.
// Set bits of a shadow mark undefined bits.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tpu::emulate {

/// d = all ones in words where any bit of a, b or c is set.
void flowWords(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c);
void flowBits(uint32_t* d, const uint32_t* a, const uint32_t* b);
/// Of the conjunction (disjunction) of x and y with shadows a and b: a defined 0 (1) decides.
void flowAnd(uint32_t* d, const uint32_t* x, const uint32_t* y, const uint32_t* a, const uint32_t* b);
void flowOr(uint32_t* d, const uint32_t* x, const uint32_t* y, const uint32_t* a, const uint32_t* b);
/// Of mask ? yes : no.
void flowSelect(uint32_t* d, const uint32_t* mask, const uint32_t* mask_shadow, const uint32_t* yes,
                const uint32_t* no);
/// Whether any bit of a register is set.
bool anyBit(const uint32_t* a);
/// Whether no word of a register is an infinity or a NaN of f32.
bool allFinite(const uint32_t* a);
/// to = from; `words` a multiple of 64. (Of such a constant size the C library's and the compiler's copies
/// are several times slower.)
void copyWords(uint32_t* to, const uint32_t* from, size_t words);
inline void copyRegister(uint32_t* to, const uint32_t* from) { copyWords(to, from, 1024); }
/// The rows of 128 words, out of 8, whose bit is set; strides in words.
void copyRows(uint32_t* to, size_t to_stride, const uint32_t* from, size_t from_stride, int rows);
/// to = value in words whose mask is set; `words` a multiple of 128.
void mergeWords(uint32_t* to, const uint32_t* value, const uint32_t* mask, size_t words);

}  // namespace tpu::emulate
