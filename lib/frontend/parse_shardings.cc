// Meshes and shardings of the sdy dialect: axes, sub-axes, open and closed dimensions, priorities, replicated
// and unreduced axes.
#include "parser.h"
#include "rules.h"
#include "tpu/hlo/sharding_mistakes.h"
#include "tpu/support/nearest.h"

namespace tpu::frontend {

using hlo::AxisRef;
using hlo::Mesh;
using hlo::MeshId;
using hlo::Sharding;
using hlo::ShardingId;

// <["x"=4, "y"=2], device_ids=[0, 1, ...]>; <[], device_ids=[3]> is a maximal mesh.
bool Parser::mesh(Mesh& mesh) {
  if (!c.expect('<') || !c.expect('[')) return false;
  const char* at = c.p;
  if (!c.accept(']')) {
    do {
      hlo::MeshAxis axis;
      if (!c.string(axis.name) || !c.expect('=') || !c.digits(axis.size)) return false;
      if (axis.size < 1) return c.error("mesh axis without devices");
      if (mesh.findAxis(axis.name) >= 0)
        return c.error(Code::kRepeatedName, at, "mesh axis '" + axis.name + "' is named twice");
      mesh.axes.push_back(std::move(axis));
    } while (c.accept(','));
    if (!c.expect(']')) return false;
  }
  int64_t devices = 1;
  for (const hlo::MeshAxis& axis : mesh.axes)
    if (__builtin_mul_overflow(devices, axis.size, &devices) || devices > (int64_t{1} << 32))
      return c.error(Code::kSyntaxError, at, "mesh has too many devices");
  if (c.accept(',')) {
    Ints ids;
    if (!c.expectWord("device_ids") || !c.expect('=')) return false;
    c.blanks();
    const char* list = c.p;
    if (!ints(ids)) return false;
    if (mesh.axes.empty() && ids.size() == 1) {
      mesh.maximal_device = ids[0];
    } else {
      if (std::string wrong = hlo::deviceIdsText(ids, devices); !wrong.empty()) return c.error(Code::kBadMesh, list, wrong);
      mesh.device_ids.assign(ids.begin(), ids.end());
    }
  }
  return c.expect('>');
}

bool Parser::meshRef(MeshId& id) {
  c.blanks();
  const char* at = c.p;
  if (*c.p == '@') {
    std::string name;
    if (!symbol(name)) return false;
    auto it = meshes_.find(name);
    if (it == meshes_.end()) {
      std::vector<llvm::StringRef> known;
      for (const auto& mesh : meshes_) known.push_back(mesh.first());
      llvm::sort(known);
      return c.error(Code::kUnknownName, at, "unknown mesh '@" + name + "'" + suggestName(name, known));
    }
    id = it->second;
    return true;
  }
  c.acceptWord("#sdy.mesh") || c.acceptWord("mesh");
  Mesh inlined;
  if (!mesh(inlined)) return false;
  id = inlinedMesh(m, std::move(inlined));
  return true;
}

bool Parser::axis(const Mesh& mesh, AxisRef& axis) {
  c.blanks();
  const char* at = c.p;
  std::string name;
  if (!c.string(name)) return false;
  int index = mesh.findAxis(name);
  if (index < 0)
    return c.error(Code::kUnknownName, at, hlo::unknownAxisText(mesh, name));
  axis.axis = static_cast<uint32_t>(index);
  axis.size = mesh.axes[static_cast<size_t>(index)].size;
  if (!c.accept(':')) return true;
  if (!c.expect('(') || !c.digits(axis.pre) || !c.expect(')') || !c.digits(axis.size)) return false;
  if (!hlo::subAxisDivides(mesh, axis)) return c.error(Code::kSyntaxError, at, hlo::badSubAxisText(mesh, axis));
  return true;
}

bool Parser::axisList(const Mesh& mesh, llvm::SmallVectorImpl<AxisRef>& axes) {
  if (!c.expect('{')) return false;
  if (c.accept('}')) return true;
  do {
    AxisRef ref;
    if (!axis(mesh, ref)) return false;
    axes.push_back(ref);
  } while (c.accept(','));
  return c.expect('}');
}

// {"x", "y":(1)2, ?}p1
bool Parser::dimSharding(const Mesh& mesh, hlo::DimSharding& dim) {
  if (!c.expect('{')) return false;
  if (!c.accept('}')) {
    do {
      if (c.accept('?')) {
        dim.open = true;
        break;
      }
      AxisRef ref;
      if (!axis(mesh, ref)) return false;
      dim.axes.push_back(ref);
    } while (c.accept(','));
    if (!c.expect('}')) return false;
  }
  if (*c.p == 'p' && isDigit(c.p[1])) {
    ++c.p;
    int64_t priority;
    if (!c.digits(priority)) return false;
    if (priority > 1'000'000) return c.error("priority out of range");
    dim.priority = static_cast<int>(priority);
  }
  return true;
}

bool Parser::sharding(ShardingId& id) {
  c.acceptWord("#sdy.sharding");
  Sharding s;
  if (!c.expect('<') || !meshRef(s.mesh) || !c.expect(',') || !c.expect('[')) return false;
  const Mesh& mesh = m.meshes[s.mesh.v];
  if (!c.accept(']')) {
    do {
      hlo::DimSharding dim;
      if (!dimSharding(mesh, dim)) return false;
      s.dims.push_back(std::move(dim));
    } while (c.accept(','));
    if (!c.expect(']')) return false;
  }
  while (c.accept(',')) {
    bool replicated = c.acceptWord("replicated");
    if (!replicated && !c.acceptWord("unreduced")) return c.error("expected 'replicated' or 'unreduced'");
    if (!c.expect('=') || !axisList(mesh, replicated ? s.replicated : s.unreduced)) return false;
  }
  if (!c.expect('>')) return false;
  id = m.internSharding(s);
  return true;
}

bool Parser::shardingList(Ints& ids) {
  if (!c.expect('[')) return false;
  if (c.accept(']')) return true;
  do {
    ShardingId id;
    if (!sharding(id)) return false;
    ids.push_back(id.v);
  } while (c.accept(','));
  return c.expect(']');
}

bool Parser::resultShardings(OpId op) {
  Ints ids;
  if (c.acceptWord("#sdy.sharding_per_value")) {
    if (!c.expect('<') || !shardingList(ids) || !c.expect('>')) return false;
  } else {
    ShardingId id;
    if (!sharding(id)) return false;
    ids.push_back(id.v);
  }
  hlo::Attr attr;
  attr.key = AttrKey::result_shardings;
  attr.kind = hlo::AttrKind::kShardings;
  attr.ints.assign(ids.begin(), ids.end());
  m.setAttr(op, std::move(attr));
  return true;
}

llvm::Error Parser::readMesh(const std::string& name) {
  hlo::Mesh parsed;
  parsed.name = name;
  if (!mesh(parsed) || c.failed()) return c.takeError();
  m.meshes.push_back(std::move(parsed));
  return llvm::Error::success();
}

llvm::Error Parser::readShardings(Ints& ids) {
  for (size_t i = 0; i < m.meshes.size(); ++i) meshes_[m.meshes[i].name] = MeshId(static_cast<uint32_t>(i));
  if (c.accept("#sdy.sharding_per_value")) {
    if (!c.expect('<') || !shardingList(ids) || !c.expect('>')) return c.takeError();
    return llvm::Error::success();
  }
  ShardingId id;
  if (!sharding(id) || c.failed()) return c.takeError();
  ids.push_back(id.v);
  return llvm::Error::success();
}

}  // namespace tpu::frontend
