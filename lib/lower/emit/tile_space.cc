// Units, blocks and transfers of a tile space.
#include "tile_space.h"

#include <algorithm>

#include "tpu/isa/layout.h"

namespace tpu::lower::emit {
namespace {

bool usesIota(const LoopSpec& spec, int dim) {
  for (const ExprNode& n : spec.nodes)
    if (n.kind == ExprNode::kIota && n.index == dim) return true;
  return false;
}

// The array of an input or output with dims `dims` over the spec's shape, leads merged as `groups` say.
TiledArray makeArray(ElementType type, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> shape,
                     llvm::ArrayRef<llvm::SmallVector<int, 4>> groups) {
  TiledArray a;
  a.type = type;
  const size_t rank = shape.size();
  for (const auto& g : groups) a.lead_broadcast.push_back(dims[g.front()] == 1 && shape[g.front()] > 1);
  a.row_broadcast = rank >= 2 && dims[rank - 2] == 1 && shape[rank - 2] > 1;
  a.col_broadcast = dims[rank - 1] == 1 && shape[rank - 1] > 1;
  return a;
}

}  // namespace

TileSpace makeSpace(const LoopSpec& spec, llvm::ArrayRef<bool> reduced, SpaceMap* map) {
  TileSpace space;
  const int rank = static_cast<int>(spec.shape.size());
  const auto isReduced = [&](int d) { return !reduced.empty() && reduced[d]; };
  // Groups of adjacent leading dimensions that every array treats alike.
  std::vector<llvm::SmallVector<int, 4>> groups;
  for (int d = 0; d + 2 < rank; ++d) {
    if (spec.shape[d] == 1) continue;
    bool joins = !groups.empty();
    if (joins) {
      const int before = groups.back().back();
      joins = isReduced(before) == isReduced(d) && !usesIota(spec, d) && !usesIota(spec, before);
      for (const InputSpec& in : spec.inputs)
        joins &= in.scalar || (in.dims[before] == 1) == (in.dims[d] == 1);
    }
    if (!joins) groups.emplace_back();
    groups.back().push_back(d);
  }
  for (const auto& g : groups) {
    int64_t n = 1;
    for (int d : g) n *= spec.shape[d];
    space.leads.push_back(n);
  }
  space.rows = rank >= 2 ? spec.shape[rank - 2] : 1;
  space.cols = spec.shape[rank - 1];
  map->axis_of_dim.assign(rank, -1);
  map->scale.assign(rank, 1);
  for (size_t g = 0; g < groups.size(); ++g) {
    int64_t scale = 1;
    for (size_t i = groups[g].size(); i-- > 0;) {
      map->axis_of_dim[groups[g][i]] = static_cast<int>(g);
      map->scale[groups[g][i]] = scale;
      scale *= spec.shape[groups[g][i]];
    }
  }
  if (rank >= 2) map->axis_of_dim[rank - 2] = space.rowAxis();
  map->axis_of_dim[rank - 1] = space.colAxis();
  space.axes.resize(space.leads.size() + 2);
  for (int d = 0; d < rank; ++d)
    if (isReduced(d) && map->axis_of_dim[d] >= 0) space.axes[map->axis_of_dim[d]].reduced = true;

  int param = 0;
  for (const InputSpec& in : spec.inputs) {
    if (!in.scalar) {
      space.arrays.push_back(makeArray(in.type, in.dims, spec.shape, groups));
      space.arrays.back().param = param;
    }
    ++param;
  }
  if (reduced.empty())
    for (int o : spec.outputs) {
      space.arrays.push_back(makeArray(spec.nodes[o].type, spec.shape, spec.shape, groups));
      space.arrays.back().param = param++;
      space.arrays.back().output = true;
    }
  space.layOut();
  return space;
}

void TileSpace::layOut() {
  const int64_t slice[2] = {rows, cols};
  word_tile_rows = isa::defaultLayout(ElementType::kF32, slice).tile_rows;
  K = 1;
  H = tilesPerRegister();
  for (TiledArray& a : arrays) {
    const int64_t own[2] = {a.row_broadcast ? 1 : rows, a.col_broadcast ? 1 : cols};
    const isa::Layout layout = isa::defaultLayout(a.type, own);
    a.packing = layout.packing;
    a.tile_rows = layout.tile_rows;
    a.tile_bytes = a.tile_rows / a.packing * kRowBytes;
    a.row_tiles = ceilDiv(own[0], a.tile_rows);
    a.col_tiles = ceilDiv(own[1], kLanes);
    const int word_rows = a.row_broadcast ? 1 : word_tile_rows;
    a.packed = a.packing <= word_rows || a.packing == 1 ? Packed::kRows : word_rows == 1 ? Packed::kLow : Packed::kSpread;
    if (a.row_broadcast) continue;
    if (word_tile_rows == 8) K = std::max(K, a.tile_rows / 8);
    if (!a.col_broadcast) H = std::max(H, 8 * a.packing / a.tile_rows);
  }
  for (TiledArray& a : arrays) {
    a.tiles_per_unit = a.row_broadcast || word_tile_rows < 8 ? 1 : K * 8 / a.tile_rows;
    int64_t stride = a.row_tiles * a.col_tiles * a.tile_bytes;
    a.hbm_lead_stride.assign(leads.size(), 0);
    for (size_t i = leads.size(); i-- > 0;) {
      if (a.lead_broadcast[i]) continue;
      a.hbm_lead_stride[i] = stride;
      stride *= leads[i];
    }
  }
  for (size_t i = 0; i < leads.size(); ++i) axes[i].size = leads[i];
  axes[rowAxis()].size = word_tile_rows < 8 ? 1 : ceilDiv(rows, K * 8);
  axes[colAxis()].size = ceilDiv(colTiles(), H);
}

int64_t TileSpace::placeBlocks() {
  int64_t total = 0;
  for (TiledArray& a : arrays) {
    a.vmem_row_tiles = a.row_broadcast ? 1 : axes[rowAxis()].block * a.tiles_per_unit;
    a.vmem_col_tiles = a.col_broadcast ? 1 : axes[colAxis()].block * H;
    a.vmem_stride.assign(axes.size(), 0);
    if (!a.col_broadcast) a.vmem_stride[colAxis()] = H * a.tile_bytes;
    if (!a.row_broadcast) a.vmem_stride[rowAxis()] = a.tiles_per_unit * a.vmem_col_tiles * a.tile_bytes;
    int64_t bytes = a.vmem_row_tiles * a.vmem_col_tiles * a.tile_bytes;
    for (size_t i = leads.size(); i-- > 0;) {
      if (a.lead_broadcast[i]) continue;
      a.vmem_stride[i] = bytes;
      bytes *= axes[i].block;
    }
    a.vmem_bytes = roundUp(bytes, kRegisterBytes);
    total += a.vmem_bytes;
  }
  return total;
}

// `size` or a little more, so that a factor near `unroll` divides it.
static int64_t padForUnroll(int64_t size, int unroll) {
  if (size <= unroll) return size;
  int64_t best = roundUp(size, unroll);
  for (int u = unroll - 1; u > unroll / 2; --u) best = std::min(best, roundUp(size, u));
  return best;
}

bool TileSpace::chooseBlocks(int64_t budget, int64_t target, int unroll) {
  const auto fits = [&] {
    if (2 * placeBlocks() > budget) return false;
    for (const TiledArray& a : arrays)
      if (a.vmem_bytes > target) return false;
    return true;
  };
  for (Axis& a : axes) a.block = 1;
  const bool minimum_fits = 2 * placeBlocks() <= budget;
  const int blocked_leads = std::min<int>(2, static_cast<int>(leads.size()));
  llvm::SmallVector<int, 4> order = {colAxis(), rowAxis()};
  for (int i = 0; i < blocked_leads; ++i) order.push_back(rowAxis() - 1 - i);
  for (int axis : order) {
    Axis& a = axes[axis];
    int64_t low = 1, high = a.size;
    while (low < high) {  // the largest block that fits
      const int64_t middle = (low + high + 1) / 2;
      a.block = middle;
      if (fits()) low = middle;
      else high = middle - 1;
    }
    a.block = low;
    if (low < a.size) {  // blocks of equal size
      a.block = std::min(low, roundUp(ceilDiv(a.size, a.blocks()), std::min<int64_t>(unroll, low)));
      break;
    }
    a.block = padForUnroll(a.size, unroll);
    if (!fits()) a.block = a.size;
  }
  placeBlocks();
  return minimum_fits;
}

int TileSpace::unrollOf(int axis, int wanted) const {
  const int64_t block = axes[axis].block;
  for (int64_t u = std::min<int64_t>(wanted, block); u > 1; --u)
    if (block % u == 0) return static_cast<int>(u);
  return 1;
}

llo::Scalar TileSpace::blockStart(llo::CodeBuilder& b, int axis) const {
  const Axis& a = axes[axis];
  if (a.grid < 0) return {};
  const S s = b.s(Opcode::smul, {b.grid(a.grid), a.block});
  return {true, s.id, 0};
}

void TileSpace::buildPipeline(llo::Kernel& kernel) {
  for (const bool reduced : {false, true})
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].reduced != reduced || axes[i].blocks() == 1) continue;
      axes[i].grid = static_cast<int>(kernel.grid.size());
      kernel.grid.push_back(axes[i].blocks());
    }
  for (TiledArray& a : arrays) {
    llo::PipelineBlock block;
    block.name = (a.output ? "out" : "in") + std::to_string(a.param);
    block.param = a.param;
    block.direction = a.output ? llo::Direction::kOut : llo::Direction::kIn;
    block.bytes = a.vmem_bytes;
    block.step.assign(kernel.grid.size(), 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].grid < 0) continue;
      const int axis = static_cast<int>(i);
      int64_t unit = 0;
      if (axis < rowAxis()) unit = a.hbm_lead_stride[i];
      else if (axis == rowAxis()) unit = a.row_broadcast ? 0 : a.tiles_per_unit * a.col_tiles * a.tile_bytes;
      else unit = a.col_broadcast ? 0 : H * a.tile_bytes;
      block.step[axes[i].grid] = unit * axes[i].block;
    }
    addTransfers(a, block);
    a.block = static_cast<int>(kernel.blocks.size());
    kernel.blocks.push_back(std::move(block));
  }
}

