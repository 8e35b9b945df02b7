// Reads tile assignments: iota forms keep their structure, lists are recognised by their strides.
#include "tpu/sharding/gspmd.h"

#include <algorithm>
#include <set>

#include "tpu/sharding/device_list.h"
#include "llvm/ADT/StringExtras.h"
#include "tpu/sharding/text.h"
#include "tpu/support/diagnostics.h"
#include "tpu/support/nearest.h"

namespace tpu::sharding {

bool axesOfStride(const Mesh& mesh, int64_t stride, int64_t count, Axes& axes) {
  axes.clear();
  int64_t below = 1;  // devices per step of the axis looked at
  for (size_t a = mesh.axes.size(); a-- > 0 && count > 1;) {
    int64_t n = mesh.axes[a].size;
    if (stride >= below && stride < below * n) {
      int64_t inner = stride / below;
      if (stride % below != 0 || n % inner != 0) return false;
      int64_t take = std::min(count, n / inner);
      if ((n / inner) % take != 0 || count % take != 0) return false;
      axes.insert(axes.begin(), AxisRef{static_cast<uint32_t>(a), n / (inner * take), take});
      count /= take;
      stride *= take;
    }
    below *= n;
  }
  return count == 1;
}

namespace {

/// An explicit list of devices as (stride, count) steps, minor to major.
bool stepsOfList(llvm::ArrayRef<int64_t> ids, llvm::SmallVectorImpl<std::pair<int64_t, int64_t>>& steps) {
  if (ids.empty() || ids[0] != 0) return false;
  for (size_t block = 1; block < ids.size();) {
    int64_t step = ids[block];
    size_t n = 1;
    while (n * block < ids.size() && ids[n * block] == step * static_cast<int64_t>(n)) ++n;
    while (n > 1 && ids.size() % (n * block) != 0) --n;
    if (n == 1 || step <= 0) return false;
    steps.push_back({step, static_cast<int64_t>(n)});
    block *= n;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    int64_t want = 0;
    size_t rest = i;
    for (auto [step, n] : steps) {
      want += static_cast<int64_t>(rest % n) * step;
      rest /= n;
    }
    if (ids[i] != want) return false;
  }
  return true;
}

using Steps = llvm::SmallVector<std::pair<int64_t, int64_t>, 4>;

/// What stands between the braces, taken apart: tiles, devices, subgroups, group.
struct Text {
  Ints tiles;
  DeviceList list;
  llvm::SmallVector<llvm::StringRef, 2> subgroups;
  int64_t devices = 0;  // 0: names no tiles
};

/// Empty where understood, otherwise why not.
std::string readTiles(llvm::StringRef& s, Text& out) {
  if (!readInts(s, '[', ']', out.tiles)) return "expected tile counts in brackets";
  out.devices = productOf(out.tiles);
  if (out.devices < 1) return "expected positive tile counts";
  s = s.ltrim();
  const std::string why = s.consume_front("<=") ? readIota(s, out.devices, out.list) : readIds(s, out.devices, out.list);
  if (!why.empty()) return why;
  s = s.ltrim(" ,");
  if (s.consume_front("last_tile_dim_replicate")) {
    out.subgroups.push_back("replicated");
  } else if (s.consume_front("last_tile_dims=")) {
    if (!s.consume_front("{") || !s.contains('}')) return "expected subgroup types in braces";
    s.take_until([](char c) { return c == '}'; }).split(out.subgroups, ',', -1, false);
    s = s.drop_until([](char c) { return c == '}'; }).drop_front();
    for (llvm::StringRef& t : out.subgroups) {
      t = t.trim();
      if (t != "manual" && t != "replicated" && t != "unreduced") return "this type of subgroup is not known";
    }
  }
  if (out.subgroups.size() > out.tiles.size()) return "more subgroups than tile counts";
  return "";
}

/// The tiles once for each part of a larger mesh; empty where they do not say it.
std::string repeatedTiles(const Text& t, int64_t devices) {
  if (devices % t.devices != 0 || !t.subgroups.empty() || t.list.iota.size() != 1) return "";
  return "; write {devices=[" + commaList(t.tiles) + "," + std::to_string(devices / t.devices) + "]<=[" + std::to_string(devices) +
         "] last_tile_dim_replicate} to repeat them";
}

/// Steps minor to major over positions of the mesh. The order inside of a last group that replicates means nothing.
bool stepsOf(const Mesh& mesh, const Text& t, Steps& steps) {
  if (const auto& [iota, perm, ids] = t.list; !iota.empty() && mesh.device_ids.empty()) {
    for (size_t k = perm.size(); k-- > 0;) {
      int64_t stride = 1;
      for (size_t i = perm[k] + 1; i < iota.size(); ++i) stride *= iota[i];
      steps.push_back({stride, iota[perm[k]]});
    }
    return true;
  }
  Ints at = devicesOf(t.list);
  if (!mesh.device_ids.empty()) {
    std::vector<int64_t> position(at.size(), 0);
    for (size_t i = 0; i < mesh.device_ids.size(); ++i) position[mesh.device_ids[i]] = static_cast<int64_t>(i);
    for (int64_t& v : at) v = position[v];
  }
  if (at.size() == 1 || stepsOfList(at, steps)) return true;
  if (t.subgroups.empty() || t.subgroups.back() != "replicated") return false;
  for (size_t i = 0, n = static_cast<size_t>(t.tiles.back()); i < at.size(); i += n) std::sort(at.begin() + i, at.begin() + i + n);
  steps.clear();
  return stepsOfList(at, steps);
}

/// The mesh of a named sharding.
std::optional<Mesh> namedMesh(llvm::StringRef text) {
  const size_t at = text.find("{mesh[");
  if (at == llvm::StringRef::npos) return std::nullopt;
  text = text.drop_front(at + 1);
  auto mesh = parseNamedMesh(text, "");
  if (mesh) return std::move(*mesh);
  llvm::consumeError(mesh.takeError());
  return std::nullopt;
}

llvm::Expected<Gspmd> named(const Mesh& mesh, llvm::StringRef text, llvm::StringRef where) {
  auto n = parseNamedSharding(text, where);
  if (!n) return n.takeError();
  auto refuse = [&](const llvm::Twine& why) { return fail(Code::kGspmdSharding, where, "mhlo.sharding \"{" + text + "}\": " + why); };
  Gspmd out;
  if (n->mesh.axes.empty()) return out;
  if (n->mesh.numDevices() != mesh.numDevices())
    return refuse(llvm::Twine(n->mesh.numDevices()) + " devices, the mesh has " + llvm::Twine(mesh.numDevices()));
  bool each = translateAxes(n->mesh, n->manual, mesh, out.manual) && translateAxes(n->mesh, n->sharding.unreduced, mesh, out.unreduced);
  for (const hlo::DimSharding& d : n->sharding.dims) {
    if (d.open) out.open.push_back(static_cast<int64_t>(out.dims.size()));
    each = each && translateAxes(n->mesh, d.axes, mesh, out.dims.emplace_back());
  }
  if (!each) return refuse("no axes of mesh " + printMesh(mesh) + " cut the devices so");
  if (product(out.manual) == mesh.numDevices() && mesh.numDevices() > 1) {
    out.kind = GspmdKind::kManual;
    out.manual.clear();
    out.dims.clear();
  } else if (!out.dims.empty() || !out.manual.empty() || !out.unreduced.empty()) {
    out.kind = GspmdKind::kTiled;
  }
  return out;
}

}  // namespace

int64_t gspmdDevices(llvm::StringRef text) {
  if (std::optional<Mesh> mesh = namedMesh(text)) return mesh->numDevices();
  size_t at = text.find("devices=");
  if (at == llvm::StringRef::npos) return 0;
  text = text.drop_front(at + 8);
  Ints tiles;
  if (!readInts(text, '[', ']', tiles)) return 0;
  int64_t n = 1;
  for (int64_t t : tiles) n *= t;
  return n;
}

std::string gspmdRankText(llvm::StringRef text, size_t rank, size_t dims) {
  const std::string out = "mhlo.sharding \"" + text.str() + "\" has " + std::to_string(dims) + " dimensions, the tensor " + std::to_string(rank);
  llvm::StringRef head = text.take_until([](char c) { return c == '['; }), rest = text.drop_front(head.size());
  Ints tiles;
  if (!head.ends_with("devices=") || !readInts(rest, '[', ']', tiles) || tiles.size() < dims) return out;
  for (; dims > rank; --dims) {
    if (tiles[dims - 1] != 1) return out;
    tiles.erase(tiles.begin() + dims - 1);
  }
  tiles.insert(tiles.begin() + dims, rank - dims, 1);
  return out + "; write " + (head + "[" + commaList(tiles) + "]" + rest).str();
}

llvm::SmallVector<llvm::StringRef, 4> splitTuple(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef, 4> out;
  text = text.trim();
  if (!text.starts_with("{{")) return {text};
  text = text.drop_front().drop_back();
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && depth++ == 0) begin = i;
    if (text[i] == '}' && --depth == 0) out.push_back(text.slice(begin, i + 1));
  }
  return out;
}

