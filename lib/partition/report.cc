// Counting: collectives with trips, wire bytes by formula, contraction work.
#include "report.h"

#include <algorithm>

#include "tpu/hlo/analysis.h"
#include "tpu/hlo/infer.h"
#include "tpu/sharding/text.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;

namespace {

double opsOf(const hlo::Module& m, OpId id) {
  const hlo::Op& op = m.op(id);
  const hlo::Type& out = m.typeOf(op.results[0]);
  double n = 2.0 * static_cast<double>(out.numElements());
  if (op.opcode == Opcode::dot) return n * static_cast<double>(m.typeOf(op.operands[0]).dims.back());
  if (op.opcode == Opcode::dot_general) {
    const hlo::Type& lhs = m.typeOf(op.operands[0]);
    for (int64_t d : m.getInts(id, AttrKey::lhs_contracting_dimensions))
      n *= static_cast<double>(lhs.dims[d]);
    return n;
  }
  const hlo::Type& kernel = m.typeOf(op.operands[1]);
  int64_t out_dim = m.getInt(id, AttrKey::kernel_output_feature_dimension);
  for (int64_t d = 0; d < kernel.rank(); ++d) {
    if (d != out_dim) n *= static_cast<double>(kernel.dims[d]);
  }
  return n;
}

/// Visits every op with the product of trips of the loops around it. `scale` is multiplied by the devices of
/// manual axes.
template <class Fn>
void withTrips(const hlo::Module& m, hlo::RegionId region, double trips, double scale, Fn&& fn) {
  for (OpId id : m.region(region).ops) {
    const hlo::Op& op = m.op(id);
    fn(id, trips, scale);
    double inner = trips, inner_scale = scale;
    if (op.opcode == Opcode::while_) inner *= static_cast<double>(hlo::tripCount(m, id).value_or(1));
    if (op.opcode == Opcode::sdy_manual_computation) {
      if (const hlo::Attr* a = m.findAttr(id, AttrKey::manual_axes))
        inner_scale *= static_cast<double>(sharding::product(a->axes));
    }
    for (hlo::RegionId r : op.regions) withTrips(m, r, inner, inner_scale, fn);
  }
}

double movingShare(const hlo::Module& m, OpId id, int64_t group) {
  const hlo::Attr* pairs = m.findAttr(id, AttrKey::source_target_pairs);
  if (!pairs || group == 0) return 0;
  int64_t moving = 0;
  for (int64_t i = 0; i < pairs->groups.rows; ++i) {
    moving += pairs->groups.ids[2 * i] != pairs->groups.ids[2 * i + 1] && pairs->groups.ids[2 * i] >= 0;
  }
  return static_cast<double>(moving) / static_cast<double>(group);
}

double wireBytes(Opcode opcode, double size, double n, double share) {
  switch (opcode) {
    case Opcode::all_reduce:
    case Opcode::cross_replica_sum:
      return 2 * size * (n - 1) / n;
    case Opcode::all_gather:
    case Opcode::all_to_all:
      return size * (n - 1) / n;
    case Opcode::reduce_scatter:
      return size * (n - 1);
    case Opcode::collective_permute:
      return size * share;
    default:
      return size * (n - 1) / n;
  }
}

}  // namespace

double contractionOps(const hlo::Module& m) {
  double total = 0;
  withTrips(m, m.func(m.entry).body, 1, 1, [&](OpId id, double trips, double scale) {
    Opcode opcode = m.op(id).opcode;
    if (opcode == Opcode::dot_general || opcode == Opcode::dot || opcode == Opcode::convolution)
      total += opsOf(m, id) * trips * scale;
  });
  return total;
}

PartitionReport makeReport(const hlo::Module& m, const target::Target& target, double unpartitioned_ops) {
  PartitionReport report;
  report.devices = std::max<int64_t>(1, m.num_partitions);
  report.dot_flops = contractionOps(m);
  report.dot_flops_unpartitioned = unpartitioned_ops;
  std::vector<const hlo::Why*> why_of(m.numOps(), nullptr);
  for (const hlo::Why& w : m.whys) why_of[w.op.v] = &w;
  double link = std::max<double>(1, static_cast<double>(target.chip.ici_sustained_bytes_per_s));
  withTrips(m, m.func(m.entry).body, 1, 1, [&](OpId id, double trips, double) {
    const hlo::Op& op = m.op(id);
    if (!hlo::hasTrait(op.opcode, hlo::kCollective)) return;
    CollectiveRecord r;
    r.op = id;
    r.kind = hlo::opInfo(op.opcode).mnemonic.str();
    r.trips = static_cast<int64_t>(trips);
    for (hlo::ValueId v : op.results) r.bytes += bytesOf(m.typeOf(v));
    if (const hlo::Attr* a = m.findAttr(id, AttrKey::axes)) {
      for (const hlo::AxisRef& x : a->axes) r.axes.push_back(sharding::print(m.meshes[a->mesh.v], x));
      for (std::string& s : r.axes) s.erase(std::remove(s.begin(), s.end(), '"'), s.end());
      r.group_size = sharding::product(a->axes);
    } else {
      r.group_size = op.opcode == Opcode::collective_permute ? report.devices : hlo::groupSize(m, id);
    }
    double n = static_cast<double>(std::max<int64_t>(1, r.group_size));
    double once = wireBytes(op.opcode, static_cast<double>(r.bytes), n, movingShare(m, id, r.group_size));
    r.wire_bytes = static_cast<int64_t>(once * trips + 0.5);
    // A ring over one dimension of the torus uses its links both ways.
    double hops =
        op.opcode == Opcode::collective_permute ? 1 : (n - 1) * (op.opcode == Opcode::all_reduce ? 2 : 1);
    r.time_ns = trips * (once / (2 * link) * 1e9 + hops * static_cast<double>(target.chip.ici_hop_ns));
    r.why = why_of[id.v];
    report.count_by_kind[r.kind] += 1;
    report.wire_by_kind[r.kind] += r.wire_bytes;
    report.wire_bytes += r.wire_bytes;
    report.records.push_back(std::move(r));
  });
  std::stable_sort(report.records.begin(), report.records.end(),
                   [](const auto& a, const auto& b) { return a.wire_bytes > b.wire_bytes; });
  const hlo::Func& entry = m.func(m.entry);
  const std::vector<hlo::ValueId>& args = m.region(entry.body).args;
  report.arguments = static_cast<int64_t>(args.size());
  report.results = static_cast<int64_t>(entry.result_types.size());
  for (size_t i = 0; i < args.size(); ++i) {
    int64_t bytes = bytesOf(m.typeOf(args[i]));
    report.argument_bytes += bytes;
    if (!entry.arg_ports[i].sharding) report.replicated_argument_bytes += bytes;
  }
  return report;
}

}  // namespace tpu::partition