void TileSpace::addTransfers(const TiledArray& a, llo::PipelineBlock& block) const {
  // From the inside out: columns (the run), rows, leads; contiguous extents are joined.
  struct Extent {
    int64_t count, edge, hbm_stride, vmem_stride;
    int grid;
  };
  std::vector<Extent> extents;
  const Axis &col = axes[colAxis()], &row = axes[rowAxis()];
  Extent run{a.tile_bytes, 0, 0, 0, -1};
  if (!a.col_broadcast) {
    const int64_t tiles = col.block * H;
    run.count = std::min(tiles, a.col_tiles) * a.tile_bytes;
    if (col.grid >= 0) {
      run.edge = (a.col_tiles - (col.blocks() - 1) * tiles) * a.tile_bytes;
      run.grid = run.edge == run.count ? -1 : col.grid;
    }
  }
  const auto add = [&](int64_t tiles, int64_t total, int64_t blocks, int grid, int64_t hbm, int64_t vmem) {
    Extent e{std::min(tiles, total), total - (blocks - 1) * tiles, hbm, vmem, grid};
    if (e.count == 1 && blocks == 1) return;
    if (e.edge == e.count) e.grid = -1;
    Extent& inner = extents.empty() ? run : extents.back();
    const int64_t inner_hbm = extents.empty() ? run.count : inner.hbm_stride * inner.count;
    const int64_t inner_vmem = extents.empty() ? run.count : inner.vmem_stride * inner.count;
    if (inner.grid < 0 && hbm == inner_hbm && vmem == inner_vmem) {
      const int64_t n = inner.count;
      inner.count = n * e.count;
      inner.edge = n * e.edge;
      inner.grid = e.grid;
      return;
    }
    extents.push_back(e);
  };
  if (!a.row_broadcast)
    add(row.block * a.tiles_per_unit, a.row_tiles, row.blocks(), row.grid, a.col_tiles * a.tile_bytes,
        a.vmem_col_tiles * a.tile_bytes);
  for (size_t i = leads.size(); i-- > 0;)
    if (!a.lead_broadcast[i] && axes[i].block > 1)
      add(axes[i].block, leads[i], axes[i].blocks(), axes[i].grid, a.hbm_lead_stride[i], a.vmem_stride[i]);

  llo::Transfer t;
  t.run = run.count;
  t.run_edge_grid = run.grid;
  t.run_edge = run.grid >= 0 ? run.edge : 0;
  assert(extents.size() <= 3);
  for (size_t i = 0; i < extents.size(); ++i)
    t.dims[i] = {extents[i].count, extents[i].hbm_stride, extents[i].vmem_stride, extents[i].grid,
                 extents[i].grid >= 0 ? extents[i].edge : 0};
  block.transfers.push_back(t);
}

