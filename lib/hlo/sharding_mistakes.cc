// The texts, and the search for what is near.
#include "tpu/hlo/sharding_mistakes.h"

#include <algorithm>

#include "tpu/hlo/infer.h"
#include "tpu/support/nearest.h"

namespace tpu::hlo {

namespace {

std::string spelled(const Mesh& mesh, const AxisRef& a) {
  std::string out = "\"" + mesh.axes[a.axis].name + "\"";
  if (a.size != mesh.axes[a.axis].size) out += ":(" + std::to_string(a.pre) + ")" + std::to_string(a.size);
  return out;
}

/// The largest divisor of n up to `most`, at least 1.
int64_t divisorUpTo(int64_t n, int64_t most) {
  int64_t d = std::clamp<int64_t>(most, 1, n);
  while (n % d != 0) --d;
  return d;
}

}  // namespace

std::string unknownAxisText(const Mesh& mesh, llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef, 4> known;
  for (const MeshAxis& a : mesh.axes) known.push_back(a.name);
  return "mesh '" + mesh.name + "' has no axis '" + name.str() + "'" + suggestName(name, known);
}

bool subAxisDivides(const Mesh& mesh, const AxisRef& ref) {
  int64_t full = mesh.axes[ref.axis].size;
  return ref.pre >= 1 && ref.size >= 1 && ref.pre <= full && full % ref.pre == 0 && (full / ref.pre) % ref.size == 0;
}

std::string badSubAxisText(const Mesh& mesh, const AxisRef& ref) {
  const MeshAxis& axis = mesh.axes[ref.axis];
  AxisRef near = ref;
  near.pre = divisorUpTo(axis.size, ref.pre);
  near.size = divisorUpTo(axis.size / near.pre, ref.size);
  std::string out = "sub-axis \"" + axis.name + "\":(" + std::to_string(ref.pre) + ")" + std::to_string(ref.size) +
                    " does not divide axis '" + axis.name + "' of size " + std::to_string(axis.size);
  return near.size > 1 ? out + "; " + spelled(mesh, near) + " does" : out;
}

std::string axisTwiceText(const Mesh& mesh, const AxisRef& ref, llvm::ArrayRef<AxisRef> used) {
  std::string out = "sharding uses axis '" + mesh.axes[ref.axis].name + "' twice", free;
  for (uint32_t a = 0; a < mesh.axes.size(); ++a) {
    // What lies behind the parts in use, major to minor.
    llvm::SmallVector<AxisRef, 4> mine;
    for (const AxisRef& u : used) {
      if (u.axis == a) mine.push_back(u);
    }
    std::sort(mine.begin(), mine.end(), [](const AxisRef& x, const AxisRef& y) { return x.pre < y.pre; });
    int64_t at = 1;
    mine.push_back({a, mesh.axes[a].size, 1});
    for (const AxisRef& u : mine) {
      if (u.pre > at) free += (free.empty() ? "" : ", ") + spelled(mesh, {a, at, u.pre / at});
      at = std::max(at, u.pre * u.size);
    }
  }
  return free.empty() ? out + "; no axis is left" : out + "; still free are " + free;
}

std::string shardingRankText(const Module& module, const Sharding& s, const Type& type) {
  const Mesh& mesh = module.meshes[s.mesh.v];
  std::string write = "[";
  for (size_t d = 0; d < type.dims.size(); ++d) {
    write += d ? ", {" : "{";
    bool open = d < s.dims.size() && s.dims[d].open, first = true;
    for (const AxisRef& a : d < s.dims.size() ? llvm::ArrayRef<AxisRef>(s.dims[d].axes) : llvm::ArrayRef<AxisRef>()) {
      write += (first ? "" : ", ") + spelled(mesh, a);
      first = false;
    }
    write += open ? (first ? "?}" : ", ?}") : "}";
  }
  return "sharding of " + std::to_string(s.dims.size()) + " dimensions on " + typeText(module, type) + "; write " + write + "]";
}

std::string permutationText(llvm::ArrayRef<int64_t> ids) {
  const auto devices = static_cast<int64_t>(ids.size());
  std::vector<bool> seen(ids.size(), false);
  std::string wrong;
  for (int64_t d : ids) {
    if (d < 0 || d >= devices) {
      wrong = std::to_string(d) + " is none of " + std::to_string(devices) + " devices";
    } else if (seen[d]) {
      wrong = std::to_string(d) + " stands twice";
    } else {
      seen[d] = true;
    }
  }
  const auto missing = llvm::find(seen, false);
  return wrong.empty() || missing == seen.end() ? wrong : wrong + ", " + std::to_string(missing - seen.begin()) + " is missing";
}

std::string deviceIdsText(llvm::ArrayRef<int64_t> ids, int64_t devices) {
  if (static_cast<int64_t>(ids.size()) != devices)
    return std::to_string(ids.size()) + " device_ids for a mesh of " + std::to_string(devices) + " devices";
  const std::string wrong = permutationText(ids);
  return wrong.empty() ? "" : "device_ids are no permutation: " + wrong;
}

}  // namespace tpu::hlo
