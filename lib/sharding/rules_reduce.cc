// Rules of reductions, windows, sorting, gather, scatter, matrix decompositions, fft and collectives.
#include "rules.h"
#include "tpu/sharding/reducer.h"

namespace tpu::sharding {

using hlo::AttrKey;
using hlo::Opcode;

void reduceRule(const RuleInput& in, OpRule& rule) {
  llvm::ArrayRef<int64_t> dims = in.m.getInts(in.id, AttrKey::dimensions);
  size_t n = in.op.results.size();
  bool combinable = isCombinable(in.m, in.op.regions.empty() ? hlo::RegionId() : in.op.regions[0]);
  const hlo::Type& x = in.operand(0);
  size_t at = 0;
  for (int64_t d = 0; d < x.rank(); ++d) {
    bool reduced = llvm::is_contained(dims, d);
    size_t to = reduced ? 0 : at++;
    if (reduced && !combinable) {
      rule.note = "this reduction cannot be combined from parts";
      continue;
    }
    int f = rule.addFactor(x.dims[d], reduced ? FactorKind::kReduction : FactorKind::kPass);
    for (size_t i = 0; i < n; ++i) {
      rule.operands[i][d].push_back(f);
      if (!reduced) rule.results[i][to].push_back(f);
    }
  }
}

void windowRule(const RuleInput& in, OpRule& rule) {
  auto window = in.m.getInts(in.id, AttrKey::window_dimensions),
       strides = in.m.getInts(in.id, AttrKey::window_strides);
  auto base = in.m.getInts(in.id, AttrKey::base_dilations), pads = in.m.getInts(in.id, AttrKey::padding);
  size_t n = in.op.results.size();
  for (int64_t d = 0; d < in.operand(0).rank(); ++d) {
    bool plain = window[d] == 1 && (strides.empty() || strides[d] == 1) && (base.empty() || base[d] == 1) &&
                 (pads.empty() || (pads[2 * d] == 0 && pads[2 * d + 1] == 0));
    if (!plain && (in.operand(0).dims[d] <= 1 || in.result(0).dims[d] <= 1)) continue;
    int f = rule.addFactor(in.result(0).dims[d], plain ? FactorKind::kPass : FactorKind::kNeighbour);
    for (size_t i = 0; i < n; ++i) {
      rule.operands[i][d].push_back(f);
      rule.results[i][d].push_back(f);
    }
  }
}

void selectAndScatterRule(const RuleInput& in, OpRule& rule) {
  auto window = in.m.getInts(in.id, AttrKey::window_dimensions), strides = in.m.getInts(in.id, AttrKey::window_strides);
  auto pads = in.m.getInts(in.id, AttrKey::padding);
  for (int64_t d = 0; d < in.operand(0).rank(); ++d) {
    int64_t size = window.empty() ? 1 : window[d], stride = strides.empty() ? 1 : strides[d];
    bool padded = !pads.empty() && (pads[2 * d] != 0 || pads[2 * d + 1] != 0);
    // Windows that neither overlap nor leave gaps are divided like a reshape: whole windows to each device. Others need
    // what overlaps from the neighbours.
    if (size != stride || padded || in.operand(0).dims[d] != in.operand(1).dims[d] * size) {
      if (in.operand(0).dims[d] <= 1 || in.operand(1).dims[d] <= 1) continue;
      int f = rule.addFactor(in.operand(0).dims[d], FactorKind::kNeighbour);
      for (TensorFactors* t : {&rule.operands[0], &rule.operands[1], &rule.results[0]}) (*t)[d].push_back(f);
      continue;
    }
    int f = rule.addFactor(in.operand(1).dims[d], FactorKind::kPass, size > 1);
    for (TensorFactors* t : {&rule.operands[0], &rule.operands[1], &rule.results[0]}) (*t)[d].push_back(f);
    if (size == 1) continue;
    int inner = rule.addFactor(size, FactorKind::kReplicate);
    rule.operands[0][d].push_back(inner);
    rule.results[0][d].push_back(inner);
  }
}

void gatherRule(const RuleInput& in, OpRule& rule) {
  const hlo::Module& m = in.m;
  auto offset = m.getInts(in.id, AttrKey::offset_dims),
       collapsed = m.getInts(in.id, AttrKey::collapsed_slice_dims);
  auto ob = m.getInts(in.id, AttrKey::operand_batching_dims),
       ib = m.getInts(in.id, AttrKey::start_indices_batching_dims);
  auto sizes = m.getInts(in.id, AttrKey::slice_sizes), map = m.getInts(in.id, AttrKey::start_index_map);
  int64_t ivd = m.getInt(in.id, AttrKey::index_vector_dim);
  const hlo::Type &x = in.operand(0), &idx = in.operand(1), &y = in.result(0);
  TensorFactors &fx = rule.operands[0], &fi = rule.operands[1], &fy = rule.results[0];

  llvm::SmallVector<int64_t, 4> batch_out;  // result dims that come from the indices, in order
  for (int64_t d = 0; d < y.rank(); ++d) {
    if (!llvm::is_contained(offset, d)) batch_out.push_back(d);
  }
  size_t b = 0;
  for (int64_t d = 0; d < idx.rank(); ++d) {
    if (d == ivd) continue;
    int f = rule.addFactor(idx.dims[d]);
    fi[d].push_back(f);
    fy[batch_out[b++]].push_back(f);
    for (size_t k = 0; k < ib.size(); ++k) {
      if (ib[k] == d) fx[ob[k]].push_back(f);
    }
  }
  size_t o = 0;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (llvm::is_contained(ob, d)) continue;
    bool is_collapsed = llvm::is_contained(collapsed, d);
    if (!is_collapsed) {
      int64_t out = offset[o++];
      if (sizes[d] == x.dims[d]) {
        int f = rule.addFactor(x.dims[d]);
        fx[d].push_back(f);
        fy[out].push_back(f);
        continue;
      }
    }
    // Each device looks up what lies in its range, the rest of the devices give zeros.
    if (llvm::is_contained(map, d) && sizes[d] > 0)
      fx[d].push_back(rule.addFactor(x.dims[d], FactorKind::kReduction));
  }
}

