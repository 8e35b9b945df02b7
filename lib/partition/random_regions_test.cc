// Steps of random programs: loops, branches, manual regions.
#include "random_program_test_util.h"
#include "tpu/sharding/axes.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;
using Ints = Generator::Ints;

void Generator::branchStep(ValueId x, const Ints& d) {
  ValueId y = ofDims(d), index = b_.remainder(runTimeIndex(), scalar(2));
  hlo::OpId op = b_.create(Opcode::case_, {index}, {m_.value(x).type});
  hlo::RegionId outer = b_.region(), first = b_.addRegion(op), second = b_.addRegion(op);
  b_.atEnd(first);
  b_.yield({b_.add(x, y)});
  b_.atEnd(second);
  Ints all;
  for (size_t i = 0; i < d.size(); ++i) all.push_back(static_cast<int64_t>(i));
  b_.yield({b_.multiply(x, b_.broadcastScalar(b_.reduce(y, scalar(0), all, Opcode::add), d))});
  b_.atEnd(outer);
  keep(b_.result(op));
}

void Generator::loopStep(ValueId x, const Ints& d) {
  ValueId y = ofDims(d), trips = r_.chance(40) ? b_.add(runTimeIndex(), scalar(2)) : scalar(3);
  hlo::TypeId s32 = m_.tensorType(ElementType::kS32, {}), type = m_.value(x).type;
  hlo::OpId op = b_.create(Opcode::while_, {scalar(0), x}, {s32, type});
  hlo::RegionId outer = b_.region(), cond = b_.addRegion(op), body = b_.addRegion(op);
  ValueId ci = m_.addArg(cond, s32, hlo::LocId());
  m_.addArg(cond, type, hlo::LocId());
  b_.atEnd(cond);
  b_.yield({b_.compare(hlo::Comparison::kLt, ci, trips)});
  ValueId bi = m_.addArg(body, s32, hlo::LocId()), acc = m_.addArg(body, type, hlo::LocId());
  b_.atEnd(body);
  ValueId next = b_.add(b_.multiply(acc, b_.splatInt(type, 3)), y);
  if (!d.empty() && r_.chance(50)) next = b_.reverse(next, {0});
  b_.yield({b_.add(bi, scalar(1)), next});
  b_.atEnd(outer);
  keep(m_.op(op).results[1]);
}

void Generator::ifStep(ValueId x, const Ints& d) {
  ValueId y = ofDims(d), pred = b_.compare(hlo::Comparison::kGt, runTimeIndex(), scalar(0));
  OpId op = b_.create(Opcode::if_, {pred}, {m_.value(x).type});
  RegionId outer = b_.region(), yes = b_.addRegion(op), no = b_.addRegion(op);
  b_.atEnd(yes);
  b_.yield({d.empty() ? x : b_.reverse(x, {0})});
  b_.atEnd(no);
  b_.yield({b_.subtract(y, x)});
  b_.atEnd(outer);
  keep(b_.result(op));
}

/// A loop of two trips around one whose count is only known at run time.
void Generator::nestedLoopStep(ValueId x, const Ints& d) {
  ValueId bound = b_.add(runTimeIndex(), scalar(1)), y = ofDims(d);
  hlo::TypeId s32 = m_.tensorType(ElementType::kS32, {}), type = m_.value(x).type;
  auto loop = [&](auto&& self, int depth, ValueId start) -> ValueId {
    OpId op = b_.create(Opcode::while_, {scalar(0), start}, {s32, type});
    RegionId outer = b_.region(), cond = b_.addRegion(op), body = b_.addRegion(op);
    ValueId ci = m_.addArg(cond, s32, hlo::LocId());
    m_.addArg(cond, type, hlo::LocId());
    b_.atEnd(cond);
    b_.yield({b_.compare(hlo::Comparison::kLt, ci, depth == 0 ? scalar(2) : bound)});
    ValueId bi = m_.addArg(body, s32, hlo::LocId()), acc = m_.addArg(body, type, hlo::LocId());
    b_.atEnd(body);
    ValueId next = depth == 0 ? b_.add(self(self, 1, acc), y)
                              : b_.add(acc, b_.multiply(y, b_.broadcastScalar(bi, d)));
    b_.yield({b_.add(bi, scalar(1)), next});
    b_.atEnd(outer);
    return m_.op(op).results[1];
  };
  keep(loop(loop, 0, x));
}

int64_t Generator::manualDim(const Ints& d, hlo::AxisRef& axis) {
  const hlo::Mesh& mesh = m_.meshes[0];
  uint32_t a = static_cast<uint32_t>(r_.below(static_cast<int64_t>(mesh.axes.size())));
  axis = {a, 1, mesh.axes[a].size};
  int64_t dim = -1;
  for (size_t i = 0; i < d.size(); ++i) {
    if (axis.size > 1 && d[i] % axis.size == 0) dim = static_cast<int64_t>(i);
  }
  return dim;
}

hlo::OpId Generator::manualOp(ValueId x, const Ints& d, int64_t dim, const hlo::AxisRef& axis) {
  hlo::Sharding s;
  s.mesh = hlo::MeshId(0);
  s.dims.resize(d.size());
  for (hlo::DimSharding& k : s.dims) k.open = r_.chance(70);
  s.dims[dim].axes.push_back(axis);
  int64_t id = m_.internSharding(s).v;
  OpId op = b_.create(Opcode::sdy_manual_computation, {x}, {m_.value(x).type});
  for (AttrKey key : {AttrKey::in_shardings, AttrKey::out_shardings}) {
    hlo::Attr a;
    a.key = key;
    a.kind = hlo::AttrKind::kShardings;
    a.ints.push_back(id);
    m_.setAttr(op, std::move(a));
  }
  m_.setAxes(op, AttrKey::manual_axes, hlo::MeshId(0), {axis});
  return op;
}

