// Who takes part in a collective, as the driver sees it: rank, peers and ring neighbours of each device, by columns of the
// device table, the only part of a program that differs between devices.
#include <algorithm>

#include "lowering.h"
#include "tpu/hlo/analysis.h"

namespace tpu::lower {

using hlo::AttrKey;

namespace {

// Position of a device along the axes of a group attribute: value of each axis, major to minor.
int64_t axisStride(const hlo::Mesh& mesh, const hlo::AxisRef& a) {
  int64_t stride = 1;
  for (size_t k = a.axis + 1; k < mesh.axes.size(); ++k) stride *= mesh.axes[k].size;
  return stride * (mesh.axes[a.axis].size / (a.pre * a.size));
}

}  // namespace

std::vector<std::vector<int64_t>> Lowering::groupsOf(hlo::OpId id) const {
  std::vector<std::vector<int64_t>> groups;
  if (const hlo::Attr* a = m_.findAttr(id, AttrKey::axes)) {
    const hlo::Mesh& mesh = m_.meshes[a->mesh.v];
    std::vector<int64_t> offsets = {0};
    for (const hlo::AxisRef& r : a->axes) {
      std::vector<int64_t> next;
      for (int64_t base : offsets)
        for (int64_t i = 0; i < r.size; ++i) next.push_back(base + i * axisStride(mesh, r));
      offsets = std::move(next);
    }
    std::vector<bool> seen(static_cast<size_t>(out_.devices), false);
    for (int64_t d = 0; d < out_.devices; ++d) {
      if (seen[d]) continue;
      // d is the smallest device of its group: all its positions along the axes are 0.
      std::vector<int64_t> group;
      for (int64_t o : offsets) group.push_back(d + o);
      for (int64_t g : group) seen[g] = true;
      groups.push_back(std::move(group));
    }
    return groups;
  }
  const hlo::Attr* g = m_.findAttr(id, AttrKey::replica_groups);
  if (!g || g->groups.ids.empty()) {
    groups.emplace_back();
    for (int64_t d = 0; d < out_.devices; ++d) groups[0].push_back(d);
    return groups;
  }
  for (int64_t r = 0; r < g->groups.rows; ++r) {
    std::vector<int64_t> group;
    for (int64_t c = 0; c < g->groups.cols; ++c)
      if (int64_t d = g->groups.ids[r * g->groups.cols + c]; d >= 0) group.push_back(d);
    groups.push_back(std::move(group));
  }
  return groups;
}

int Lowering::deviceWord(const std::vector<uint32_t>& per_device) {
  // A column that exists already is shared.
  int64_t words = out_.device_table_words;
  for (int64_t w = 0; w < words; ++w) {
    bool same = true;
    for (int64_t d = 0; d < out_.devices && same; ++d) same = out_.device_table[d * words + w] == per_device[d];
    if (same) return static_cast<int>(w);
  }
  std::vector<uint32_t> table;
  for (int64_t d = 0; d < out_.devices; ++d) {
    table.insert(table.end(), out_.device_table.begin() + d * words, out_.device_table.begin() + (d + 1) * words);
    table.push_back(per_device[d]);
  }
  out_.device_table = std::move(table);
  return static_cast<int>(out_.device_table_words++);
}

llvm::Expected<GroupTable*> Lowering::groupTable(hlo::OpId id) {
  std::vector<std::vector<int64_t>> groups = groupsOf(id);
  std::string key;
  for (const auto& g : groups) {
    for (int64_t d : g) key += std::to_string(d) + ",";
    key += ";";
  }
  if (auto it = groups_.find(key); it != groups_.end()) return &it->second;
  GroupTable t;
  t.size = static_cast<int64_t>(groups[0].size());
  std::vector<uint32_t> rank(out_.devices, 0), ring_rank(out_.devices, 0), next(out_.devices, 0), prev(out_.devices, 0);
  std::vector<std::vector<uint32_t>> peers(t.size, rank), peer_rank(t.size, rank);
  std::vector<bool> seen(out_.devices, false);
  for (const auto& g : groups) {
    if (static_cast<int64_t>(g.size()) != t.size) return refuse(id, "groups of different sizes");
    std::vector<int64_t> ring = ringOrder(g);
    for (int64_t i = 0; i < t.size; ++i) {
      if (g[i] < 0 || g[i] >= out_.devices || seen[g[i]]) return refuse(id, "its groups do not partition the devices");
      seen[g[i]] = true;
      rank[g[i]] = static_cast<uint32_t>(i);
      for (int64_t j = 1; j < t.size; ++j) {
        peers[j][g[i]] = static_cast<uint32_t>(g[(i + j) % t.size]);
        peer_rank[j][g[i]] = static_cast<uint32_t>((i + j) % t.size);
      }
      ring_rank[ring[i]] = static_cast<uint32_t>(i);
      next[ring[i]] = static_cast<uint32_t>(ring[(i + 1) % t.size]);
      prev[ring[i]] = static_cast<uint32_t>(ring[(i + t.size - 1) % t.size]);
    }
  }
  t.rank_word = deviceWord(rank);
  for (int64_t j = 1; j < t.size; ++j) {
    t.peer_words.push_back(deviceWord(peers[j]));
    t.peer_ranks.push_back(deviceWord(peer_rank[j]));
  }
  t.ring_rank_word = deviceWord(ring_rank);
  t.ring_next_word = deviceWord(next);
  t.ring_prev_word = deviceWord(prev);
  for (int* sem : {&t.ready_sem, &t.recv_sem, &t.send_sem}) *sem = out_.num_sems++;
  return &groups_.emplace(std::move(key), std::move(t)).first->second;
}

// An order of the group in which neighbours are one link apart: a cycle through a rectangle of chips where one side is even, a
// line folded back on itself otherwise.
std::vector<int64_t> Lowering::ringOrder(const std::vector<int64_t>& group) const {
  int64_t n = static_cast<int64_t>(group.size());
  std::vector<std::vector<int64_t>> at;
  for (int64_t d : group) {
    int64_t device = out_.device_order.empty() ? d : out_.device_order[d];
    int64_t chip = device / target_.chip.devicesPerChip();
    std::vector<int64_t> c(target_.box.size());
    for (size_t k = c.size(); k-- > 0;) {
      c[k] = chip % target_.box[k];
      chip /= target_.box[k];
    }
    at.push_back(std::move(c));
  }
  std::vector<size_t> varying;
  std::vector<std::vector<int64_t>> values;
  for (size_t k = 0; k < target_.box.size(); ++k) {
    std::vector<int64_t> v;
    for (const auto& c : at) v.push_back(c[k]);
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
    if (v.size() > 1) {
      varying.push_back(k);
      values.push_back(std::move(v));
    }
  }
  auto member = [&](int64_t a, int64_t b) -> int64_t {
    for (int64_t i = 0; i < n; ++i)
      if (at[i][varying[0]] == values[0][a] && at[i][varying[1]] == values[1][b]) return group[i];
    return -1;
  };
  if (varying.size() == 2 && static_cast<int64_t>(values[0].size() * values[1].size()) == n) {
    bool swap = values[0].size() % 2 != 0;
    if (swap) {
      std::swap(varying[0], varying[1]);
      std::swap(values[0], values[1]);
    }
    int64_t rows = static_cast<int64_t>(values[0].size()), cols = static_cast<int64_t>(values[1].size());
    if (rows % 2 == 0) {
      std::vector<int64_t> ring;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 1; k < cols; ++k) ring.push_back(member(r, r % 2 == 0 ? k : cols - k));
      for (int64_t r = rows; r-- > 0;) ring.push_back(member(r, 0));
      if (!llvm::is_contained(ring, -1)) return ring;
    }
  }
  if (varying.size() == 1 && !target_.wrap[varying[0]] && n > 2) {
    std::vector<int64_t> sorted(group), ring;
    std::vector<size_t> order(group.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return at[a][varying[0]] < at[b][varying[0]]; });
    for (size_t i = 0; i < order.size(); i += 2) ring.push_back(group[order[i]]);
    for (size_t i = order.size() - (order.size() % 2 ? 2 : 1); i < order.size(); i -= 2) ring.push_back(group[order[i]]);
    return ring;
  }
  return group;
}

}  // namespace tpu::lower
