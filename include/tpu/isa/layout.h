// Tiled layouts of arrays in HBM and VMEM (XLA tiled_layout.md, the forms of the TPU): the last two dimensions are cut
// into tiles of tile_rows x 128 elements; elements narrower than 32 bits stand `packing` rows to a 32-bit word.
//
//   f32 T(8,128): tile_rows 8, packing 1      bf16 T(16,128)(2,1): tile_rows 16, packing 2
//   s8/u8/f8/pred T(32,128)(4,1): 32, 4       s4/u4 T(64,128)(8,1): 64, 8
//
// A small second-minor dimension takes a smaller power of two of rows, down to `packing` (bf16[1,n] is T(2,128)(2,1)).
// Rank 1 is laid out as [1,n], rank 0 as one 32-bit word. pred is stored as bytes 0 and 1. Padding is undefined.
// `dense` is the linear row-major form of 32-bit elements without any padding, used between relayouts.
#pragma once
#include <cstdint>

#include "llvm/ADT/ArrayRef.h"
#include "tpu/support/element_type.h"

namespace tpu::isa {

struct Layout {
  bool dense = false;
  int tile_rows = 8;
  int packing = 1;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Elements per 32-bit word of a type in memory: 1 for 32-bit types, 2 for 16-bit, 4 for 8-bit and pred, 8 for 4-bit.
int packingOf(ElementType type);
/// The default layout of an array of these dims.
Layout defaultLayout(ElementType type, llvm::ArrayRef<int64_t> dims);
/// Bytes the array occupies, padding included; a multiple of 512 except for rank 0 (4).
int64_t layoutBytes(const Layout& layout, ElementType type, llvm::ArrayRef<int64_t> dims);
/// Byte offset of the 32-bit word that holds the element at `index`; the sub-element inside the word in *sub (0 = lowest bits).
int64_t elementOffset(const Layout& layout, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> index, int* sub);
/// Converts between a row-major host array (hostBytes per element) and the laid-out bytes; padding is left as it is.
void packHost(const Layout& layout, ElementType type, llvm::ArrayRef<int64_t> dims, const uint8_t* host, uint8_t* memory);
void unpackHost(const Layout& layout, ElementType type, llvm::ArrayRef<int64_t> dims, const uint8_t* memory, uint8_t* host);

}  // namespace tpu::isa