bool isFlat(const LoopSpec& spec) {
  const size_t rank = spec.shape.size();
  const int64_t slice[2] = {rank >= 2 ? spec.shape[rank - 2] : 1, spec.shape[rank - 1]};
  llvm::SmallVector<ElementType, 6> types;
  for (const InputSpec& in : spec.inputs) {
    if (in.scalar) continue;
    if (in.dims != spec.shape) return false;
    types.push_back(in.type);
  }
  for (const ExprNode& n : spec.nodes)
    if (n.kind == ExprNode::kIota) return false;
  for (int o : spec.outputs) types.push_back(spec.nodes[o].type);
  // The same packing everywhere, or tiles of the same rows everywhere.
  bool same_packing = true, same_rows = true;
  const int word_rows = isa::defaultLayout(ElementType::kF32, slice).tile_rows;
  for (ElementType t : types) {
    const isa::Layout layout = isa::defaultLayout(t, slice);
    same_packing &= layout.packing == isa::packingOf(types[0]);
    same_rows &= layout.tile_rows == word_rows || word_rows < 8;
  }
  return (same_packing && word_rows == 8) || same_rows;
}

TileSpace makeFlatSpace(const LoopSpec& spec) {
  // All word rows of 128 lanes in one row of tiles.
  const size_t rank = spec.shape.size();
  const int64_t slice[2] = {rank >= 2 ? spec.shape[rank - 2] : 1, spec.shape[rank - 1]};
  const int word_rows = isa::defaultLayout(ElementType::kF32, slice).tile_rows;
  const ElementType first = spec.nodes[spec.outputs[0]].type;
  const isa::Layout layout = isa::defaultLayout(first, slice);
  int64_t batch = 1;
  for (size_t d = 0; d + 2 < rank; ++d) batch *= spec.shape[d];
  int64_t tiles = batch * ceilDiv(slice[0], layout.tile_rows) * ceilDiv(slice[1], kLanes);
  if (word_rows == 8) tiles *= layout.tile_rows / 8;
  TileSpace space;
  space.rows = word_rows;
  if (word_rows < 8) space.rows = std::min<int64_t>(slice[0], word_rows);
  space.cols = tiles * kLanes;
  space.axes.resize(2);
  int param = 0;
  const auto add = [&](ElementType type, bool output) {
    TiledArray a;
    a.type = type;
    a.param = param;
    a.output = output;
    space.arrays.push_back(a);
  };
  for (const InputSpec& in : spec.inputs) {
    if (!in.scalar) add(in.type, false);
    ++param;
  }
  for (int o : spec.outputs) {
    add(spec.nodes[o].type, true);
    ++param;
  }
  space.layOut();
  return space;
}

}  // namespace tpu::lower::emit