void scatterRule(const RuleInput& in, OpRule& rule) {
  const hlo::Module& m = in.m;
  auto window = m.getInts(in.id, AttrKey::update_window_dims),
       inserted = m.getInts(in.id, AttrKey::inserted_window_dims);
  auto ob = m.getInts(in.id, AttrKey::input_batching_dims),
       ib = m.getInts(in.id, AttrKey::scatter_indices_batching_dims);
  auto map = m.getInts(in.id, AttrKey::scatter_dims_to_operand_dims);
  int64_t ivd = m.getInt(in.id, AttrKey::index_vector_dim);
  size_t n = in.op.results.size();
  const hlo::Type &x = in.operand(0), &idx = in.operand(n), &u = in.operand(n + 1);
  bool combinable =
      n == 1 && reducerOf(m, in.op.regions.empty() ? hlo::RegionId() : in.op.regions[0]).has_value();
  auto onInputs = [&](int64_t d, int f) {
    for (size_t i = 0; i < n; ++i) {
      rule.operands[i][d].push_back(f);
      rule.results[i][d].push_back(f);
    }
  };
  auto onUpdates = [&](int64_t d, int f) {
    for (size_t i = 0; i < n; ++i) rule.operands[n + 1 + i][d].push_back(f);
  };
  llvm::SmallVector<int64_t, 4> scatter_dims;
  for (int64_t d = 0; d < u.rank(); ++d) {
    if (!llvm::is_contained(window, d)) scatter_dims.push_back(d);
  }
  size_t s = 0;
  for (int64_t d = 0; d < idx.rank(); ++d) {
    if (d == ivd) continue;
    int64_t ud = scatter_dims[s++];
    const int64_t* batch = llvm::find(ib, d);
    if (batch == ib.end() && !combinable) continue;
    int f = rule.addFactor(idx.dims[d], batch != ib.end() ? FactorKind::kPass : FactorKind::kReduction);
    rule.operands[n][d].push_back(f);
    onUpdates(ud, f);
    if (batch != ib.end()) onInputs(ob[batch - ib.begin()], f);
  }
  size_t w = 0;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (llvm::is_contained(ob, d)) continue;
    if (llvm::is_contained(inserted, d)) {
      if (llvm::is_contained(map, d))
        onInputs(d, rule.addFactor(x.dims[d]));  // each device takes the rows in its range
      continue;
    }
    int64_t ud = window[w++];
    if (u.dims[ud] != x.dims[d]) {  // windows may stand anywhere: each device writes what falls into its range
      if (llvm::is_contained(map, d) && u.dims[ud] > 0) onInputs(d, rule.addFactor(x.dims[d]));
      continue;
    }
    int f = rule.addFactor(x.dims[d]);
    onInputs(d, f);
    onUpdates(ud, f);
  }
}

