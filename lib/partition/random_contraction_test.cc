// Steps of random programs: contractions, reductions, windows, orders, indices, matrices.
#include "random_program_test_util.h"
#include "tpu/sharding/axes.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;
using Ints = Generator::Ints;

void Generator::reduceStep(ValueId x, const Ints& d) {
  Ints which;
  for (size_t i = 0; i < d.size(); ++i) {
    if (r_.chance(50)) which.push_back(static_cast<int64_t>(i));
  }
  constexpr Opcode kOps[] = {Opcode::add, Opcode::maximum, Opcode::minimum, Opcode::add, Opcode::xor_};
  Opcode op = kOps[r_.below(5)];
  ValueId init =
      r_.chance(70) ? *b_.identity(op, m_.tensorType(ElementType::kS32, {})) : scalar(r_.below(7));
  keep(b_.reduce(x, init, which, op));
}

void Generator::dotStep(ValueId x, const Ints& d) {
  if (d.empty()) return;
  int64_t k = r_.below(static_cast<int64_t>(d.size()));
  Ints other = {d[k], 1 + r_.below(8)};
  bool flip = r_.chance(50);
  if (flip) std::swap(other[0], other[1]);
  int64_t kr = flip ? 1 : 0;
  ValueId y = ofDims(other);
  bool batch = d.size() > 1 && r_.chance(25);
  if (batch) {
    int64_t bd = (k + 1) % static_cast<int64_t>(d.size());
    y = ofDims({d[bd], d[k], 1 + r_.below(5)});
    return keep(b_.dotGeneral(x, y, {{bd}, {0}, {k}, {1}}, ElementType::kS32));
  }
  keep(b_.dotGeneral(x, y, {{}, {}, {k}, {kr}}, ElementType::kS32));
}

ValueId Generator::indices(int64_t count, int64_t range) {
  ValueId raw = ofDims({count, 1});
  hlo::TypeId type = m_.value(raw).type;
  return b_.subtract(
      b_.remainder(b_.add(raw, b_.splatInt(type, r_.below(5))), b_.splatInt(type, range + 3)),
      b_.splatInt(type, 1));
}

void Generator::gatherStep(ValueId x, const Ints& d) {
  if (d.empty()) return;
  int64_t dim = r_.below(static_cast<int64_t>(d.size())), count = 1 + r_.below(8);
  ValueId idx = indices(count, d[dim]);
  Ints out, sizes = d, offset;
  sizes[dim] = 1;
  out.push_back(count);
  for (size_t i = 0; i < d.size(); ++i) {
    if (static_cast<int64_t>(i) == dim) continue;
    offset.push_back(static_cast<int64_t>(out.size()));
    out.push_back(d[i]);
  }
  hlo::OpId op = b_.create(Opcode::gather, {x, idx}, {m_.tensorType(ElementType::kS32, out)});
  m_.setInts(op, AttrKey::offset_dims, offset);
  m_.setInts(op, AttrKey::collapsed_slice_dims, {dim});
  m_.setInts(op, AttrKey::start_index_map, {dim});
  m_.setInt(op, AttrKey::index_vector_dim, 1);
  m_.setInts(op, AttrKey::slice_sizes, sizes);
  keep(b_.result(op));
}

void Generator::scatterStep(ValueId x, const Ints& d) {
  if (d.empty()) return;
  int64_t dim = r_.below(static_cast<int64_t>(d.size())), count = 1 + r_.below(8);
  ValueId idx = indices(count, d[dim]);
  Ints up = {count}, window;
  for (size_t i = 0; i < d.size(); ++i) {
    if (static_cast<int64_t>(i) == dim) continue;
    window.push_back(static_cast<int64_t>(up.size()));
    up.push_back(d[i]);
  }
  hlo::OpId op = b_.create(Opcode::scatter, {x, idx, ofDims(up)}, {m_.value(x).type});
  m_.setInts(op, AttrKey::update_window_dims, window);
  m_.setInts(op, AttrKey::inserted_window_dims, {dim});
  m_.setInts(op, AttrKey::scatter_dims_to_operand_dims, {dim});
  m_.setInt(op, AttrKey::index_vector_dim, 1);
  b_.combinerRegion(op, r_.chance(60) ? Opcode::add : Opcode::maximum, ElementType::kS32);
  keep(b_.result(op));
}