std::optional<Generator::ManualBody> Generator::beginManual(ValueId x, const Ints& d) {
  ManualBody body;
  body.dim = manualDim(d, body.axis);
  if (body.dim < 0) return std::nullopt;
  body.op = manualOp(x, d, body.dim, body.axis);
  body.local = d;
  body.local[body.dim] /= body.axis.size;
  body.type = m_.tensorType(ElementType::kS32, body.local);
  body.outer = b_.region();
  const RegionId region = b_.addRegion(body.op);
  body.v = m_.addArg(region, body.type, hlo::LocId());
  b_.atEnd(region);
  return body;
}

void Generator::endManual(const ManualBody& body, ValueId result) {
  b_.yield({result});
  b_.atEnd(body.outer);
  keep(b_.result(body.op));
}

hlo::Groups Generator::groupsOf(const hlo::AxisRef& axis) const {
  const hlo::Mesh& mesh = m_.meshes[0];
  hlo::Groups groups;
  groups.cols = axis.size;
  int64_t stride = sharding::stride(mesh, axis);
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    if (sharding::coordinate(mesh, axis, device) != 0) continue;
    ++groups.rows;
    for (int64_t i = 0; i < axis.size; ++i) groups.ids.push_back(device + i * stride);
  }
  return groups;
}

/// A body on local shapes over one axis, the other axes free: with a sum over the manual axis or without.
void Generator::manualStep(ValueId x, const Ints& d) {
  const std::optional<ManualBody> body = beginManual(x, d);
  if (!body) return;
  const hlo::AxisRef ref = body->axis;
  const int64_t dim = body->dim;
  const hlo::TypeId type = body->type;
  ValueId v = body->v;
  if (r_.chance(60)) {
    OpId sum = b_.create(Opcode::all_reduce, {v}, {type});
    m_.setGroups(sum, AttrKey::replica_groups, groupsOf(ref));
    m_.setInt(sum, AttrKey::channel_id, 1);
    m_.setBool(sum, AttrKey::use_global_device_ids, true);
    b_.combinerRegion(sum, Opcode::add, ElementType::kS32);
    v = b_.add(v, b_.result(sum));
  } else {
    v = b_.multiply(v, b_.add(b_.iota(type, dim), b_.splatInt(type, 2)));
  }
  endManual(*body, v);
}

/// A manual region over one axis inside of one over another.
void Generator::nestedManualStep(ValueId x, const Ints& d) {
  hlo::AxisRef first, second;
  int64_t dim = manualDim(d, first);
  if (dim < 0) return;
  Ints local = d;
  local[dim] /= first.size;
  int64_t inner_dim = manualDim(local, second);
  if (inner_dim < 0 || second.axis == first.axis) return;
  OpId op = manualOp(x, d, dim, first);
  RegionId outer = b_.region(), body = b_.addRegion(op);
  ValueId v = m_.addArg(body, m_.tensorType(ElementType::kS32, local), hlo::LocId());
  b_.atEnd(body);
  OpId inside = manualOp(v, local, inner_dim, second);
  Ints least = local;
  least[inner_dim] /= second.size;
  hlo::TypeId type = m_.tensorType(ElementType::kS32, least);
  RegionId deep = b_.addRegion(inside);
  ValueId w = m_.addArg(deep, type, hlo::LocId());
  b_.atEnd(deep);
  b_.yield({b_.add(w, b_.iota(type, dim))});
  b_.atEnd(body);
  b_.yield({b_.result(inside)});
  b_.atEnd(outer);
  keep(b_.result(op));
}

/// A ring permute, or a gather followed by a scatter, inside a manual region.
void Generator::exchangeStep(ValueId x, const Ints& d) {
  const std::optional<ManualBody> body = beginManual(x, d);
  if (!body) return;
  const hlo::AxisRef ref = body->axis;
  const int64_t dim = body->dim;
  const hlo::TypeId type = body->type;
  ValueId v = body->v;
  hlo::Groups groups = groupsOf(ref);
  OpId first;
  if (r_.chance(50)) {
    hlo::Groups pairs;
    pairs.cols = 2;
    for (int64_t row = 0; row < groups.rows; ++row) {
      for (int64_t i = 0; i < groups.cols; ++i, ++pairs.rows) {
        pairs.ids.push_back(groups.ids[row * groups.cols + i]);
        pairs.ids.push_back(groups.ids[row * groups.cols + (i + 1) % groups.cols]);
      }
    }
    first = b_.create(Opcode::collective_permute, {v}, {type});
    m_.setGroups(first, AttrKey::source_target_pairs, std::move(pairs));
    m_.setInt(first, AttrKey::channel_id, 1);
    v = b_.add(v, b_.result(first));
  } else {
    first = b_.create(Opcode::all_gather, {v}, {m_.tensorType(ElementType::kS32, d)});
    m_.setInt(first, AttrKey::all_gather_dim, dim);
    m_.setGroups(first, AttrKey::replica_groups, groups);
    m_.setInt(first, AttrKey::channel_id, 1);
    m_.setBool(first, AttrKey::use_global_device_ids, true);
    OpId second = b_.create(Opcode::reduce_scatter, {b_.result(first)}, {type});
    m_.setInt(second, AttrKey::scatter_dimension, dim);
    m_.setGroups(second, AttrKey::replica_groups, std::move(groups));
    m_.setInt(second, AttrKey::channel_id, 1);
    m_.setBool(second, AttrKey::use_global_device_ids, true);
    b_.combinerRegion(second, Opcode::add, ElementType::kS32);
    v = b_.result(second);
  }
  endManual(*body, v);
}

}  // namespace tpu::partition