llvm::Expected<Gspmd> parseGspmd(const Mesh& mesh, llvm::StringRef text, llvm::StringRef where) {
  auto refuse = [&](const llvm::Twine& why) {
    return fail(Code::kGspmdSharding, where, "mhlo.sharding \"" + text + "\": " + why);
  };
  Gspmd out;
  llvm::StringRef s = text.trim();
  if (!s.consume_front("{") || !s.consume_back("}")) return refuse("expected braces");
  s = s.trim();
  if (s.starts_with("mesh[")) return named(mesh, s, where);
  Text tiles;
  if (s.consume_front("replicated")) {
  } else if (s.consume_front("manual")) {
    out.kind = GspmdKind::kManual;
  } else if (s.consume_front("unknown")) {
    out.kind = GspmdKind::kUnknown;
  } else if (s.consume_front("single_device[device_id=") || s.consume_front("maximal_mesh[device_id=")) {
    out.kind = GspmdKind::kMaximal;
    if (s.consumeInteger(10, out.device) || out.device < 0 || !s.consume_front("]")) return refuse("expected the number of a device");
  } else if (s.consume_front("maximal")) {
    out.kind = GspmdKind::kMaximal;
    s = s.ltrim();
    s.consume_front("device=");
    if (s.consumeInteger(10, out.device) || out.device < 0) return refuse("expected the number of a device");
  } else if (s.consume_front("devices=")) {
    out.kind = GspmdKind::kTiled;
    if (std::string why = readTiles(s, tiles); !why.empty()) return refuse(why);
    if (tiles.devices != mesh.numDevices())
      return refuse(llvm::Twine(tiles.devices) + " devices, the mesh has " + llvm::Twine(mesh.numDevices()) +
                    repeatedTiles(tiles, mesh.numDevices()));
  } else {
    const llvm::StringRef word = s.take_while([](char c) { return llvm::isAlpha(c) || c == '_'; });
    return refuse("this form is not known" + suggestName(word, {"replicated", "manual", "maximal", "devices", "unknown"}));
  }
  if (out.kind == GspmdKind::kMaximal && out.device >= mesh.numDevices())
    return refuse("device " + llvm::Twine(out.device) + " is none of " + llvm::Twine(mesh.numDevices()) + " devices");
  s = s.ltrim(" ,");
  if (s.consume_front("shard_as") || s.starts_with("shard_like")) {
    out.like = s.consume_front("shard_like");
    s = s.ltrim();
    if (s.consumeInteger(10, out.group) || out.group < 0) return refuse("expected the number of a group");
    s = s.ltrim(" ,");
  }
  if (s.starts_with("metadata=")) s = "";
  if (!s.trim().empty()) return refuse("'" + s.trim() + "' is not converted");
  if (out.kind != GspmdKind::kTiled) return out;

  Steps steps;
  if (!stepsOf(mesh, tiles, steps)) return refuse("this device list is no iota of any shape over the program's order of devices");
  Axes order;  // all axes, major to minor, in the order in which tiles are counted
  for (size_t k = steps.size(); k-- > 0;) {
    Axes part;
    if (!axesOfStride(mesh, steps[k].first, steps[k].second, part)) return refuse("the tiles cut the mesh axes unevenly");
    append(order, part);
  }
  size_t dims = tiles.tiles.size() - tiles.subgroups.size();
  for (size_t i = 0; i < tiles.tiles.size(); ++i) {
    Axes taken, rest;
    if (!takeProduct(order, tiles.tiles[i], taken, rest)) return refuse("the tiles cut the mesh axes unevenly");
    order = rest;
    if (i < dims) {
      out.dims.push_back(taken);
    } else if (tiles.subgroups[i - dims] == "manual") {
      append(out.manual, taken);
    } else if (tiles.subgroups[i - dims] == "unreduced") {
      append(out.unreduced, taken);
    }
  }
  bool whole = llvm::all_of(out.dims, [](const Axes& d) { return d.empty(); });
  if (whole && out.manual.empty() && out.unreduced.empty()) {  // only ever cut into one
    out.kind = GspmdKind::kReplicated;
    out.dims.clear();
  }
  return out;
}

