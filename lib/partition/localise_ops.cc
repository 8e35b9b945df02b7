// Operations whose per-device form differs from the global one: literals and iotas, contractions over padded
// dimensions, partial reductions, indexed access to sharded dimensions, and collectives that the program
// itself contains.
#include <algorithm>
#include <cstring>

#include "localise.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/literal.h"
#include "tpu/sharding/reducer.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;
using sharding::Axes;
using sharding::AxesRef;

llvm::Error Localiser::constantOp(OpId id) {
  ValueId result = m_.op(id).results[0];
  Layout l = layout(result);
  const hlo::Attr* value = m_.findAttr(id, AttrKey::value);
  if (!m_.value(result).sharding || !value) return keep(id), llvm::Error::success();
  hlo::Literal lit = m_.literal(value->literal);
  if (lit.splat) {
    keep(id);
    lit.type = m_.value(result).type;
    m_.setLiteral(id, m_.addLiteral(std::move(lit)));
    return llvm::Error::success();
  }
  // Every device holds the whole literal and cuts its own part.
  ValueId whole = b_.constant(std::move(lit));
  Layout none;
  none.dims.resize(l.dims.size());
  finish(id, 0, sliceTo(whole, globalType(result).dims, none, l));
  return llvm::Error::success();
}

llvm::Error Localiser::iotaOp(OpId id) {
  ValueId result = m_.op(id).results[0];
  int64_t dim = m_.getInt(id, AttrKey::iota_dimension);
  Layout l = layout(result);
  keep(id);
  if (l.dims[dim].empty()) return llvm::Error::success();
  const hlo::Type local = m_.typeOf(result);
  ValueId offset = b_.convert(affine(l.dims[dim], local.dims[dim], 0), local.element);
  ValueId shifted = b_.add(result, b_.broadcastScalar(offset, local.dims));
  finish(id, 0, shifted);
  return llvm::Error::success();
}

ValueId Localiser::maskContracting(ValueId operand, llvm::ArrayRef<int64_t> dims) {
  ValueId local = current(operand);
  Layout l = layout(operand);
  for (int64_t d : dims) {
    if (globalType(operand).dims[d] % sharding::product(l.dims[d]) == 0) continue;
    local = maskPadding(operand, local, d, b_.scalarInt(globalType(operand).element, 0));
  }
  return local;
}

llvm::Error Localiser::dotOp(OpId id) {
  llvm::SmallVector<int64_t, 2> lc(m_.getInts(id, AttrKey::lhs_contracting_dimensions)),
      rc(m_.getInts(id, AttrKey::rhs_contracting_dimensions));
  ValueId x = m_.op(id).operands[0], y = m_.op(id).operands[1];
  if (m_.op(id).opcode == Opcode::dot) {
    lc = {globalType(x).rank() - 1};
    rc = {0};
  }
  ValueId lhs = maskContracting(x, lc), rhs = maskContracting(y, rc);
  keep(id);
  m_.op(id).operands[0] = lhs;
  m_.op(id).operands[1] = rhs;
  return llvm::Error::success();
}

bool Localiser::isIdentity(ValueId init, Opcode reducer) const {
  OpId def = m_.value(init).def;
  auto scalar = [&](ValueId v) { return m_.typeOf(v).rank() == 0; };
  while (def && (m_.op(def).opcode == Opcode::broadcast_in_dim || m_.op(def).opcode == Opcode::reshape) && scalar(m_.op(def).operands[0]))
    def = m_.value(m_.op(def).operands[0]).def;
  if (!def || m_.op(def).opcode != Opcode::constant) return false;
  const hlo::Attr* value = m_.findAttr(def, AttrKey::value);
  const hlo::Type type = m_.typeOf(init);
  if (!value || type.rank() != 0) return false;
  int bytes = hostBytes(type.element);
  std::vector<uint8_t> have(hlo::literalElement(m_, m_.literal(value->literal), 0),
                            hlo::literalElement(m_, m_.literal(value->literal), 0) + bytes);
  std::vector<uint8_t> want(bytes);
  switch (reducer) {
    case Opcode::add:
    case Opcode::or_:
    case Opcode::xor_: {
      if (isFloat(type.element)) return hlo::loadDouble(type.element, have.data()) == 0;
      hlo::storeInt(type.element, 0, want.data());
      break;
    }
    case Opcode::multiply:
      if (isComplex(type.element)) return false;
      return hlo::loadDouble(type.element, have.data()) == 1;
    case Opcode::and_:
      hlo::storeInt(type.element, -1, want.data());
      break;
    case Opcode::maximum:
      hlo::storeLowest(type.element, want.data());
      break;
    case Opcode::minimum:
      hlo::storeHighest(type.element, want.data());
      break;
    default:
      return false;
  }
  return have == want;
}

