// sdy.manual_computation: the body runs on every device with its own parts of the arguments; results are put
// together from the parts. Axes that are not manual stay whole, so devices that differ only there compute the
// same.
#include <algorithm>
#include <map>

#include "interpreter.h"
#include "tpu/sharding/gspmd.h"
#include "tpu/sharding/shard.h"

namespace tpu::eval {
namespace {

// The part of a sharding that lies on the manual axes.
hlo::Sharding onAxes(hlo::Sharding sharding, llvm::ArrayRef<hlo::AxisRef> manual) {
  for (hlo::DimSharding& dim : sharding.dims)
    llvm::erase_if(dim.axes, [&](const hlo::AxisRef& axis) {
      return llvm::none_of(manual, [&](const hlo::AxisRef& m) { return m.axis == axis.axis; });
    });
  return sharding;
}

bool cutsAnything(const hlo::Sharding& sharding) {
  return llvm::any_of(sharding.dims, [](const hlo::DimSharding& d) { return !d.axes.empty(); });
}

// Coordinates on the axes that are not manual: devices with the same ones hold parts of one array.
std::vector<int64_t> outsideOf(const hlo::Mesh& mesh, llvm::ArrayRef<hlo::AxisRef> manual, int64_t position) {
  std::vector<int64_t> out;
  for (uint32_t a = 0; a < mesh.axes.size(); ++a)
    if (llvm::none_of(manual, [&](const hlo::AxisRef& m) { return m.axis == a; }))
      out.push_back(shardIndex(mesh, {hlo::AxisRef{a, 1, mesh.axes[a].size}}, position));
  return out;
}

}  // namespace

Lanes Interpreter::cutLanes(Lanes whole, const hlo::Sharding& sharding, const hlo::Mesh& mesh,
                            const Team& team) const {
  if (!cutsAnything(sharding) || whole.copies.empty()) return whole;
  Lanes out;
  out.copies.resize(devices_);
  std::map<std::vector<int64_t>, Tensor> known;  // parts of a value that all devices share
  for (int64_t d : team.devices) {
    const Tensor t = whole.at(d);
    const ShardExtent extent = shardOf(mesh, sharding, t->dims, positionIn(mesh, d));
    Tensor fresh;
    Tensor& slot =
        whole.uniform() ? known[std::vector<int64_t>(extent.offset.begin(), extent.offset.end())] : fresh;
    if (!slot) slot = std::make_shared<HostTensor>(cutBox(*t, extent, localDims(sharding, t->dims)));
    out.copies[d] = slot;
  }
  return out;
}

LanesOutcome Interpreter::runManual(hlo::OpId id, LaneList in, const Team& team) {
  const hlo::Op& op = module_.op(id);
  const hlo::Attr* axes = module_.findAttr(id, AttrKey::manual_axes);
  const llvm::ArrayRef<int64_t> in_shardings = module_.getInts(id, AttrKey::in_shardings);
  const llvm::ArrayRef<int64_t> out_shardings = module_.getInts(id, AttrKey::out_shardings);
  if (!axes || axes->axes.empty()) return runRegion(op.regions[0], std::move(in), team);  // nothing is manual
  const hlo::Mesh& mesh = module_.meshes[axes->mesh.v];

  LaneList local;
  for (size_t i = 0; i < in.size(); ++i) {
    const hlo::Sharding sharding =
        onAxes(module_.sharding(hlo::ShardingId(static_cast<uint32_t>(in_shardings[i]))), axes->axes);
    local.push_back(cutLanes(std::move(in[i]), sharding, mesh, team));
  }
  in.clear();

  const bool outermost = !manual_depth_;
  ++manual_depth_;
  LanesOutcome results = runRegion(op.regions[0], std::move(local), team);
  --manual_depth_;
  if (!results) return results;

  LaneList out;
  for (size_t r = 0; r < results->size(); ++r) {
    const hlo::Sharding sharding =
        onAxes(module_.sharding(hlo::ShardingId(static_cast<uint32_t>(out_shardings[r]))), axes->axes);
    out.push_back(assembleManual(id, (*results)[r], sharding, module_.typeOf(op.results[r]).dims, axes->axes,
                                 mesh, team, outermost));
  }
  return out;
}

// The sharding on the whole side stands on the @Sharding call just before the way in, and on the way out itself. What is
// manual on the inner side stands on the way in, and on the @Sharding call just before the way out.
LanesOutcome Interpreter::runShapeBorder(hlo::OpId id, Lanes in, bool enters, const Team& team) {
  const hlo::Op& op = module_.op(id);
  const hlo::OpId before = module_.value(op.operands[0]).def;
  const llvm::StringRef first = before.valid() ? module_.getString(before, AttrKey::mhlo_sharding) : "";
  const llvm::StringRef own = module_.getString(id, AttrKey::mhlo_sharding);
  const llvm::StringRef whole = enters ? first : own, part = enters ? own : first;
  hlo::Mesh mesh = sharding::meshOfGspmd({whole, part});  // axes cut where the two strings cut
  if (mesh.numDevices() != devices_) mesh.axes.assign(1, {"devices", devices_});
  auto outside = sharding::parseGspmd(mesh, whole.empty() ? "{replicated}" : whole, locOf(id));
  if (!outside) return outside.takeError();
  auto inside = sharding::parseGspmd(mesh, part.empty() ? "{manual}" : part, locOf(id));
  if (!inside) return inside.takeError();
  if (outside->kind == sharding::GspmdKind::kMaximal)
    return fail(Code::kEvalUnsupported, locOf(id), "the evaluator does not take a manual region on one device: '" + whole + "'");
  hlo::Sharding sharding;
  for (const sharding::Axes& axes : outside->dims) sharding.dims.push_back({axes});
  std::vector<hlo::AxisRef> manual;
  for (uint32_t a = 0; a < mesh.axes.size(); ++a) {
    const hlo::AxisRef axis = sharding::fullAxis(mesh, a);
    const bool here = inside->manual.empty() || sharding::overlaps(axis, inside->manual);
    if (here && !sharding::overlaps(axis, outside->manual)) manual.push_back(axis);
  }
  if (enters) return LaneList{cutLanes(std::move(in), onAxes(sharding, manual), mesh, team)};
  return LaneList{assembleManual(id, in, onAxes(sharding, manual), module_.typeOf(op.results[0]).dims, manual, mesh, team,
                                 outside->manual.empty())};
}

Lanes Interpreter::assembleManual(hlo::OpId id, const Lanes& parts, const hlo::Sharding& sharding,
                                  llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<hlo::AxisRef> manual,
                                  const hlo::Mesh& mesh, const Team& team, bool outermost) {
  if (parts.copies.empty()) return parts;
  if (parts.uniform() && !cutsAnything(sharding)) return parts;
  std::map<std::vector<int64_t>, std::vector<int64_t>> groups;
  for (int64_t d : team.devices) groups[outsideOf(mesh, manual, positionIn(mesh, d))].push_back(d);
  Lanes out;
  out.copies.resize(devices_);
  for (const auto& [outside, devices] : groups) {
    Tensor whole = makeTensor(parts.at(devices.front())->element, dims);
    std::map<std::vector<int64_t>, int64_t> owners;
    for (int64_t d : devices) {
      const ShardExtent extent = shardOf(mesh, sharding, dims, positionIn(mesh, d));
      const auto [owner, fresh] =
          owners.emplace(std::vector<int64_t>(extent.offset.begin(), extent.offset.end()), d);
      if (fresh) {
        placeBox(*parts.at(d), extent, *whole);
      } else {
        warnIfDifferent(id, parts, owner->second, d);
      }
    }
    for (int64_t d : devices) out.copies[d] = whole;
    if (outermost) return Lanes(whole);  // whole arrays are the same on all devices
  }
  return out;
}

void Interpreter::warnIfDifferent(hlo::OpId id, const Lanes& parts, int64_t first, int64_t second) {
  const Tensor a = parts.at(first), b = parts.at(second);
  if (!sink_ || a == b || *a == *b) return;
  sink_->warn(Code::kEvalReplicasDiffer, locOf(id),
              llvm::Twine("devices ") + llvm::Twine(first) + " and " + llvm::Twine(second) +
                  " should hold the same part of a result but differ");
}

}  // namespace tpu::eval
