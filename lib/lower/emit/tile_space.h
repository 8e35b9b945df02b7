// The iteration space of a kernel over tiled arrays: which part of every array one grid step holds in VMEM, and how the
// body walks it.
//
// The space is leads x rows x columns. Its unit is the smallest part that is a whole number of registers for every
// element type: K row tiles by H column tiles, N 32-bit registers. Arrays that are narrower than 32 bits fill fewer
// registers with the same part. An axis (each lead, rows, columns) has a number of units, units per block, and a grid
// dimension where that is more than one block.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "tpu/lower/spec.h"
#include "vec.h"

namespace tpu::lower::emit {

inline constexpr int64_t kLanes = 128, kRowBytes = 512, kRegisterBytes = 4096;

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

/// VMEM that a kernel may count on if need be; the rest is left to spilled registers.
inline int64_t largestShare(const target::Chip& chip) { return std::max(chip.vmem_bytes - 16 * kRegisterBytes, chip.vmem_bytes / 2); }

struct Axis {
  int64_t size = 1;    // units (elements of a lead)
  int64_t block = 1;   // units a grid step holds
  int64_t blocks() const { return ceilDiv(size, block); }
  int grid = -1;       // grid dimension; -1: one block
  bool reduced = false;
};

/// How the elements of a type stand in a register, see tile_io.h.
enum class Packed : uint8_t {
  kRows,    // instructions vunpack.*: sub-register i holds narrow rows 8i to 8i+7
  kLow,     // one row to a word, in its low bits (tiles of one row)
  kSpread,  // two rows to a word of four bytes (two-row tiles of 8-bit types)
};

/// One array of a kernel.
struct TiledArray {
  ElementType type = ElementType::kF32;
  llvm::SmallVector<bool, 4> lead_broadcast;
  bool row_broadcast = false, col_broadcast = false;
  int param = 0;       // kernel parameter
  int block = 0;       // pipeline block
  bool output = false;

  // layout
  int packing = 1, tile_rows = 8;
  int64_t tile_bytes = kRegisterBytes;
  Packed packed = Packed::kRows;
  int64_t tiles_per_unit = 1;             // row tiles of this array in a unit
  int64_t row_tiles = 1, col_tiles = 1;   // of one lead slice in HBM
  llvm::SmallVector<int64_t, 4> hbm_lead_stride;

  // in VMEM
  int64_t vmem_row_tiles = 1, vmem_col_tiles = 1;
  llvm::SmallVector<int64_t, 6> vmem_stride;  // bytes per unit of each axis, 0 where broadcast
  int64_t vmem_bytes = 0;
};

class TileSpace {
 public:
  llvm::SmallVector<int64_t, 4> leads;
  int64_t rows = 1, cols = 1;
  int word_tile_rows = 8;   // rows of a tile of 32-bit elements: 8, or less for few rows
  int K = 1, H = 1;         // unit: row tiles (of 8 rows), column tiles
  std::vector<Axis> axes;   // leads, then rows, then columns
  std::vector<TiledArray> arrays;

  int rowAxis() const { return static_cast<int>(leads.size()); }
  int colAxis() const { return rowAxis() + 1; }
  int64_t colTiles() const { return ceilDiv(cols, kLanes); }
  /// Column tiles that one 32-bit register covers.
  int tilesPerRegister() const { return 8 / word_tile_rows; }
  /// 32-bit registers of a unit.
  int registers() const { return K * H / tilesPerRegister(); }

  /// Fixes layouts and the unit, once arrays and sizes are set.
  void layOut();
  /// VMEM bytes of all blocks at the present block sizes; sets the arrays' VMEM fields.
  int64_t placeBlocks();
  /// Chooses block sizes: whole rows of columns first, then rows, then leads, until `budget` (double buffering included)
  /// is used or a block of the widest array has `target` bytes. False where the smallest block does not fit.
  bool chooseBlocks(int64_t budget, int64_t target, int unroll);
  /// Gives grid dimensions to axes of several blocks, kept ones first, and fills the kernel's grid and blocks.
  void buildPipeline(llo::Kernel& kernel);
  /// Registers the axis is unrolled by in the body, a divisor of its block.
  int unrollOf(int axis, int wanted) const;

  /// The axis's index of the first unit in this grid step, in units; -1 register where it is 0.
  llo::Scalar blockStart(llo::CodeBuilder& b, int axis) const;

 private:
  void addTransfers(const TiledArray& a, llo::PipelineBlock& block) const;
};

/// A loop spec's arrays as a space. Dimensions of size 1 and leads that all arrays treat alike are merged; `reduced` may be
/// empty. `iota_axes[d]` says which axis dimension d of the spec became (-1: size 1).
struct SpaceMap {
  llvm::SmallVector<int, 6> axis_of_dim;
  llvm::SmallVector<int64_t, 6> scale;  // dimension index = axis index / scale % size
};
TileSpace makeSpace(const LoopSpec& spec, llvm::ArrayRef<bool> reduced, SpaceMap* map);
/// True where all arrays stand in the same order in memory, so that the kernel can run over flat bytes.
bool isFlat(const LoopSpec& spec);
TileSpace makeFlatSpace(const LoopSpec& spec);

}  // namespace tpu::lower::emit