void Generator::sortStep(ValueId x, const Ints& d) {
  if (d.empty()) return;
  hlo::OpId op = b_.create(Opcode::sort, {x}, {m_.value(x).type});
  m_.setInt(op, AttrKey::dimension, r_.below(static_cast<int64_t>(d.size())));
  m_.setBool(op, AttrKey::is_stable, true);
  hlo::RegionId outer = b_.region(), body = b_.addRegion(op);
  hlo::TypeId s32 = m_.tensorType(ElementType::kS32, {});
  ValueId a = m_.addArg(body, s32, hlo::LocId()), b = m_.addArg(body, s32, hlo::LocId());
  b_.atEnd(body);
  b_.yield({b_.compare(hlo::Comparison::kLt, a, b)});
  b_.atEnd(outer);
  keep(b_.result(op));
}

void Generator::topKStep(ValueId x, const Ints& d) {
  if (d.empty()) return;
  Ints out = d;
  out.back() = 1 + r_.below(d.back());
  hlo::TypeId type = m_.tensorType(ElementType::kS32, out);
  hlo::OpId op = b_.create(Opcode::chlo_top_k, {x}, {type, type});
  m_.setInt(op, AttrKey::k, out.back());
  keep(m_.op(op).results[0]);
  keep(m_.op(op).results[1]);
}

void Generator::windowStep(ValueId x, const Ints& d) {
  if (d.empty()) return;
  size_t dim = static_cast<size_t>(r_.below(static_cast<int64_t>(d.size())));
  Ints window(d.size(), 1), stride(d.size(), 1), padding(2 * d.size(), 0), base(d.size(), 1), out = d;
  if (r_.chance(25)) base[dim] = 2;
  int64_t size = (d[dim] - 1) * base[dim] + 1;
  window[dim] = 1 + r_.below(d[dim]);
  padding[2 * dim] = r_.below(window[dim]);
  padding[2 * dim + 1] = r_.below(3);
  stride[dim] = 1 + r_.below(2);
  out[dim] = (size + padding[2 * dim] + padding[2 * dim + 1] - window[dim]) / stride[dim] + 1;
  hlo::OpId op = b_.create(Opcode::reduce_window, {x, scalar(0)}, {m_.tensorType(ElementType::kS32, out)});
  m_.setInts(op, AttrKey::window_dimensions, window);
  m_.setInts(op, AttrKey::window_strides, stride);
  m_.setInts(op, AttrKey::padding, padding);
  m_.setInts(op, AttrKey::base_dilations, base);
  b_.combinerRegion(op, Opcode::add, ElementType::kS32);
  keep(b_.result(op));
}

