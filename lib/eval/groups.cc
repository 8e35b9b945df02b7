// Who takes part in a collective: by mesh axes, or by the specification's four ways to read replica_groups.
#include <algorithm>
#include <map>

#include "interpreter.h"
#include "tpu/sharding/shard.h"

namespace tpu::eval {
namespace {

std::vector<DeviceGroup> groupsByAxes(const Interpreter& interpreter, const hlo::Mesh& mesh,
                                      llvm::ArrayRef<hlo::AxisRef> axes) {
  // Devices that agree on everything but the axes form a group, ordered by their coordinate on the axes.
  const int64_t devices = mesh.numDevices();
  std::map<std::vector<int64_t>, std::vector<std::pair<int64_t, int64_t>>> groups;
  for (int64_t device = 0; device < devices; ++device) {
    const int64_t position = interpreter.positionIn(mesh, device);
    std::vector<int64_t> rest;
    for (uint32_t a = 0; a < mesh.axes.size(); ++a) {
      int64_t inner = 1;  // the axis's coordinate without the digits that the collective's axes take
      int64_t coordinate = shardIndex(mesh, {hlo::AxisRef{a, 1, mesh.axes[a].size}}, position);
      for (const hlo::AxisRef& ref : axes) {
        if (ref.axis != a) continue;
        inner = mesh.axes[a].size / (ref.pre * ref.size);
        coordinate -= coordinate / inner % ref.size * inner;
      }
      rest.push_back(coordinate);
    }
    groups[rest].emplace_back(shardIndex(mesh, axes, position), device);
  }
  std::vector<DeviceGroup> out;
  for (auto& [rest, members] : groups) {
    std::sort(members.begin(), members.end());
    out.emplace_back();
    for (const auto& [at, device] : members) out.back().push_back(device);
  }
  return out;
}

DeviceGroup upTo(int64_t count) {
  DeviceGroup out;
  for (int64_t i = 0; i < count; ++i) out.push_back(i);
  return out;
}

}  // namespace

llvm::Expected<std::vector<DeviceGroup>> collectiveGroups(const Interpreter& interpreter,
                                                          const hlo::Module& module, hlo::OpId op) {
  const Opcode opcode = module.op(op).opcode;
  if (const hlo::Attr* axes = module.findAttr(op, AttrKey::axes))
    return groupsByAxes(interpreter, module.meshes[axes->mesh.v], axes->axes);

  const int64_t devices = interpreter.numDevices();
  const int64_t replicas = interpreter.numReplicas(), partitions = std::max<int64_t>(1, devices / replicas);
  const bool channel = module.getInt(op, AttrKey::channel_id) > 0;
  const bool global =
      module.has(op, AttrKey::use_global_device_ids) && module.getInt(op, AttrKey::use_global_device_ids, 1);
  const bool by_partition =
      channel && (opcode == Opcode::all_to_all || opcode == Opcode::collective_permute ||
                  opcode == Opcode::collective_broadcast);
  std::vector<DeviceGroup> listed;
  if (const hlo::Attr* attr =
          opcode == Opcode::collective_permute ? nullptr : module.findAttr(op, AttrKey::replica_groups))
    for (int64_t r = 0; r < attr->groups.rows; ++r) {
      listed.emplace_back();
      for (int64_t c = 0; c < attr->groups.cols; ++c)
        if (const int64_t id = attr->groups.ids[r * attr->groups.cols + c]; id >= 0)
          listed.back().push_back(id);
      if (listed.back().empty()) listed.pop_back();
    }
  const int64_t range = channel && global ? devices : by_partition ? partitions : replicas;
  if (listed.empty()) listed.push_back(upTo(range));
  for (const DeviceGroup& group : listed)
    for (int64_t id : group)
      if (id >= range)
        return fail(Code::kEvalBadOperand, module.loc(module.op(op).loc),
                    llvm::Twine("replica_groups names ") + llvm::Twine(id) + ", but there are only " +
                        llvm::Twine(range));

  if (channel && global) return listed;  // flattened ids
  std::vector<DeviceGroup> out;
  for (const DeviceGroup& group : listed) {
    if (channel && !by_partition) {  // replicas and all their partitions
      out.emplace_back();
      for (int64_t p = 0; p < partitions; ++p)
        for (int64_t r : group) out.back().push_back(r * partitions + p);
      continue;
    }
    for (int64_t other = 0; other < (by_partition ? replicas : partitions); ++other) {
      out.emplace_back();
      for (int64_t id : group)
        out.back().push_back(by_partition ? other * partitions + id : id * partitions + other);
    }
  }
  return out;
}

}  // namespace tpu::eval