llvm::Error Localiser::reduceOp(OpId id) {
  size_t n = m_.op(id).results.size();
  const llvm::SmallVector<int64_t, 4> dims(m_.getInts(id, AttrKey::dimensions));
  llvm::SmallVector<ValueId, 6> operands;
  Axes partial;
  Layout l0 = layout(m_.op(id).operands[0]);
  for (int64_t d : dims) sharding::append(partial, l0.dims[d]);
  auto reducer = sharding::reducerOf(m_, m_.op(id).regions[0]);
  for (size_t i = 0; i < n; ++i) {
    ValueId x = m_.op(id).operands[i], init = current(m_.op(id).operands[n + i]);
    ValueId v = current(x), fill = init;
    // A fill other than the init value is needed where the init value is no identity.
    if (!partial.empty() && reducer && !isIdentity(init, *reducer)) {
      if (auto one = b_.identity(*reducer, m_.tensorType(globalType(x).element, {}))) fill = *one;
    }
    for (int64_t d : dims) v = maskPadding(x, v, d, fill);
    operands.push_back(v);
  }
  llvm::SmallVector<ValueId, 4> inits;
  for (size_t i = 0; i < n; ++i) {
    ValueId x = m_.op(id).operands[i], init = current(m_.op(id).operands[n + i]);
    if (!partial.empty() && reducer && !isIdentity(init, *reducer)) {
      // Fold the init value in once, on the first device of each group.
      auto one = b_.identity(*reducer, m_.tensorType(globalType(x).element, {}));
      if (one) init = b_.select(b_.compare(hlo::Comparison::kEq, coordinate(partial), s32(0)), init, *one);
    }
    inits.push_back(init);
  }
  keep(id);
  for (size_t i = 0; i < n; ++i) {
    m_.op(id).operands[i] = operands[i];
    m_.op(id).operands[n + i] = inits[i];
  }
  if (partial.empty() || n == 1) {
    if (n == 1 && !partial.empty() && !reducer) return joinPartials(id, partial);
    return llvm::Error::success();
  }
  return joinPartials(id, partial);
}