void Generator::convolutionStep(ValueId x, const Ints& d) {
  int64_t batch_groups = r_.chance(20) ? 2 : 1, groups = batch_groups == 1 && r_.chance(30) ? 2 : 1;
  int64_t n = batch_groups * (1 + r_.below(4)), ci = groups * (1 + r_.below(2)),
          co = groups * batch_groups * (1 + r_.below(3));
  int64_t size = 4 + r_.below(9), k = 1 + r_.below(3), stride = 1 + r_.below(2), dilation = 1 + r_.below(2),
          low = r_.below(4), high = r_.below(4);
  int64_t base = 1 + (r_.chance(30) ? r_.below(3) : 0);
  int64_t out = (size - 1) * base + 1 + low + high - ((k - 1) * dilation + 1);
  if (out < 0) return;
  out = out / stride + 1;
  hlo::OpId op =
      b_.create(Opcode::convolution, {constrained({n, size, ci}), constrained({k, ci / groups, co})},
                {m_.tensorType(ElementType::kS32, {n / batch_groups, out, co})});
  auto set = [&](AttrKey key, int64_t v) { m_.setInt(op, key, v); };
  set(AttrKey::input_batch_dimension, 0), set(AttrKey::input_feature_dimension, 2),
      set(AttrKey::output_batch_dimension, 0);
  set(AttrKey::output_feature_dimension, 2), set(AttrKey::kernel_input_feature_dimension, 1),
      set(AttrKey::kernel_output_feature_dimension, 2);
  m_.setInts(op, AttrKey::input_spatial_dimensions, {1});
  m_.setInts(op, AttrKey::output_spatial_dimensions, {1});
  m_.setInts(op, AttrKey::kernel_spatial_dimensions, {0});
  m_.setInts(op, AttrKey::window_strides, {stride});
  m_.setInts(op, AttrKey::lhs_dilation, {base});
  m_.setInts(op, AttrKey::rhs_dilation, {dilation});
  m_.setInts(op, AttrKey::padding, {low, high});
  set(AttrKey::feature_group_count, groups), set(AttrKey::batch_group_count, batch_groups);
  keep(b_.result(op));
}

ValueId Generator::small(ValueId x, int64_t modulus) {
  return b_.remainder(x, b_.splatInt(m_.value(x).type, modulus));
}

/// A running total along a whole dimension.
void Generator::runningStep(ValueId x, const Ints& d) {
  if (d.empty()) return;
  size_t dim = static_cast<size_t>(r_.below(static_cast<int64_t>(d.size())));
  Ints window(d.size(), 1), padding(2 * d.size(), 0);
  window[dim] = d[dim];
  padding[2 * dim + r_.below(2)] = d[dim] - 1;
  Opcode combiner = r_.chance(60) ? Opcode::add : Opcode::maximum;
  ValueId init = *b_.identity(combiner, m_.tensorType(ElementType::kS32, {}));
  OpId op = b_.create(Opcode::reduce_window, {x, init}, {m_.value(x).type});
  m_.setInts(op, AttrKey::window_dimensions, window);
  m_.setInts(op, AttrKey::padding, padding);
  b_.combinerRegion(op, combiner, ElementType::kS32);
  keep(b_.result(op));
}

/// The largest value and where it stands: a reduction with two results.
void Generator::argMaxStep(ValueId x, const Ints& d) {
  if (d.empty()) return;
  int64_t dim = r_.below(static_cast<int64_t>(d.size()));
  Ints out = d;
  out.erase(out.begin() + dim);
  hlo::TypeId type = m_.tensorType(ElementType::kS32, out), s32 = m_.tensorType(ElementType::kS32, {});
  ValueId index = b_.iota(m_.value(x).type, dim);
  OpId op = b_.create(Opcode::reduce, {x, index, b_.lowest(s32), scalar(0)}, {type, type});
  m_.setInts(op, AttrKey::dimensions, {dim});
  RegionId outer = b_.region(), body = b_.addRegion(op);
  ValueId a = m_.addArg(body, s32, hlo::LocId()), ai = m_.addArg(body, s32, hlo::LocId());
  ValueId v = m_.addArg(body, s32, hlo::LocId()), vi = m_.addArg(body, s32, hlo::LocId());
  b_.atEnd(body);
  ValueId more = b_.compare(hlo::Comparison::kGt, a, v), same = b_.compare(hlo::Comparison::kEq, a, v);
  ValueId before = b_.binary(Opcode::and_, same, b_.compare(hlo::Comparison::kLt, ai, vi));
  ValueId first = b_.binary(Opcode::or_, more, before);
  b_.yield({b_.select(more, a, v), b_.select(first, ai, vi)});
  b_.atEnd(outer);
  keep(m_.op(op).results[0]);
  keep(m_.op(op).results[1]);
}

