// Matrix product kernels: grid, blocks, and the body around the streaming loop.
#include "dot_body.h"
#include "tpu/support/diagnostics.h"

namespace tpu::lower {
namespace emit {
namespace {

struct GridDims {
  int b = -1, m = -1, n = -1, k = -1;
};

GridDims buildGrid(const DotPlan& p, llo::Kernel& kernel) {
  GridDims g;
  const auto add = [&](int64_t count, int& dim) {
    if (count == 1) return;
    dim = static_cast<int>(kernel.grid.size());
    kernel.grid.push_back(count);
  };
  add(p.gb, g.b);
  add(p.gm, g.m);
  add(p.gn, g.n);
  add(p.gk, g.k);
  return g;
}

// The block of one operand: rows and columns may have a grid dimension each.
int addBlock(llo::Kernel& kernel, const DotPlan& p, const DotOperand& o, int64_t batch, int param, bool output, int batch_grid,
             int row_grid, int col_grid) {
  llo::PipelineBlock block;
  block.name = output ? "out" : param == 0 ? "lhs" : "rhs";
  block.param = param;
  block.direction = output ? llo::Direction::kOut : llo::Direction::kIn;
  block.bytes = p.bb * o.matrix_bytes();
  const int64_t row_tiles = ceilDiv(o.rows, o.tile_rows), col_tiles = ceilDiv(o.cols, kLanes);
  const int64_t block_rows = o.block_row_tiles(), block_cols = o.col_tiles();
  const int64_t row_bytes = col_tiles * o.tile_bytes, matrix = row_tiles * row_bytes;
  block.step.assign(kernel.grid.size(), 0);
  if (batch_grid >= 0) block.step[batch_grid] = p.bb * matrix;
  if (row_grid >= 0) block.step[row_grid] = block_rows * row_bytes;
  if (col_grid >= 0) block.step[col_grid] = block_cols * o.tile_bytes;
  llo::Transfer t;
  const auto extent = [](int64_t block, int64_t total, int grid, int64_t& count, int64_t& edge, int& edge_grid) {
    count = std::min(block, total);
    edge = grid < 0 ? count : total - (ceilDiv(total, block) - 1) * block;
    edge_grid = edge == count ? -1 : grid;
  };
  int64_t tiles = 0, edge = 0;
  extent(block_cols, col_tiles, col_grid, tiles, edge, t.run_edge_grid);
  t.run = tiles * o.tile_bytes;
  t.run_edge = t.run_edge_grid >= 0 ? edge * o.tile_bytes : 0;
  llo::TransferDim rows{1, row_bytes, block_cols * o.tile_bytes, -1, 0};
  extent(block_rows, row_tiles, row_grid, rows.count, rows.edge_count, rows.edge_grid);
  if (t.run_edge_grid < 0 && rows.hbm_stride == t.run && rows.vmem_stride == t.run) {
    t.run_edge_grid = rows.edge_grid;
    t.run_edge = rows.edge_grid >= 0 ? rows.edge_count * t.run : 0;
    t.run *= rows.count;
    rows = {};
  }
  if (rows.edge_grid < 0) rows.edge_count = 0;
  t.dims[0] = rows;
  llo::TransferDim matrices{1, matrix, o.matrix_bytes(), -1, 0};
  extent(p.bb, batch, batch_grid, matrices.count, matrices.edge_count, matrices.edge_grid);
  if (matrices.edge_grid < 0) matrices.edge_count = 0;
  t.dims[1] = matrices;
  block.transfers.push_back(t);
  kernel.blocks.push_back(std::move(block));
  return static_cast<int>(kernel.blocks.size()) - 1;
}

int addScratch(llo::Kernel& kernel, int64_t bytes) {
  kernel.scratch.push_back(roundUp(bytes, kRegisterBytes));
  return static_cast<int>(kernel.scratch.size()) - 1;
}

// Runs `code` in the grid steps in which all the given grid dimensions have the given index.
void when(llo::CodeBuilder& b, llvm::ArrayRef<std::pair<int, int64_t>> conditions, llvm::function_ref<void()> code) {
  P all;
  for (const auto& [dim, index] : conditions) {
    if (dim < 0) continue;
    const P p = b.p(Opcode::scmp_eq, {b.grid(dim), index});
    all = all.id < 0 ? p : b.p(Opcode::pand, {all, p});
  }
  if (all.id < 0) code();
  else b.ifThen(all, code);
}

void emitOperand(Vec& e, const DotPlan& p, const DotOperand& o, S block, S area, int64_t k_valid, bool k_in_columns, int k_grid,
                 bool once, int other_grid) {
  llo::CodeBuilder& b = e.code();
  // What was done to a block or scratch area holds until the block changes.
  const int unchanged = once ? other_grid : -1;
  if (o.prepared) when(b, {{unchanged, 0}}, [&] { prepareOperand(e, p, o, block, area); });
  when(b, {{unchanged, 0}, {k_grid, p.gk - 1}}, [&] {
    if (k_in_columns) clearColumns(e, p, o, area, k_valid);
    else clearRows(e, p, o, area, k_valid);
  });
}

void emitBody(Vec& e, const DotSpec& spec, const DotPlan& p, const GridDims& g) {
  llo::CodeBuilder& b = e.code();
  const S lhs = b.block(p.lhs.block), rhs = b.block(p.rhs.block), out = b.block(p.out.block);
  const int64_t k_valid = spec.k - (p.gk - 1) * p.bk;
  const auto matrix = [&](S l, S r, S o) {
    const S lhs_area = p.lhs.prepared ? b.scratch(p.lhs.scratch) : l;
    const S rhs_area = p.rhs.prepared ? b.scratch(p.rhs.scratch) : r;
    emitOperand(e, p, p.lhs, l, lhs_area, k_valid, true, g.k, p.bb == 1 && p.gk == 1, g.n);
    emitOperand(e, p, p.rhs, r, rhs_area, k_valid, p.rhs_transposed, g.k, p.bb == 1 && p.gk == 1 && p.gn == 1, g.m);
    const S acc = p.accumulate_in_output ? o : b.scratch(p.acc_scratch);
    llo::Scalar k_block;
    if (g.k >= 0) k_block = {true, b.grid(g.k).id, 0};
    emitDotBlock(e, p, {lhs_area, rhs_area, acc}, k_block);
    if (!p.accumulate_in_output) when(b, {{g.k, p.gk - 1}}, [&] { storeResult(e, p, acc, o); });
  };
  if (p.bb == 1) {
    matrix(lhs, rhs, out);
    return;
  }
  b.loop(p.bb, [&](S i) {
    const auto at = [&](S base, const DotOperand& o) {
      return b.s(Opcode::sadd, {base, b.s(Opcode::smul, {i, o.matrix_bytes()})});
    };
    matrix(at(lhs, p.lhs), at(rhs, p.rhs), at(out, p.out));
  });
}

}  // namespace
}  // namespace emit

using namespace emit;

llvm::Expected<llo::Kernel> emitDot(const DotSpec& spec, const target::Chip& chip, const std::string& name) {
  llvm::Expected<DotPlan> planned = planDot(spec, chip, name);
  if (!planned) return planned.takeError();
  DotPlan& p = *planned;
  llo::Kernel kernel;
  kernel.name = name;
  for (const char* param : {"lhs", "rhs", "out"}) kernel.params.push_back({llo::KernelParam::kHbm, param});
  const GridDims g = buildGrid(p, kernel);
  p.lhs.block = addBlock(kernel, p, p.lhs, spec.batch, 0, false, g.b, g.m, g.k);
  p.rhs.block = addBlock(kernel, p, p.rhs, spec.batch, 1, false, g.b, p.rhs_transposed ? g.n : g.k, p.rhs_transposed ? g.k : g.n);
  p.out.block = addBlock(kernel, p, p.out, spec.batch, 2, true, g.b, g.m, g.n);
  for (DotOperand* o : {&p.lhs, &p.rhs})
    if (o->prepared) o->scratch = addScratch(kernel, o->parts * partBytes(p, *o));
  if (!p.accumulate_in_output) p.acc_scratch = addScratch(kernel, p.accBytes());
  kernel.vmem_budget = p.vmem;
  kernel.flops = 2 * spec.batch * spec.m * spec.n * spec.k;
  Vec e(kernel.code, chip);
  emitBody(e, spec, p, g);
  e.finish();
  return kernel;
}

}  // namespace tpu::lower