/// Reductions that no all_reduce expresses (several results, selections): gather the parts, reduce them
/// again.
llvm::Error Localiser::joinPartials(OpId id, AxesRef partial) {
  size_t n = m_.op(id).results.size();
  llvm::SmallVector<ValueId, 6> operands;
  llvm::SmallVector<hlo::TypeId, 4> types;
  for (size_t i = 0; i < n; ++i) {
    ValueId v = m_.op(id).results[i];
    types.push_back(m_.value(v).type);
    llvm::SmallVector<int64_t, 6> dims = {1};
    dims.append(m_.typeOf(v).dims.begin(), m_.typeOf(v).dims.end());
    ValueId part = b_.allGather(b_.reshape(v, dims), ctx_.mesh, partial, 0);
    noteWhy(m_.value(part).def, "reduce-dim");
    needs(part, 0, sharding::product(partial));
    operands.push_back(part);
  }
  for (size_t i = 0; i < n; ++i) operands.push_back(m_.op(id).operands[n + i]);
  OpId again = b_.create(Opcode::reduce, operands, types);
  m_.setInts(again, AttrKey::dimensions, {0});
  std::vector<ValueId> map;
  hlo::RegionId from = m_.op(id).regions[0], to = b_.addRegion(again);
  for (size_t i = 0; i < m_.region(from).args.size(); ++i) {
    ValueId arg = m_.region(from).args[i];
    ValueId copy = m_.addArg(to, m_.value(arg).type, m_.value(arg).loc);
    if (map.size() <= arg.v) map.resize(arg.v + 1);
    map[arg.v] = copy;
  }
  std::vector<OpId> body;
  auto results = hlo::copyBody(m_, from, to, map, &body);
  OpId ret = m_.create(to, Opcode::return_, llvm::SmallVector<ValueId, 4>(results.begin(), results.end()), {},
                       b_.loc);
  body.push_back(ret);
  m_.region(to).ops = std::move(body);
  for (size_t i = 0; i < n; ++i) finish(id, i, m_.op(again).results[i]);
  return llvm::Error::success();
}

/// The k largest of every shard with their global indices, gathered, and the k largest of those. Shards are
/// gathered in order of index, so equal values keep the order of their indices.
llvm::Error Localiser::topKOp(OpId id) {
  ValueId x = m_.op(id).operands[0];
  const hlo::Type whole = globalType(x);
  int64_t dim = whole.rank() - 1;
  Axes axes = layout(x).dims[dim];
  if (axes.empty()) return keep(id), llvm::Error::success();
  auto lowest = [&] { return b_.lowest(m_.tensorType(whole.element, {})); };
  ValueId local = maskPadding(x, current(x), dim, lowest());
  int64_t k = m_.getInt(id, AttrKey::k), c = m_.typeOf(local).dims[dim], mine = std::min(k, c);
  ElementType index_type = globalType(m_.op(id).results[1]).element;
  auto top = [&](ValueId from, int64_t count) {
    hlo::Dims dims = m_.typeOf(from).dims;
    dims[dim] = count;
    OpId op = b_.create(Opcode::chlo_top_k, {from},
                        {m_.tensorType(whole.element, dims), m_.tensorType(index_type, dims)});
    m_.setInt(op, AttrKey::k, count);
    return op;
  };
  OpId first = top(local, mine);
  hlo::Dims dims = m_.typeOf(m_.op(first).results[1]).dims;
  ValueId offset = b_.convert(affine(axes, c, 0), index_type);
  ValueId index = b_.add(m_.op(first).results[1], b_.broadcastScalar(offset, dims));
  ValueId values = b_.allGather(m_.op(first).results[0], ctx_.mesh, axes, dim);
  needs(values, dim, mine * sharding::product(axes));
  noteWhy(m_.value(values).def, "top-k");
  ValueId indices = b_.allGather(index, ctx_.mesh, axes, dim);
  noteWhy(m_.value(indices).def, "top-k");
  OpId second = top(values, k);
  ValueId places = m_.op(second).results[1];
  // indices[..., places[..., j]]: all leading dimensions are batch dimensions.
  hlo::Dims point = m_.typeOf(places).dims;
  point.push_back(1);
  OpId pick = b_.create(Opcode::gather, {indices, b_.reshape(places, point)}, {m_.value(places).type});
  llvm::SmallVector<int64_t, 6> lead, ones(whole.rank(), 1);
  for (int64_t d = 0; d < dim; ++d) lead.push_back(d);
  m_.setInts(pick, AttrKey::offset_dims, {});
  m_.setInts(pick, AttrKey::collapsed_slice_dims, {dim});
  m_.setInts(pick, AttrKey::operand_batching_dims, lead);
  m_.setInts(pick, AttrKey::start_indices_batching_dims, lead);
  m_.setInts(pick, AttrKey::start_index_map, {dim});
  m_.setInt(pick, AttrKey::index_vector_dim, whole.rank());
  m_.setInts(pick, AttrKey::slice_sizes, ones);
  finish(id, 0, m_.op(second).results[0]);
  finish(id, 1, m_.op(pick).results[0]);
  return llvm::Error::success();
}