namespace {

/// The devices as the first list that is no iota over `mesh` orders them.
std::vector<int64_t> deviceOrderOf(const Mesh& mesh, llvm::ArrayRef<llvm::StringRef> texts) {
  for (llvm::StringRef text : texts) {
    llvm::StringRef s = text.drop_front(std::min(text.size(), text.find("devices=")));
    Text t;
    Steps steps;
    if (!s.consume_front("devices=") || !readTiles(s, t).empty() || t.devices != mesh.numDevices() || stepsOf(mesh, t, steps)) continue;
    return {t.list.ids.begin(), t.list.ids.end()};
  }
  return {};
}

/// Where the texts cut a mesh of one axis, from the major side; texts that do not cut it are passed over.
std::set<int64_t> cutsOf(const Mesh& mesh, llvm::ArrayRef<llvm::StringRef> texts) {
  std::set<int64_t> cuts{1, mesh.numDevices()};
  for (llvm::StringRef text : texts) {
    auto g = parseGspmd(mesh, text, "");
    if (!g) {
      llvm::consumeError(g.takeError());
      continue;
    }
    llvm::SmallVector<Axes, 6> lists(g->dims.begin(), g->dims.end());
    lists.push_back(g->manual);
    lists.push_back(g->unreduced);
    for (const Axes& list : lists) {
      for (const AxisRef& a : list) cuts.insert({a.pre, a.pre * a.size});
    }
  }
  return cuts;
}

}  // namespace