void sortRule(const RuleInput& in, OpRule& rule) {
  int64_t rank = in.operand(0).rank();
  int64_t dim = in.op.opcode == Opcode::sort ? in.m.getInt(in.id, AttrKey::dimension, -1) : rank - 1;
  if (dim < 0) dim += rank;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == dim) continue;
    int f = rule.addFactor(in.operand(0).dims[d]);
    for (TensorFactors& t : rule.operands) t[d].push_back(f);
    for (TensorFactors& t : rule.results) t[d].push_back(f);
  }
  if (in.op.opcode == Opcode::chlo_top_k) {  // the k best of every part, then the k best of those
    rule.operands[0][dim].push_back(rule.addFactor(in.operand(0).dims[dim], FactorKind::kReduction));
    return;
  }
  if (in.variant == 1 && in.operand(0).dims[dim] > 1) {  // shards are sorted and merged pairwise
    int f = rule.addFactor(in.operand(0).dims[dim], FactorKind::kNeighbour);
    for (TensorFactors& t : rule.operands) t[dim].push_back(f);
    for (TensorFactors& t : rule.results) t[dim].push_back(f);
    return;
  }
  rule.note = "sorting needs the whole dimension";
}

void matrixRule(const RuleInput& in, OpRule& rule) {
  int64_t rank = in.result(0).rank();
  for (int64_t d = 0; d + 2 < rank; ++d) {
    int f = rule.addFactor(in.result(0).dims[d]);
    for (TensorFactors& t : rule.operands) t[d].push_back(f);
    rule.results[0][d].push_back(f);
  }
  rule.note = "matrix decompositions need whole matrices";
  if (in.op.opcode != Opcode::triangular_solve) return;
  int64_t free = in.m.getInt(in.id, AttrKey::left_side, 1) ? rank - 1 : rank - 2;
  int f = rule.addFactor(in.result(0).dims[free]);
  rule.operands[1][free].push_back(f);
  rule.results[0][free].push_back(f);
}

void fftRule(const RuleInput& in, OpRule& rule) {
  int64_t rank = in.result(0).rank();
  int64_t lead = rank - static_cast<int64_t>(in.m.getInts(in.id, AttrKey::fft_length).size());
  for (int64_t d = 0; d < lead; ++d) {
    int f = rule.addFactor(in.result(0).dims[d]);
    rule.operands[0][d].push_back(f);
    rule.results[0][d].push_back(f);
  }
  rule.note = "a transform needs its whole dimensions";
}

void collectiveRule(const RuleInput& in, OpRule& rule) {
  // Collectives of the program itself (manual regions): dims that they move stay whole, the others pass
  // through.
  llvm::SmallVector<int64_t, 2> moved;
  switch (in.op.opcode) {
    case Opcode::all_gather:
      moved = {in.m.getInt(in.id, AttrKey::all_gather_dim)};
      break;
    case Opcode::reduce_scatter:
      moved = {in.m.getInt(in.id, AttrKey::scatter_dimension)};
      break;
    case Opcode::all_to_all:
      moved = {in.m.getInt(in.id, AttrKey::split_dimension), in.m.getInt(in.id, AttrKey::concat_dimension)};
      break;
    default:
      break;
  }
  for (size_t i = 0; i < in.op.results.size() && i < in.op.operands.size(); ++i) {
    for (int64_t d = 0; d < in.result(i).rank(); ++d) {
      if (llvm::is_contained(moved, d)) continue;
      int f = rule.addFactor(in.result(i).dims[d]);
      rule.operands[i][d].push_back(f);
      rule.results[i][d].push_back(f);
    }
  }
}

}  // namespace tpu::sharding
