// Meshes and shardings of the sdy dialect.
#include "import.h"
#include "tpu/hlo/sharding_mistakes.h"

namespace tpu::frontend::bytecode {

using hlo::AxisRef;
using hlo::Mesh;
using hlo::ShardingId;

bool Importer::meshOp(const RawOp& op) {
  Named named;
  if (!names(op, "mesh sym_name", named)) return false;
  Mesh parsed;
  bool seen = false;
  for (auto [name, row] : named) {
    const AttrNode* node = e.attr(row);
    if (!node) return false;
    if (name == "sym_name") parsed.name = text_.string(row).value_or("").str();
    if (name == "mesh") {
      if (!mesh(*node, parsed)) return false;
      seen = true;
    }
  }
  if (!seen || parsed.name.empty()) return fail(op, "a mesh has no name or no axes");
  if (!meshes_.try_emplace(parsed.name, hlo::MeshId(static_cast<uint32_t>(m.meshes.size()))).second)
    return e.fail(Code::kRepeatedName, op.offset, "mesh '@" + parsed.name + "' is defined twice");
  m.meshes.push_back(std::move(parsed));
  return true;
}

bool Importer::mesh(const AttrNode& node, Mesh& mesh) {
  if (node.tag != AttrTag::kMesh) return e.fail(node.offset, "expected a mesh");
  int64_t devices = 1;
  for (uint64_t row : node[0].list) {
    const AttrNode* axis = e.attr(static_cast<uint32_t>(row));
    if (!axis) return false;
    if (axis->tag != AttrTag::kMeshAxis) return e.fail(axis->offset, "expected the axis of a mesh");
    hlo::MeshAxis entry{(*axis)[0].bytes.str(), (*axis)[1].i()};
    if (entry.size < 1) return e.fail(axis->offset, "mesh axis without devices");
    if (mesh.findAxis(entry.name) >= 0)
      return e.fail(Code::kRepeatedName, axis->offset, "mesh axis '" + entry.name + "' is named twice");
    if (__builtin_mul_overflow(devices, entry.size, &devices) || devices > (int64_t{1} << 32))
      return e.fail(axis->offset, "mesh has too many devices");
    mesh.axes.push_back(std::move(entry));
  }
  const auto& ids = node[1].list;
  if (mesh.axes.empty() && ids.size() == 1) {
    mesh.maximal_device = static_cast<int64_t>(ids[0]);
  } else if (!ids.empty()) {
    for (uint64_t id : ids) mesh.device_ids.push_back(static_cast<int64_t>(id));
    if (std::string wrong = hlo::deviceIdsText(mesh.device_ids, devices); !wrong.empty()) return e.fail(node.offset, wrong);
  }
  return true;
}

bool Importer::axis(const Mesh& mesh, uint32_t row, AxisRef& axis) {
  const AttrNode* node = e.attr(row);
  if (!node) return false;
  if (node->tag != AttrTag::kAxisRef) return e.fail(node->offset, "expected an axis");
  llvm::StringRef name = (*node)[0].bytes;
  int index = mesh.findAxis(name);
  if (index < 0)
    return e.fail(Code::kUnknownName, node->offset, hlo::unknownAxisText(mesh, name));
  axis.axis = static_cast<uint32_t>(index);
  axis.size = mesh.axes[static_cast<size_t>(index)].size;
  if ((*node)[1].n == kAbsent) return true;
  const AttrNode* sub = e.attr((*node)[1].row());
  if (!sub) return false;
  if (sub->tag != AttrTag::kSubAxis) return e.fail(sub->offset, "expected a sub-axis");
  axis.pre = (*sub)[0].i();
  axis.size = (*sub)[1].i();
  if (!hlo::subAxisDivides(mesh, axis)) return e.fail(sub->offset, hlo::badSubAxisText(mesh, axis));
  return true;
}

bool Importer::axes(const Mesh& mesh, llvm::ArrayRef<uint64_t> rows, llvm::SmallVectorImpl<AxisRef>& axes) {
  for (uint64_t row : rows) {
    AxisRef ref;
    if (!axis(mesh, static_cast<uint32_t>(row), ref)) return false;
    axes.push_back(ref);
  }
  return true;
}

bool Importer::sharding(uint32_t row, ShardingId& id) {
  const AttrNode* node = e.attr(row);
  if (!node) return false;
  if (node->tag != AttrTag::kSharding) return e.fail(node->offset, "expected a sharding");
  hlo::Sharding s;
  if (const AttrNode* at = e.attr((*node)[0].row()); at && at->tag == AttrTag::kMesh) {
    Mesh inlined;
    if (!mesh(*at, inlined)) return false;
    s.mesh = inlinedMesh(m, std::move(inlined));
  } else if (auto name = text_.string((*node)[0].row())) {
    auto it = meshes_.find(*name);
    if (it == meshes_.end()) return e.fail(Code::kUnknownName, node->offset, "unknown mesh '@" + *name + "'");
    s.mesh = it->second;
  } else {
    return e.fail(node->offset, "a sharding names no mesh");
  }
  const Mesh& mesh = m.meshes[s.mesh.v];
  for (uint64_t dim_row : (*node)[1].list) {
    const AttrNode* dim = e.attr(static_cast<uint32_t>(dim_row));
    if (!dim) return false;
    if (dim->tag != AttrTag::kDimSharding) return e.fail(dim->offset, "expected the sharding of a dimension");
    hlo::DimSharding entry;
    if (!axes(mesh, (*dim)[0].list, entry.axes)) return false;
    entry.open = (*dim)[1].n == 0;
    if (uint64_t priority = (*dim)[2].n; priority != kAbsent) {
      if (priority > 1'000'000) return e.fail(dim->offset, "priority out of range");
      entry.priority = static_cast<int>(priority);
    }
    s.dims.push_back(std::move(entry));
  }
  if (!axes(mesh, (*node)[2].list, s.replicated)) return false;
  if (node->fields.size() > 3 && !axes(mesh, (*node)[3].list, s.unreduced)) return false;
  id = m.internSharding(s);
  return true;
}

bool Importer::shardings(uint32_t row, Ints& ids) {
  const AttrNode* node = e.attr(row);
  if (!node) return false;
  ShardingId id;
  if (node->tag == AttrTag::kSharding) {
    if (!sharding(row, id)) return false;
    ids.push_back(id.v);
    return true;
  }
  if (node->tag != AttrTag::kShardingPerValue) return e.fail(node->offset, "expected shardings");
  for (uint64_t one : (*node)[0].list) {
    if (!sharding(static_cast<uint32_t>(one), id)) return false;
    ids.push_back(id.v);
  }
  return true;
}

// The axes are of the mesh that the shardings name; a computation without operands and results has any.
bool Importer::manualAxes(OpId op, const Named& named) {
  hlo::MeshId id;
  for (AttrKey key : {AttrKey::in_shardings, AttrKey::out_shardings})
    if (auto ids = m.getInts(op, key); !id && !ids.empty())
      id = m.sharding(ShardingId(static_cast<uint32_t>(ids[0]))).mesh;
  if (!id && !m.meshes.empty()) id = hlo::MeshId(0);
  for (auto [name, row] : named) {
    if (name != "manual_axes") continue;
    const AttrNode* node = e.attr(row);
    if (!node) return false;
    if (node->tag != AttrTag::kManualAxes) return e.fail(node->offset, "expected manual axes");
    llvm::SmallVector<AxisRef, 4> refs;
    for (uint64_t one : (*node)[0].list) {
      llvm::StringRef axis = text_.string(static_cast<uint32_t>(one)).value_or("");
      int index = id ? m.meshes[id.v].findAxis(axis) : -1;
      if (index < 0) return e.fail(Code::kUnknownName, node->offset, "the mesh has no axis '" + axis + "'");
      refs.push_back({static_cast<uint32_t>(index), 1, m.meshes[id.v].axes[static_cast<size_t>(index)].size});
    }
    m.setAxes(op, AttrKey::manual_axes, id, refs);
  }
  return !e.failed();
}

}  // namespace tpu::frontend::bytecode