Mesh meshOfGspmd(llvm::ArrayRef<llvm::StringRef> texts) {
  std::set<std::string> seen;
  llvm::SmallVector<llvm::StringRef, 8> distinct;
  Mesh mesh;
  mesh.name = "mesh";
  mesh.axes.push_back({"device", 1});
  for (llvm::StringRef text : texts) {
    for (llvm::StringRef one : splitTuple(text)) {
      if (!seen.insert(one.str()).second) continue;
      distinct.push_back(one);
      mesh.axes[0].size = std::max(mesh.axes[0].size, gspmdDevices(one));
    }
  }
  std::optional<Mesh> own;  // that of the first named sharding
  for (llvm::StringRef text : distinct) {
    if (own) break;
    if (std::optional<Mesh> m = namedMesh(text); m && m->numDevices() == mesh.axes[0].size) own = std::move(m);
  }
  mesh.device_ids = own ? own->device_ids : deviceOrderOf(mesh, distinct);
  std::set<int64_t> cuts = cutsOf(mesh, distinct);
  if (own) {  // its names, where none cuts otherwise
    std::set<int64_t> own_cuts{1};
    int64_t at = 1;
    for (const hlo::MeshAxis& a : own->axes) own_cuts.insert(at *= a.size);
    if (std::includes(own_cuts.begin(), own_cuts.end(), cuts.begin(), cuts.end())) return *own;
    cuts.merge(own_cuts);
  }
  std::vector<hlo::MeshAxis> axes;
  int64_t last = 1;
  for (int64_t cut : cuts) {
    if (cut == last) continue;
    if (cut % last != 0) return mesh;
    axes.push_back({"d" + std::to_string(axes.size()), cut / last});
    last = cut;
  }
  if (axes.size() > 1) mesh.axes.assign(axes.begin(), axes.end());
  return mesh;
}