// ---------------------------------------------------------------- indices

llvm::Error Localiser::dynamicSliceOp(OpId id) {
  ValueId x = m_.op(id).operands[0];
  Layout l = layout(x);
  llvm::SmallVector<int64_t, 6> sizes(m_.getInts(id, AttrKey::slice_sizes));
  const hlo::Dims whole = globalType(x).dims;
  ValueId v = current(x);
  llvm::SmallVector<ValueId, 6> starts;
  for (size_t d = 0; d < sizes.size(); ++d) {
    ValueId start = current(m_.op(id).operands[1 + d]);
    if (!l.dims[d].empty() && whole[d] != sizes[d]) {
      // Clamp on the whole size, before going local.
      hlo::TypeId scalar = m_.value(start).type;
      start = b_.convert(b_.clamp(b_.splatInt(scalar, 0), start, b_.splatInt(scalar, whole[d] - sizes[d])),
                         ElementType::kS32);
      v = ownPart(v, d, start, sizes[d], l.dims[d]);
      start = b_.zeros(scalar);
    } else if (!l.dims[d].empty()) {
      sizes[d] = m_.typeOf(v).dims[d];  // taken whole: the start clamps to 0, and the own part is the result
    }
    starts.push_back(start);
  }
  keep(id);
  m_.op(id).operands[0] = v;
  for (size_t d = 0; d < starts.size(); ++d) m_.op(id).operands[1 + d] = starts[d];
  m_.setInts(id, AttrKey::slice_sizes, sizes);
  return llvm::Error::success();
}

llvm::Error Localiser::dynamicUpdateSliceOp(OpId id) {
  ValueId x = m_.op(id).operands[0], u = m_.op(id).operands[1];
  Layout l = layout(x);
  const hlo::Dims whole = globalType(x).dims, box = globalType(u).dims;
  llvm::SmallVector<int64_t, 4> partial;
  Layout lu = layout(u);
  ValueId moved = current(u);
  for (size_t d = 0; d < whole.size(); ++d) {
    if (l.dims[d].empty() || whole[d] == box[d]) continue;
    if (lu.dims[d].empty()) {
      partial.push_back(d);
      continue;
    }
    auto windows = windowsOf(m_, id, d, d, {whole[d], box[d]}, whole[d], sharding::product(l.dims[d]));
    moved = fetch(moved, d, windows[1], lu.dims[d], b_.scalarInt(globalType(u).element, 0));
  }
  if (moved != current(u)) return updateShifted(id, moved);
  if (partial.empty()) return keep(id), llvm::Error::success();
  // Clamp on the whole size, then write what falls into the own range: the shard is widened by the box on
  // both sides so that a box that starts before or ends behind it lands in the margins.
  ValueId v = current(x), update = current(u);
  const hlo::Dims local = m_.typeOf(v).dims;
  llvm::SmallVector<ValueId, 6> starts;
  for (size_t d = 0; d < whole.size(); ++d) starts.push_back(current(m_.op(id).operands[2 + d]));
  for (int64_t d : partial) {
    ValueId s = starts[d];
    hlo::TypeId scalar = m_.value(s).type;
    s = b_.clamp(b_.splatInt(scalar, 0), s, b_.splatInt(scalar, whole[d] - box[d]));
    s = b_.convert(s, ElementType::kS32);
    s = b_.subtract(s, affine(l.dims[d], local[d], -box[d]));
    s = b_.clamp(s32(0), s, s32(local[d] + box[d]));
    v = padDim(v, d, box[d], box[d], b_.scalarInt(m_.typeOf(v).element, 0));
    needs(v, d, local[d] + 2 * box[d]);
    starts[d] = s;
  }
  for (size_t d = 0; d < whole.size(); ++d) starts[d] = b_.convert(starts[d], ElementType::kS32);
  v = b_.dynamicUpdateSlice(v, update, starts);
  for (int64_t d : partial) v = b_.sliceDim(v, d, box[d], box[d] + local[d]);
  finish(id, 0, v);
  return llvm::Error::success();
}