void Generator::selectAndScatterStep(ValueId x, const Ints& d) {
  if (d.empty()) return;
  size_t dim = static_cast<size_t>(r_.below(static_cast<int64_t>(d.size())));
  Ints window(d.size(), 1), out = d;
  window[dim] = 1 + r_.below(3);
  if (d[dim] < window[dim]) return;
  Ints stride = window;
  if (r_.chance(30)) stride[dim] = 1;
  out[dim] = (d[dim] - window[dim]) / stride[dim] + 1;
  OpId op = b_.create(Opcode::select_and_scatter, {x, ofDims(out), scalar(0)}, {m_.value(x).type});
  m_.setInts(op, AttrKey::window_dimensions, window);
  m_.setInts(op, AttrKey::window_strides, stride);
  hlo::TypeId s32 = m_.tensorType(ElementType::kS32, {});
  RegionId outer = b_.region(), body = b_.addRegion(op);
  ValueId a = m_.addArg(body, s32, hlo::LocId()), b = m_.addArg(body, s32, hlo::LocId());
  b_.atEnd(body);
  b_.yield({b_.compare(hlo::Comparison::kGe, a, b)});
  b_.atEnd(outer);
  b_.combinerRegion(op, Opcode::add, ElementType::kS32);
  keep(b_.result(op));
}

/// Keys with ties carry their places along.
void Generator::sortPairsStep(ValueId x, const Ints& d) {
  if (d.empty()) return;
  int64_t dim = r_.below(static_cast<int64_t>(d.size()));
  ValueId keys = small(x, 4), places = b_.iota(m_.value(x).type, dim);
  OpId op = b_.create(Opcode::sort, {keys, places}, {m_.value(x).type, m_.value(x).type});
  m_.setInt(op, AttrKey::dimension, dim);
  m_.setBool(op, AttrKey::is_stable, true);
  RegionId outer = b_.region(), body = b_.addRegion(op);
  hlo::TypeId s32 = m_.tensorType(ElementType::kS32, {});
  llvm::SmallVector<ValueId, 4> args;
  for (int i = 0; i < 4; ++i) args.push_back(m_.addArg(body, s32, hlo::LocId()));
  b_.atEnd(body);
  b_.yield({b_.compare(r_.chance(50) ? hlo::Comparison::kLt : hlo::Comparison::kGt, args[0], args[1])});
  b_.atEnd(outer);
  keep(m_.op(op).results[0]);
  keep(m_.op(op).results[1]);
}

/// A Cholesky factor of a positive matrix and a solve with it, on small exact numbers.
void Generator::matrixStep(ValueId x, const Ints& d) {
  int64_t batch = 1 + r_.below(5), n = 2 + r_.below(3);
  ValueId a = b_.convert(small(constrained({batch, n, n}), 4), ElementType::kF32);
  ValueId square = b_.dotGeneral(a, a, {{0}, {0}, {2}, {2}}, ElementType::kF32);
  hlo::TypeId type = m_.value(square).type, index = m_.tensorType(ElementType::kS32, {batch, n, n});
  ValueId eye = b_.compare(hlo::Comparison::kEq, b_.iota(index, 1), b_.iota(index, 2));
  square = b_.add(square, b_.select(eye, b_.splat(type, 40), b_.splat(type, 0)));
  OpId chol = b_.create(Opcode::cholesky, {square}, {type});
  m_.setBool(chol, AttrKey::lower, true);
  ValueId rhs = b_.convert(small(constrained({batch, n, n}), 9), ElementType::kF32);
  OpId solve = b_.create(Opcode::triangular_solve, {b_.result(chol), rhs}, {type});
  m_.setBool(solve, AttrKey::left_side, r_.chance(50));
  m_.setBool(solve, AttrKey::lower, true);
  m_.setBool(solve, AttrKey::unit_diagonal, false);
  m_.setString(solve, AttrKey::transpose_a, "NO_TRANSPOSE");
  keep(b_.convert(b_.multiply(b_.result(solve), b_.splat(type, 64)), ElementType::kS32));
}

