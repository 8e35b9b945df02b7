// How a matrix product is laid over a chip's matrix units and memories.
//
// A virtual unit multiplies tiles of Tk x Tn blocks of 128: one matrix unit of side 128 (1 x 1) or 256 (2 x 2), or four
// of side 64, one per quarter (1 x 1). Several units work at once, mk along K (their results are added) times mn along N.
// Operands stand in VMEM as areas of whole registers: [row groups][column tiles], a row group being the rows that one
// register carries (8 f32, 16 bf16, 32 bytes). Where memory does not have them so (other type, few rows, parts of f32),
// they are prepared in scratch once per block.
#pragma once
#include <algorithm>

#include "tile_space.h"
#include "tpu/lower/spec.h"
#include "vec.h"

namespace tpu::lower::emit {

/// What the matrix units are fed.
struct MatrixMode {
  ElementType type = ElementType::kBF16;
  int rows = 16;                       // per register
  Opcode push, push_t, multiply, accumulate;
  isa::LatencyClass latency;
  bool integer_results = false;
};

struct DotOperand {
  ElementType type = ElementType::kF32;
  int64_t rows = 0, cols = 0;           // of one matrix
  int64_t block_rows = 0, block_cols = 0;
  int packing = 1, tile_rows = 8;
  int64_t tile_bytes = kRegisterBytes;
  bool prepared = false;
  int parts = 1;
  int block = 0, scratch = -1;          // pipeline block; scratch area of the prepared form
  int64_t col_tiles() const { return block_cols / kLanes; }
  int64_t block_row_tiles() const { return ceilDiv(std::min(block_rows, std::max<int64_t>(rows, 1)), tile_rows); }
  /// Full tiles have room for all rows of the block, also those beyond the matrix.
  int64_t matrix_bytes() const {
    const int64_t tiles = tile_rows == 8 * packing ? ceilDiv(block_rows, tile_rows) : block_row_tiles();
    return roundUp(tiles * col_tiles() * tile_bytes, kRegisterBytes);
  }
};

struct DotPlan {
  MatrixMode mode;
  int side = 128, units = 1;            // matrix unit side; virtual units in use
  int mk = 1, mn = 1;                   // their arrangement
  int tile_k = 1, tile_n = 1;           // Tk, Tn
  bool addressed = false;
  bool integer = false;                 // accumulates in s32
  llvm::SmallVector<std::pair<int, int>, 6> passes;  // (lhs part, rhs part), small products first
  int chunk = 16;                       // row groups streamed per weight set
  int lag = 1;                          // row groups between a multiplication and its pops
  int64_t bb = 1, bm = 0, bn = 0, bk = 0;  // block sizes
  int64_t gb = 1, gm = 1, gn = 1, gk = 1;  // blocks
  DotOperand lhs, rhs, out;
  bool rhs_transposed = false;
  bool accumulate_in_output = true;     // else in scratch, converted at the end
  int acc_scratch = -1;
  int slots = 2;                        // VMEM slots per block counted on
  int64_t vmem = 0;

  int groupsPerTile() const { return static_cast<int>(kLanes) / mode.rows; }
  int panels() const { return side > 128 ? side / 128 : 1; }
  /// FIFO entries of one matrix unit per row group.
  int entries() const { return mode.rows / 8 * panels(); }
  int64_t rowChunks() const { return bm / (chunk * mode.rows); }
  int64_t kGroups() const { return bk / (mk * tile_k * kLanes); }
  int64_t nGroups() const { return bn / (mn * tile_n * kLanes); }
  int64_t accBytes() const { return roundUp(bm, std::max(8, out.tile_rows)) * bn * 4; }
};

/// Row groups of an operand's area: whole tiles of its memory layout where it is prepared.
inline int64_t areaRowGroups(const DotPlan& plan, const DotOperand& o) {
  const int64_t rows = o.prepared ? std::max(o.tile_rows, plan.mode.rows) : plan.mode.rows;
  return roundUp(o.block_rows, rows) / plan.mode.rows;
}
/// Bytes of one part of an operand's area.
inline int64_t partBytes(const DotPlan& plan, const DotOperand& o) {
  return areaRowGroups(plan, o) * o.col_tiles() * kRegisterBytes;
}

llvm::Expected<DotPlan> planDot(const DotSpec& spec, const target::Chip& chip, const std::string& name);

}  // namespace tpu::lower::emit
