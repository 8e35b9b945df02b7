// Chooses operand form, unit arrangement and block sizes of a matrix product.
#include "dot_plan.h"

#include <algorithm>

#include "tpu/isa/layout.h"
#include "tpu/support/diagnostics.h"

namespace tpu::lower::emit {
namespace {

bool takes(const target::Chip& chip, llvm::StringRef type) {
  return std::find(chip.mxu_types.begin(), chip.mxu_types.end(), type) != chip.mxu_types.end();
}

MatrixMode modeOf(ElementType type) {
  using isa::LatencyClass;
  switch (type) {
    case ElementType::kBF16:
      return {type, 16, Opcode::vmatpush_bf16, Opcode::vmatpusht_bf16, Opcode::vmatmul_bf16, Opcode::vmatmul_acc_bf16,
              LatencyClass::kMatmul_bf16, false};
    case ElementType::kS8:
      return {type, 32, Opcode::vmatpush_s8, Opcode::vmatpusht_s8, Opcode::vmatmul_s8, Opcode::vmatmul_acc_s8,
              LatencyClass::kMatmul_s8, true};
    case ElementType::kU8:
      return {type, 32, Opcode::vmatpush_u8, Opcode::vmatpusht_u8, Opcode::vmatmul_u8, Opcode::vmatmul_acc_u8,
              LatencyClass::kMatmul_u8, true};
    default:
      return {ElementType::kF32, 8, Opcode::vmatpush_f32, Opcode::vmatpusht_f32, Opcode::vmatmul_f32, Opcode::vmatmul_acc_f32,
              LatencyClass::kMatmul_f32, false};
  }
}

llvm::Expected<MatrixMode> chooseMode(const DotSpec& spec, const target::Chip& chip, const std::string& name) {
  const bool bytes = isInteger(spec.lhs);
  if (bytes && spec.lhs == spec.rhs && takes(chip, elementTypeName(spec.lhs))) return modeOf(spec.lhs);
  const bool plain_f32 = spec.lhs == ElementType::kF32 && spec.passes == 1;
  if (!plain_f32 && takes(chip, "bf16")) return modeOf(ElementType::kBF16);
  if (takes(chip, "f32")) return modeOf(ElementType::kF32);
  if (takes(chip, "bf16")) return modeOf(ElementType::kBF16);
  return fail(Code::kNoMatrixUnit, "", "kernel " + name + ": chip " + chip.name + " multiplies neither " +
              elementTypeName(spec.lhs) + " nor a type that holds it exactly");
}

void chooseUnits(DotPlan& p, const DotSpec& spec, const target::Chip& chip) {
  p.side = chip.mxu_side;
  p.tile_k = p.tile_n = std::max(1, p.side / 128);
  p.addressed = chip.mxu_addressed;
  const int available = std::max(1, p.side >= 128 ? chip.mxus : chip.mxus / 4);
  const int64_t k_tiles = ceilDiv(std::max<int64_t>(spec.k, 1), kLanes * p.tile_k), n_tiles = ceilDiv(spec.n, kLanes * p.tile_n);
  int64_t best = INT64_MAX;
  for (int mk = available; mk >= 1; --mk) {
    const int mn = available / mk;
    const int64_t steps = ceilDiv(k_tiles, mk) * ceilDiv(n_tiles, mn);
    if (steps < best) {
      best = steps;
      p.mk = static_cast<int>(std::min<int64_t>(mk, k_tiles));
      p.mn = static_cast<int>(std::min<int64_t>(mn, n_tiles));
    }
  }
  p.units = p.mk * p.mn;
}

void choosePasses(DotPlan& p, const DotSpec& spec) {
  p.passes = {{0, 0}};
  if (spec.lhs != ElementType::kF32 || spec.passes == 1) return;
  if (spec.passes == 3) p.passes = {{0, 1}, {1, 0}, {0, 0}};
  else p.passes = {{0, 2}, {2, 0}, {1, 1}, {0, 1}, {1, 0}, {0, 0}};
}

DotOperand operandOf(ElementType type, int64_t rows, int64_t cols, const DotPlan& p) {
  DotOperand o;
  o.type = type;
  o.rows = rows;
  o.cols = cols;
  const int64_t dims[2] = {rows, cols};
  const isa::Layout layout = isa::defaultLayout(type, dims);
  o.packing = layout.packing;
  o.tile_rows = layout.tile_rows;
  o.tile_bytes = o.tile_rows / o.packing * kRowBytes;
  o.parts = p.passes.size() == 1 ? 1 : p.passes.size() == 3 ? 2 : 3;
  o.prepared = type != p.mode.type || o.tile_rows != p.mode.rows || o.parts > 1;
  return o;
}

// Sets operand blocks from the block sizes and returns the VMEM bytes, all slots included.
int64_t place(DotPlan& p) {
  p.lhs.block_rows = p.bm;
  p.lhs.block_cols = p.bk;
  p.rhs.block_rows = p.rhs_transposed ? p.bn : p.bk;
  p.rhs.block_cols = p.rhs_transposed ? p.bk : p.bn;
  p.out.block_rows = p.bm;
  p.out.block_cols = p.bn;
  const int slots = p.gb * p.gm * p.gn * p.gk == 1 ? 1 : p.slots;
  int64_t bytes = slots * p.bb * (p.lhs.matrix_bytes() + p.rhs.matrix_bytes() + p.out.matrix_bytes());
  for (const DotOperand* o : {&p.lhs, &p.rhs})
    if (o->prepared) bytes += o->parts * partBytes(p, *o);
  if (!p.accumulate_in_output) bytes += p.accBytes();
  p.vmem = bytes;
  return bytes;
}

// Cycles of a grid, roughly: compute and transfers overlap, a step has a fixed cost.
double estimate(const DotPlan& p, const target::Chip& chip) {
  const double bytes_per_cycle = static_cast<double>(chip.hbm_sustained_bytes_per_s) / std::max(1, chip.devicesPerChip()) /
                                 static_cast<double>(chip.clock_hz);
  const int interval = chip.timing(isa::latencyClassName(p.mode.latency)).interval;
  const double streams = static_cast<double>(p.bb * p.rowChunks() * p.nGroups() * p.kGroups()) * static_cast<double>(p.passes.size());
  // Each weight set is pushed while the one before is in use.
  const int push = chip.timing(isa::latencyClassName(p.rhs_transposed ? isa::LatencyClass::kMatPushT : isa::LatencyClass::kMatPush)).interval;
  const double weights = static_cast<double>(p.groupsPerTile()) * p.tile_k * p.tile_n * push;
  const double compute = streams * std::max<double>(p.chunk * interval * p.panels(), weights) +
                         static_cast<double>(p.bb) * (weights + 250);
  const double in_lhs = static_cast<double>(p.bb * p.lhs.matrix_bytes()), in_rhs = static_cast<double>(p.bb * p.rhs.matrix_bytes());
  const double out = static_cast<double>(p.bb * p.out.matrix_bytes());
  const double steps = static_cast<double>(p.gb * p.gm * p.gn * p.gk);
  const double lhs_fetches = p.gk == 1 ? static_cast<double>(p.gb * p.gm) : steps;
  const double rhs_fetches = p.gk == 1 && p.gn == 1 ? static_cast<double>(p.gb) : steps;
  const double stores = static_cast<double>(p.gb * p.gm * p.gn);
  const double transfers = (in_lhs * lhs_fetches + in_rhs * rhs_fetches + out * stores) / bytes_per_cycle + steps * 200;
  return std::max(steps * (compute + 150), transfers) + (in_lhs + in_rhs + out) / bytes_per_cycle;
}

// Block counts worth trying for `units` units.
llvm::SmallVector<int64_t, 24> counts(int64_t units) {
  llvm::SmallVector<int64_t, 24> list;
  for (int64_t n = 1; n <= units; n = n < 8 ? n + 1 : n + n / 2) list.push_back(n);
  if (list.back() != units) list.push_back(units);
  return list;
}

bool chooseBlocks(DotPlan& p, const DotSpec& spec, const target::Chip& chip, int64_t budget) {
  const int64_t m_unit = p.mode.rows, n_unit = p.mn * p.tile_n * kLanes, k_unit = p.mk * p.tile_k * kLanes;
  const int64_t m_units = ceilDiv(std::max<int64_t>(spec.m, 1), m_unit);
  const int64_t n_units = ceilDiv(spec.n, n_unit), k_units = ceilDiv(std::max<int64_t>(spec.k, 1), k_unit);
  int64_t chunk_limit = std::max<int64_t>(1, (chip.vector_regs >= 32 ? 256 : 64) / p.mode.rows);
  if (p.addressed) chunk_limit = std::clamp<int64_t>(chip.mrb_entries / p.entries(), 1, chunk_limit);
  // Blocks of several row tiles must be whole tiles in memory.
  const int64_t m_align = std::max<int64_t>({p.lhs.tile_rows, p.out.tile_rows, p.mode.rows}) / p.mode.rows;
  DotPlan best = p;
  double best_cost = 0;
  bool found = false;
  int64_t smallest = INT64_MAX;
  for (int64_t gm : counts(m_units)) {
    int64_t bm_units = ceilDiv(m_units, gm);
    if (gm > 1) bm_units = roundUp(bm_units, m_align);
    const int64_t chunks = ceilDiv(bm_units, chunk_limit);
    const int64_t chunk = ceilDiv(bm_units, chunks);
    bm_units = chunks * chunk;
    if (gm > 1 && bm_units % m_align) bm_units = roundUp(bm_units, chunk * m_align);
    for (int64_t gn : counts(n_units))
      for (int64_t gk : counts(k_units)) {
        p.chunk = static_cast<int>(chunk);
        p.bm = bm_units * m_unit;
        p.bn = ceilDiv(n_units, gn) * n_unit;
        p.bk = ceilDiv(k_units, gk) * k_unit;
        p.gm = std::max<int64_t>(1, ceilDiv(spec.m, p.bm));
        p.gn = ceilDiv(spec.n, p.bn);
        p.gk = std::max<int64_t>(1, ceilDiv(spec.k, p.bk));
        p.bb = 1;
        p.gb = spec.batch;
        smallest = std::min(smallest, place(p));
        if (p.vmem > budget) continue;
        if (p.gm == 1 && p.gn == 1 && p.gk == 1 && spec.batch > 1) {  // several small matrices in a step
          const int64_t one = p.vmem;
          const int64_t wanted = std::min<int64_t>(spec.batch, std::max<int64_t>(1, std::min<int64_t>(budget, 4 << 20) / one));
          p.bb = ceilDiv(spec.batch, ceilDiv(spec.batch, wanted));
          p.gb = ceilDiv(spec.batch, p.bb);
          place(p);
        }
        const double cost = estimate(p, chip);
        if (!found || cost < best_cost) {
          best = p;
          best_cost = cost;
          found = true;
        }
      }
  }
  p = best;
  if (!found) p.vmem = smallest;
  return found;
}

}  // namespace

llvm::Expected<DotPlan> planDot(const DotSpec& spec, const target::Chip& chip, const std::string& name) {
  DotPlan p;
  llvm::Expected<MatrixMode> mode = chooseMode(spec, chip, name);
  if (!mode) return mode.takeError();
  p.mode = *mode;
  if (chip.mxu_side != 64 && chip.mxu_side != 128 && chip.mxu_side != 256)
    return fail(Code::kNoMatrixUnit, "", "kernel " + name + ": matrix units of side " + llvm::Twine(chip.mxu_side) + " are not supported");
  if (chip.mxu_side == 64 && chip.mxus < 4)
    return fail(Code::kNoMatrixUnit, "", "kernel " + name + ": matrix units of side 64 are used in fours, the chip has " + llvm::Twine(chip.mxus));
  p.rhs_transposed = spec.rhs_transposed;
  p.integer = isInteger(spec.lhs);
  chooseUnits(p, spec, chip);
  choosePasses(p, spec);
  p.lhs = operandOf(spec.lhs, spec.m, spec.k, p);
  p.rhs = spec.rhs_transposed ? operandOf(spec.rhs, spec.n, spec.k, p) : operandOf(spec.rhs, spec.k, spec.n, p);
  p.out = operandOf(spec.out, spec.m, spec.n, p);
  p.out.prepared = false;
  const bool same_type = p.integer ? spec.out == ElementType::kS32 : spec.out == ElementType::kF32;
  p.accumulate_in_output = same_type && p.out.tile_rows == 8;
  // Two slots per block where they fit; a small memory may have to do with one.
  bool fits = chooseBlocks(p, spec, chip, chip.vmem_bytes / 4 * 3);
  if (!fits) {
    p.slots = 1;
    fits = chooseBlocks(p, spec, chip, largestShare(chip));
  }
  if (!fits)
    return fail(Code::kKernelTooLarge, "", "kernel " + name + ": its smallest blocks need " + llvm::Twine(p.vmem) +
                " bytes of VMEM, the chip has " + llvm::Twine(chip.vmem_bytes), ExitStatus::kDoesNotFit);
  place(p);
  const int depth = p.addressed ? chip.mrb_entries : chip.mrf_depth;
  if (p.entries() > depth)
    return fail(Code::kNoMatrixUnit, "", "kernel " + name + ": a multiplication yields " + llvm::Twine(p.entries()) +
                " results, the chip's matrix units hold " + llvm::Twine(depth));
  const target::Timing t = chip.timing(isa::latencyClassName(p.mode.latency));
  const int cover = t.latency / std::max(1, t.interval * p.panels()) + 3;
  p.lag = std::max(1, std::min({depth / p.entries(), cover, p.chunk}));
  return p;
}

}  // namespace tpu::lower::emit
