// Transposition of the last two dimensions through the cross-lane units' 128 x 128 buffers.
#include <algorithm>

#include "dot_plan.h"
#include "tile_io.h"
#include "tpu/isa/layout.h"
#include "tpu/support/diagnostics.h"

namespace tpu::lower {
namespace emit {
namespace {

// One side of the kernel: an array [batch, rows, cols] cut into blocks of 128 a x 128 b.
struct Side {
  int64_t rows = 0, cols = 0;
  int tile_rows = 8, packing = 1;
  int64_t tile_bytes = kRegisterBytes;
  Packed packed = Packed::kRows;
  int64_t block_rows = 0, block_cols = 0;  // elements
  int block = 0;
  int64_t row_tiles() const { return ceilDiv(rows, tile_rows); }
  int64_t col_tiles() const { return ceilDiv(cols, kLanes); }
  int64_t block_row_tiles() const { return std::min(ceilDiv(block_rows, tile_rows), row_tiles()); }
  int64_t block_col_tiles() const { return block_cols / kLanes; }
  int64_t row_bytes() const { return block_col_tiles() * tile_bytes; }
  /// Room for whole squares, except where one small tile holds all rows.
  int64_t bytes() const {
    const int64_t tiles = tile_rows == 8 * packing ? ceilDiv(block_rows, tile_rows) : block_row_tiles();
    return roundUp(tiles * row_bytes(), kRegisterBytes);
  }
};

Side sideOf(ElementType type, int64_t rows, int64_t cols) {
  Side s;
  s.rows = rows;
  s.cols = cols;
  const int64_t dims[2] = {rows, cols};
  const isa::Layout layout = isa::defaultLayout(type, dims);
  s.tile_rows = layout.tile_rows;
  s.packing = layout.packing;
  s.tile_bytes = s.tile_rows / s.packing * kRowBytes;
  const int word_rows = isa::defaultLayout(ElementType::kF32, dims).tile_rows;
  s.packed = s.packing <= word_rows ? Packed::kRows : word_rows == 1 ? Packed::kLow : Packed::kSpread;
  return s;
}

struct Plan {
  Side in, out;
  int64_t batch_block = 1, batches = 1, row_blocks = 1, col_blocks = 1;  // of the input
};

bool choosePlan(Plan& p, const TransposeSpec& spec, const target::Chip& chip) {
  const int64_t row_units = ceilDiv(spec.rows, kLanes), col_units = ceilDiv(spec.cols, kLanes);
  const int64_t budget = std::min<int64_t>(chip.vmem_bytes / 4 * 3, 16 << 20);
  const auto set = [&](int64_t r, int64_t c) {
    p.in.block_rows = p.out.block_cols = r * kLanes;
    p.in.block_cols = p.out.block_rows = c * kLanes;
    return 2 * (p.in.bytes() + p.out.bytes());
  };
  // Square blocks keep the runs of both sides long.
  int64_t r = 1, c = 1;
  const int64_t one = set(1, 1);
  if (one / 2 > largestShare(chip)) return false;
  const int64_t limit = std::min<int64_t>(budget, 8 << 20);
  for (bool grew = true; grew;) {
    grew = false;
    if (r < row_units && r <= c && set(r + 1, c) <= limit) ++r, grew = true;
    else if (c < col_units && set(r, c + 1) <= limit) ++c, grew = true;
    else if (r < row_units && set(r + 1, c) <= limit) ++r, grew = true;
  }
  p.row_blocks = ceilDiv(row_units, r);
  p.col_blocks = ceilDiv(col_units, c);
  r = ceilDiv(row_units, p.row_blocks);
  c = ceilDiv(col_units, p.col_blocks);
  const int64_t bytes = set(r, c);
  p.row_blocks = ceilDiv(row_units, r);
  p.col_blocks = ceilDiv(col_units, c);
  if (p.row_blocks == 1 && p.col_blocks == 1)
    p.batch_block = std::clamp<int64_t>(limit / bytes, 1, spec.batch);
  p.batches = ceilDiv(spec.batch, p.batch_block);
  p.batch_block = ceilDiv(spec.batch, p.batches);
  p.batches = ceilDiv(spec.batch, p.batch_block);
  return true;
}

int addBlock(llo::Kernel& kernel, const Side& s, const Plan& p, int64_t batch, bool output, int batch_grid, int row_grid, int col_grid) {
  llo::PipelineBlock block;
  block.name = output ? "out" : "in";
  block.param = output ? 1 : 0;
  block.direction = output ? llo::Direction::kOut : llo::Direction::kIn;
  block.bytes = p.batch_block * s.bytes();
  block.step.assign(kernel.grid.size(), 0);
  const int64_t row_stride = s.col_tiles() * s.tile_bytes, matrix = s.row_tiles() * row_stride;
  if (batch_grid >= 0) block.step[batch_grid] = p.batch_block * matrix;
  if (row_grid >= 0) block.step[row_grid] = s.block_row_tiles() * row_stride;
  if (col_grid >= 0) block.step[col_grid] = s.row_bytes();
  llo::Transfer t;
  const int64_t cols = std::min(s.block_col_tiles(), s.col_tiles());
  t.run = cols * s.tile_bytes;
  const auto edgeOf = [](int64_t total, int64_t block) { return total - (ceilDiv(total, block) - 1) * block; };
  if (col_grid >= 0 && edgeOf(s.col_tiles(), s.block_col_tiles()) != cols) {
    t.run_edge_grid = col_grid;
    t.run_edge = edgeOf(s.col_tiles(), s.block_col_tiles()) * s.tile_bytes;
  }
  t.dims[0] = {s.block_row_tiles(), row_stride, s.row_bytes(), -1, 0};
  if (row_grid >= 0 && edgeOf(s.row_tiles(), s.block_row_tiles()) != s.block_row_tiles()) {
    t.dims[0].edge_grid = row_grid;
    t.dims[0].edge_count = edgeOf(s.row_tiles(), s.block_row_tiles());
  }
  t.dims[1] = {p.batch_block, matrix, s.bytes(), -1, 0};
  if (batch_grid >= 0 && edgeOf(batch, p.batch_block) != p.batch_block) {
    t.dims[1].edge_grid = batch_grid;
    t.dims[1].edge_count = edgeOf(batch, p.batch_block);
  }
  block.transfers.push_back(t);
  kernel.blocks.push_back(std::move(block));
  return static_cast<int>(kernel.blocks.size()) - 1;
}

V loadTile(Vec& e, const Side& s, Addr at) {
  if (s.tile_bytes == kRegisterBytes) return e.code().v(Opcode::vld, {at});
  return e.code().v(Opcode::vld_strided, {at, 1, (1 << (s.tile_bytes / kRowBytes)) - 1});
}
void storeTile(Vec& e, const Side& s, Addr at, V v) {
  if (s.tile_bytes == kRegisterBytes) e.code().emit(Opcode::vst, {at, v});
  else e.code().emit(Opcode::vst_strided, {at, v, 1, (1 << (s.tile_bytes / kRowBytes)) - 1});
}

// Transposes the 128 x 128 elements whose input tiles begin at `from` and output tiles at `to`.
void transposeSquare(Vec& e, const TransposeSpec& spec, const Plan& p, S from, S to) {
  llo::CodeBuilder& b = e.code();
  const llo::XluUnit unit = e.xluUnit();
  // Rows that the smallest shape has at all; a last partial square works on what the buffer holds beyond.
  const int in_rows = static_cast<int>(std::min<int64_t>(roundUp(spec.rows, p.in.tile_rows), kLanes));
  const int per_in = std::max(1, p.in.tile_rows / 8);
  for (int i = 0; i < std::max(1, in_rows / 8); i += per_in) {
    const V tile = loadTile(e, p.in, {from, i / per_in * p.in.row_bytes()});
    for (int k = 0; k < per_in; ++k)
      b.emit(Opcode::vxpose, {unit, unpack(e, spec.type, p.in.packed, tile, k), i + k});
  }
  const int out_rows = static_cast<int>(std::min<int64_t>(roundUp(spec.cols, p.out.tile_rows), kLanes));
  const int per_out = std::max(1, p.out.tile_rows / 8);
  const int entries = std::max(1, out_rows / 8);
  const int at_once = std::clamp(e.chip().trf_depth, 1, 16);
  llvm::SmallVector<V, 4> pending;
  for (int done = 0; done < entries; done += at_once) {
    const int n = std::min(at_once, entries - done);
    b.emit(Opcode::vxpose_go, {unit, done * 8, n * 8});
    for (int k = 0; k < n; ++k) {
      pending.push_back(b.v(Opcode::vpop_trf, {unit}));
      if (static_cast<int>(pending.size()) < per_out) continue;
      const int64_t row = (done + k) / per_out;
      storeTile(e, p.out, {to, row * p.out.row_bytes()}, pack(e, spec.type, p.out.packed, pending));
      pending.clear();
    }
  }
}

}  // namespace
}  // namespace emit

using namespace emit;

llvm::Expected<llo::Kernel> emitTranspose(const TransposeSpec& spec, const target::Chip& chip, const std::string& name) {
  Plan p;
  p.in = sideOf(spec.type, spec.rows, spec.cols);
  p.out = sideOf(spec.type, spec.cols, spec.rows);
  if (!choosePlan(p, spec, chip))
    return fail(Code::kKernelTooLarge, "", "kernel " + name + ": its smallest blocks need " +
                llvm::Twine(p.in.bytes() + p.out.bytes()) + " bytes of VMEM, the chip has " + llvm::Twine(chip.vmem_bytes),
                ExitStatus::kDoesNotFit);
  llo::Kernel kernel;
  kernel.name = name;
  kernel.params = {{llo::KernelParam::kHbm, "in"}, {llo::KernelParam::kHbm, "out"}};
  int batch_grid = -1, row_grid = -1, col_grid = -1;
  const auto add = [&](int64_t count, int& dim) {
    if (count == 1) return;
    dim = static_cast<int>(kernel.grid.size());
    kernel.grid.push_back(count);
  };
  add(p.batches, batch_grid);
  add(p.row_blocks, row_grid);
  add(p.col_blocks, col_grid);
  p.in.block = addBlock(kernel, p.in, p, spec.batch, false, batch_grid, row_grid, col_grid);
  p.out.block = addBlock(kernel, p.out, p, spec.batch, true, batch_grid, col_grid, row_grid);
  kernel.vmem_budget = 2 * p.batch_block * (p.in.bytes() + p.out.bytes());
  Vec e(kernel.code, chip);
  llo::CodeBuilder& b = e.code();
  const S in = b.block(p.in.block), out = b.block(p.out.block);
  const int64_t in_square_rows = std::max<int64_t>(1, kLanes / p.in.tile_rows) * p.in.row_bytes();
  const int64_t out_square_rows = std::max<int64_t>(1, kLanes / p.out.tile_rows) * p.out.row_bytes();
  const auto at = [&](S base, S i, int64_t bytes) { return b.s(Opcode::sadd, {base, b.s(Opcode::smul, {i, bytes})}); };
  b.loop(p.batch_block, [&](S m) {
    const S in_matrix = at(in, m, p.in.bytes()), out_matrix = at(out, m, p.out.bytes());
    b.loop(p.in.block_rows / kLanes, [&](S r) {
      const S in_row = at(in_matrix, r, in_square_rows), out_col = at(out_matrix, r, p.out.tile_bytes);
      b.loop(p.in.block_cols / kLanes, [&](S c) {
        transposeSquare(e, spec, p, at(in_row, c, p.in.tile_bytes), at(out_col, c, out_square_rows));
      });
    });
  });
  e.finish();
  return kernel;
}

}  // namespace tpu::lower