namespace {

/// "<=[4,2]T(1,0)": lists of atoms as they follow each other, against the order of the mesh.
std::string iotaOf(const Axes& tiled) {
  Axes order = tiled;
  std::sort(order.begin(), order.end(), [](const AxisRef& a, const AxisRef& b) {
    return a.axis != b.axis ? a.axis < b.axis : a.pre < b.pre;
  });
  llvm::SmallVector<std::pair<int64_t, int64_t>, 6> runs;  // first atom and size of what stays together
  int64_t last = -2;
  for (const AxisRef& a : tiled) {
    int64_t at = std::find(order.begin(), order.end(), a) - order.begin();
    if (at == last + 1) {
      runs.back().second *= a.size;
    } else {
      runs.push_back({at, a.size});
    }
    last = at;
  }
  auto sorted = runs;
  std::sort(sorted.begin(), sorted.end());
  Ints shape, perm;
  for (const auto& r : sorted) shape.push_back(r.second);
  for (const auto& r : runs) perm.push_back(std::find(sorted.begin(), sorted.end(), r) - sorted.begin());
  if (shape.empty()) shape.push_back(1);
  return "<=[" + commaList(shape) + "]" + (runs.size() > 1 ? "T(" + commaList(perm) + ")" : "");
}

/// The devices in the order of tiles, by the mesh's own order.
std::string listOf(const Mesh& mesh, const Axes& tiled) {
  Ints ids;
  for (int64_t i = 0; i < mesh.numDevices(); ++i) {
    int64_t rest = i, position = 0;
    for (size_t k = tiled.size(); k-- > 0;) {
      position += rest % tiled[k].size * stride(mesh, tiled[k]);
      rest /= tiled[k].size;
    }
    ids.push_back(mesh.device_ids[position]);
  }
  return commaList(ids);
}

std::string tilesText(const Mesh& mesh, const Gspmd& g) {
  llvm::SmallVector<Axes, 6> lists(g.dims.begin(), g.dims.end());
  Axes used;
  std::string subgroups;
  auto subgroup = [&](const Axes& axes, const char* name) {
    if (axes.empty()) return;
    lists.push_back(axes);
    subgroups += (subgroups.empty() ? "" : ", ") + std::string(name);
  };
  subgroup(g.manual, "manual");
  subgroup(g.unreduced, "unreduced");
  for (const Axes& d : lists) used.append(d.begin(), d.end());
  bool plain = subgroups.empty();
  subgroup(unused(mesh, used), "replicated");
  if (used.empty()) return "replicated";
  Ints tiles;
  for (const Axes& d : lists) tiles.push_back(product(d));
  splitToAtoms(lists);
  Axes tiled;
  for (const Axes& d : lists) {
    for (const AxisRef& a : d) {
      if (a.size > 1) tiled.push_back(a);
    }
  }
  std::string out = "devices=[" + commaList(tiles) + "]" + (mesh.device_ids.empty() ? iotaOf(tiled) : listOf(mesh, tiled));
  if (subgroups.empty()) return out;
  return out + (plain ? " last_tile_dim_replicate" : " last_tile_dims={" + subgroups + "}");
}

}  // namespace

std::string printGspmd(const Mesh& mesh, const Gspmd& g) {
  std::string out = "{";
  switch (g.kind) {
    case GspmdKind::kReplicated:
      out += "replicated";
      break;
    case GspmdKind::kTiled:
      out += tilesText(mesh, g);
      break;
    case GspmdKind::kManual:
      out += "manual";
      break;
    case GspmdKind::kMaximal:
      out += "maximal device=" + std::to_string(g.device);
      break;
    case GspmdKind::kUnknown:
      out += "unknown";
      break;
  }
  if (g.group >= 0) out += (g.like ? " shard_like " : " shard_as ") + std::to_string(g.group);
  return out + "}";
}

}  // namespace tpu::sharding