void Generator::fftStep(ValueId x, const Ints& d) {
  Ints shape = {1 + r_.below(6), 4};
  ValueId re = b_.convert(small(constrained(shape), 16), ElementType::kF32);
  ValueId z = b_.binary(Opcode::complex, re, b_.zeros(m_.value(re).type));
  OpId op = b_.create(Opcode::fft, {z}, {m_.value(z).type});
  m_.setString(op, AttrKey::fft_type, "FFT");
  m_.setInts(op, AttrKey::fft_length, {4});
  keep(b_.convert(b_.unary(Opcode::real, b_.result(op)), ElementType::kS32));
}

void Generator::randomBitsStep(ValueId x, const Ints& d) {
  ValueId state = b_.ints(ElementType::kU64, {static_cast<int64_t>(r_.below(1000)), 7});
  OpId op = b_.create(Opcode::rng_bit_generator, {state},
                      {m_.value(state).type, m_.tensorType(ElementType::kU32, d)});
  m_.setString(op, AttrKey::rng_algorithm, r_.chance(50) ? "THREE_FRY" : "PHILOX");
  keep(b_.add(x, small(b_.convert(m_.op(op).results[1], ElementType::kS32), 50)));
}

/// One row per batch and index: x[b, i[b, j]].
void Generator::batchedGatherStep(ValueId x, const Ints& d) {
  int64_t batch = 1 + r_.below(6), n = 2 + r_.below(7), count = 1 + r_.below(5);
  ValueId table = constrained({batch, n}), idx = small(constrained({batch, count, 1}), n + 1);
  OpId op = b_.create(Opcode::gather, {table, idx}, {m_.tensorType(ElementType::kS32, {batch, count})});
  m_.setInts(op, AttrKey::offset_dims, {});
  m_.setInts(op, AttrKey::collapsed_slice_dims, {1});
  m_.setInts(op, AttrKey::operand_batching_dims, {0});
  m_.setInts(op, AttrKey::start_indices_batching_dims, {0});
  m_.setInts(op, AttrKey::start_index_map, {1});
  m_.setInt(op, AttrKey::index_vector_dim, 2);
  m_.setInts(op, AttrKey::slice_sizes, {1, 1});
  keep(b_.result(op));
}

void Generator::batchedScatterStep(ValueId x, const Ints& d) {
  int64_t batch = 1 + r_.below(6), n = 2 + r_.below(7), count = 1 + r_.below(5);
  ValueId table = constrained({batch, n}), idx = small(constrained({batch, count, 1}), n + 1);
  OpId op = b_.create(Opcode::scatter, {table, idx, constrained({batch, count})}, {m_.value(table).type});
  m_.setInts(op, AttrKey::update_window_dims, {});
  m_.setInts(op, AttrKey::inserted_window_dims, {1});
  m_.setInts(op, AttrKey::input_batching_dims, {0});
  m_.setInts(op, AttrKey::scatter_indices_batching_dims, {0});
  m_.setInts(op, AttrKey::scatter_dims_to_operand_dims, {1});
  m_.setInt(op, AttrKey::index_vector_dim, 2);
  b_.combinerRegion(op, Opcode::add, ElementType::kS32);
  keep(b_.result(op));
}

/// Boxes of two rows at indices that clamp.
void Generator::windowGatherStep(ValueId x, const Ints& d) {
  if (d.empty() || d[0] < 2) return;
  int64_t count = 1 + r_.below(5);
  Ints sizes = d, out = {count}, offset;
  sizes[0] = 2;
  for (size_t i = 0; i < d.size(); ++i) {
    offset.push_back(static_cast<int64_t>(out.size()));
    out.push_back(sizes[i]);
  }
  OpId op = b_.create(Opcode::gather, {x, indices(count, d[0])}, {m_.tensorType(ElementType::kS32, out)});
  m_.setInts(op, AttrKey::offset_dims, offset);
  m_.setInts(op, AttrKey::collapsed_slice_dims, {});
  m_.setInts(op, AttrKey::start_index_map, {0});
  m_.setInt(op, AttrKey::index_vector_dim, 1);
  m_.setInts(op, AttrKey::slice_sizes, sizes);
  keep(b_.result(op));
}

}  // namespace tpu::partition
