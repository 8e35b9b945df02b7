// all_reduce and then a part of it. A part that differs by device in the way reduce_scatter cuts is a reduce_scatter,
// with half of the traffic; a part that is the same everywhere is cut first.
#include <map>

#include "collectives.h"
#include "device_value.h"
#include "tpu/hlo/analysis.h"
#include "tpu/sharding/axes.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;

namespace {

class FormReduceScatter {
 public:
  explicit FormReduceScatter(hlo::Module& m) : m_(m), uses_(m), replacements_(m) {}

  void run() {
    region(m_.func(m_.entry).body);
    if (!changed_) return;
    replacements_.apply();
    dropDead(m_);
  }

 private:
  void region(hlo::RegionId r) {
    std::vector<OpId> before = m_.region(r).ops;
    for (OpId id : before) {
      for (hlo::RegionId inner : std::vector<hlo::RegionId>(m_.op(id).regions.begin(), m_.op(id).regions.end())) region(inner);
      bool part = m_.op(id).opcode == Opcode::dynamic_slice || m_.op(id).opcode == Opcode::slice;
      if (!part) continue;
      OpId reduce = m_.value(m_.op(id).operands[0]).def;
      if (!reduce || m_.op(reduce).opcode != Opcode::all_reduce || m_.op(reduce).operands.size() != 1 ||
          m_.op(reduce).parent != r || uses_.of(m_.op(id).operands[0]).size() != 1)
        continue;
      changed_ |= m_.op(id).opcode == Opcode::slice ? cutFirst(id, reduce, r) : scatter(id, reduce);
    }
  }

  /// all_reduce, slice -> slice, all_reduce.
  bool cutFirst(OpId slice, OpId reduce, hlo::RegionId r) {
    ValueId part = m_.op(slice).results[0];
    if (bytesOf(m_.typeOf(part)) >= bytesOf(m_.typeOf(m_.op(slice).operands[0]))) return false;
    std::vector<OpId>& ops = m_.region(r).ops;
    OpId cut = m_.create(r, Opcode::slice, {m_.op(reduce).operands[0]}, {m_.value(part).type}, m_.op(slice).loc);
    m_.copyAttrs(slice, cut);
    ops.insert(llvm::find(ops, reduce), cut);
    m_.op(reduce).operands[0] = m_.op(cut).results[0];
    become(reduce, part);
    return true;
  }

  bool scatter(OpId slice, OpId reduce) {
    const hlo::Attr* axes = m_.findAttr(reduce, AttrKey::axes);
    if (!axes || axes->axes.empty()) return false;
    const hlo::Mesh& mesh = m_.meshes[axes->mesh.v];
    const hlo::Type &whole = m_.typeOf(m_.op(slice).operands[0]), &part = m_.typeOf(m_.op(slice).results[0]);
    int64_t dim = -1;
    for (int64_t d = 0; d < whole.rank(); ++d) {
      if (whole.dims[d] == part.dims[d]) continue;
      if (dim >= 0) return false;
      dim = d;
    }
    if (dim < 0 || part.dims[dim] * sharding::product(axes->axes) != whole.dims[dim]) return false;
    sharding::Axes order(axes->axes.begin(), axes->axes.end());
    if (!startsAtOwnPart(m_.op(slice).operands[1 + dim], mesh, order, part.dims[dim])) {
      std::reverse(order.begin(), order.end());
      if (order.size() != 2 || !startsAtOwnPart(m_.op(slice).operands[1 + dim], mesh, order, part.dims[dim])) return false;
    }
    hlo::MeshId id = axes->mesh;
    m_.setAxes(reduce, AttrKey::axes, id, order);
    m_.op(reduce).opcode = Opcode::reduce_scatter;
    m_.setInt(reduce, AttrKey::scatter_dimension, dim);
    become(reduce, m_.op(slice).results[0]);
    return true;
  }

  /// The result of `reduce` takes the type and the place of `v`.
  void become(OpId reduce, ValueId v) {
    hlo::Value& result = m_.value(m_.op(reduce).results[0]);
    result.type = m_.value(v).type;
    result.sharding = m_.value(v).sharding;
    replacements_.replace(v, m_.op(reduce).results[0]);
  }

  /// On every device `start` is its position along the axes, times the size of a part.
  bool startsAtOwnPart(ValueId start, const hlo::Mesh& mesh, const sharding::Axes& axes, int64_t size) {
    std::vector<int64_t> key = {start.v, size};
    for (const hlo::AxisRef& a : axes) key.insert(key.end(), {a.axis, a.pre, a.size});
    auto [it, fresh] = known_.try_emplace(std::move(key), true);
    if (!fresh) return it->second;
    const int64_t last = size * (sharding::product(axes) - 1);
    for (int64_t d = 0; it->second && d < mesh.numDevices(); ++d) {
      auto v = valueOn(m_, start, d);
      it->second = v && std::clamp<int64_t>(*v, 0, last) == size * sharding::coordinate(mesh, axes, d);
    }
    return it->second;
  }

  hlo::Module& m_;
  const hlo::Uses uses_;
  Replacements replacements_;
  std::map<std::vector<int64_t>, bool> known_;
  bool changed_ = false;
};

}  // namespace

void formReduceScatters(hlo::Module& m) { FormReduceScatter(m).run(); }

}  // namespace tpu::partition