/// An update at a known place of a dimension that both share: it was brought to the shards that it falls on, and is
/// written there by global index.
llvm::Error Localiser::updateShifted(OpId id, ValueId moved) {
  ValueId x = m_.op(id).operands[0], u = m_.op(id).operands[1];
  Layout l = layout(x), lu = layout(u);
  const hlo::Dims whole = globalType(x).dims, box = globalType(u).dims, local = m_.typeOf(current(x)).dims;
  ValueId old = current(x), written;
  llvm::SmallVector<ValueId, 6> starts;
  for (size_t d = 0; d < whole.size(); ++d) {
    starts.push_back(s32(0));
    if (lu.dims[d].empty() || whole[d] == box[d]) {
      starts.back() = b_.convert(current(m_.op(id).operands[2 + d]), ElementType::kS32);
      continue;
    }
    int64_t first = std::clamp<int64_t>(*hlo::constantInt(m_, m_.op(id).operands[2 + d]), 0, whole[d] - box[d]);
    ValueId in = inRange(local, d, affine(l.dims[d], local[d], 0), first, first + box[d]);
    written = written ? b_.binary(Opcode::and_, written, in) : in;
  }
  if (m_.typeOf(moved).dims != local) moved = b_.dynamicUpdateSlice(old, moved, starts);
  finish(id, 0, b_.select(written, moved, old));
  return llvm::Error::success();
}

// ---------------------------------------------------------------- collectives of the program

llvm::Error Localiser::userCollective(OpId id) {
  keep(id);
  noteWhy(id, "user");
  whys_.back().reason = "the program contains this collective";
  whys_.back().asked_at = m_.loc(m_.op(id).loc).str();
  // Only groups of partitions become axes: without a channel (and global ids) they name replicas.
  Opcode opcode = m_.op(id).opcode;
  bool channel = m_.getInt(id, AttrKey::channel_id) > 0;
  bool by_channel = opcode == Opcode::collective_permute || opcode == Opcode::all_to_all ||
                    opcode == Opcode::collective_broadcast;
  bool global =
      m_.has(id, AttrKey::use_global_device_ids) && m_.getInt(id, AttrKey::use_global_device_ids, 1);
  if (!channel || !(by_channel || global)) return llvm::Error::success();
  if (opcode == Opcode::collective_permute) {
    const hlo::Attr* pairs = m_.findAttr(id, AttrKey::source_target_pairs);
    hlo::Groups inside;
    Axes group;
    if (!pairs || !sharding::axesOfPermute(mesh_, pairs->groups, group, inside))
      return llvm::Error::success();
    m_.removeAttr(id, AttrKey::channel_id);
    m_.removeAttr(id, AttrKey::channel_type);
    m_.setAxes(id, AttrKey::axes, ctx_.mesh, group);
    m_.setGroups(id, AttrKey::source_target_pairs, std::move(inside));
    return llvm::Error::success();
  }
  const hlo::Attr* groups = m_.findAttr(id, AttrKey::replica_groups);
  if (!groups) return llvm::Error::success();
  Axes axes;
  if (!sharding::axesOfGroups(mesh_, groups->groups, axes)) return llvm::Error::success();
  m_.removeAttr(id, AttrKey::replica_groups);
  m_.removeAttr(id, AttrKey::channel_id);
  m_.removeAttr(id, AttrKey::channel_type);
  m_.removeAttr(id, AttrKey::use_global_device_ids);
  m_.setAxes(id, AttrKey::axes, ctx_.mesh, axes);
  return llvm::Error::success();
}

}  // namespace tpu::partition
