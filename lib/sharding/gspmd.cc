// Reads tile assignments: iota forms keep their structure, lists are recognised by their strides.
#include "tpu/sharding/gspmd.h"

#include <algorithm>

#include "tpu/support/diagnostics.h"

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

using Ints = llvm::SmallVector<int64_t, 8>;

bool readInts(llvm::StringRef& text, char open, char close, Ints& out) {
  text = text.ltrim();
  if (!text.consume_front(llvm::StringRef(&open, 1))) return false;
  while (!text.consume_front(llvm::StringRef(&close, 1))) {
    int64_t v;
    text = text.ltrim(" ,");
    if (text.consumeInteger(10, v)) return false;
    out.push_back(v);
    text = text.ltrim();
  }
  return true;
}

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

}  // namespace

int64_t gspmdDevices(llvm::StringRef text) {
  size_t at = text.find("devices=");
  if (at == llvm::StringRef::npos) return 0;
  text = text.drop_front(at + 8);
  Ints tiles;
  if (!readInts(text, '[', ']', tiles)) return 0;
  int64_t n = 1;
  for (int64_t t : tiles) n *= t;
  return n;
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
  if (s == "replicated") return out;
  if (s == "manual") {
    out.kind = GspmdKind::kManual;
    return out;
  }
  if (s == "unknown") {
    out.kind = GspmdKind::kUnknown;
    return out;
  }
  if (s.starts_with("maximal")) {
    out.kind = GspmdKind::kMaximal;
    return out;
  }
  if (!s.consume_front("devices=")) return refuse("this form is not known");
  Ints tiles;
  if (!readInts(s, '[', ']', tiles)) return refuse("expected tile counts in brackets");
  int64_t total = 1;
  for (int64_t t : tiles) total *= t;
  if (total != mesh.numDevices())
    return refuse("the mesh has " + llvm::Twine(mesh.numDevices()) + " devices");

  Axes order;  // all axes, major to minor, in the order in which tiles are counted
  if (s.consume_front("<=")) {
    Ints shape, perm;
    if (!readInts(s, '[', ']', shape)) return refuse("expected an iota shape");
    if (s.consume_front("T") && !readInts(s, '(', ')', perm)) return refuse("expected a permutation");
    if (perm.empty()) {
      for (size_t i = 0; i < shape.size(); ++i) perm.push_back(static_cast<int64_t>(i));
    }
    for (int64_t p : perm) {
      if (p < 0 || p >= static_cast<int64_t>(shape.size()))
        return refuse("the permutation does not suit the iota shape");
      int64_t stride = 1;
      for (size_t i = p + 1; i < shape.size(); ++i) stride *= shape[i];
      Axes part;
      if (!axesOfStride(mesh, stride, shape[p], part)) return refuse("the tiles cut the mesh axes unevenly");
      append(order, part);
    }
  } else {
    Ints ids;
    while (!s.ltrim(" ,").empty()) {
      int64_t v;
      s = s.ltrim(" ,");
      if (s.consumeInteger(10, v)) break;
      ids.push_back(v);
    }
    llvm::SmallVector<std::pair<int64_t, int64_t>, 4> steps;
    if (static_cast<int64_t>(ids.size()) != total || (total > 1 && !stepsOfList(ids, steps))) {
      return refuse("this device list is no iota of any shape");
    }
    for (size_t k = steps.size(); k-- > 0;) {
      Axes part;
      if (!axesOfStride(mesh, steps[k].first, steps[k].second, part))
        return refuse("the tiles cut the mesh axes unevenly");
      append(order, part);
    }
  }
  // Trailing tile dims that are not tensor dims.
  size_t subgroup = 0;
  bool manual_group = false;
  s = s.trim();
  if (s.consume_front("last_tile_dim_replicate")) {
    subgroup = 1;
  } else if (s.consume_front("last_tile_dims=")) {
    if (!s.consume_front("{") || !s.contains('}')) return refuse("expected subgroup types in braces");
    llvm::SmallVector<llvm::StringRef, 2> types;
    s.take_until([](char c) { return c == '}'; }).split(types, ',');
    subgroup = types.size();
    for (llvm::StringRef t : types) manual_group |= t.trim() == "manual";
    if (manual_group && types.size() > 1) return refuse("mixed subgroups are not converted");
    s = s.drop_until([](char c) { return c == '}'; }).drop_front();
  }
  if (!s.trim().empty()) return refuse("'" + s.trim() + "' is not converted");
  out.kind = GspmdKind::kTiled;
  for (size_t i = 0; i < tiles.size(); ++i) {
    Axes taken, rest;
    if (!takeProduct(order, tiles[i], taken, rest)) return refuse("the tiles cut the mesh axes unevenly");
    order = rest;
    if (i + subgroup < tiles.size()) {
      out.dims.push_back(taken);
    } else if (manual_group) {
      append(out.manual, taken);
    }
  }
  return out;
}

std::string printGspmd(const Mesh& mesh, llvm::ArrayRef<Axes> dims) {
  llvm::SmallVector<Axes, 6> lists(dims.begin(), dims.end());
  Axes used;
  for (const Axes& d : dims) used.append(d.begin(), d.end());
  if (used.empty()) return "{replicated}";
  lists.push_back(unused(mesh, used));
  llvm::SmallVector<int64_t, 6> tiles;
  for (const Axes& d : lists) tiles.push_back(product(d));
  splitToAtoms(lists);
  // Atoms in the order of tiles, and their places in the order of the mesh.
  Axes tiled, order;
  for (const Axes& d : lists) tiled.append(d.begin(), d.end());
  order = tiled;
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
  auto list = [](auto&& values, auto&& text) {
    std::string out;
    for (const auto& v : values) out += (out.empty() ? "" : ",") + text(v);
    return out;
  };
  bool replicated = tiles.back() > 1;
  if (!replicated) tiles.pop_back();
  std::string out = "{devices=[" + list(tiles, [](int64_t t) { return std::to_string(t); }) + "]<=[" +
                    list(sorted, [](const auto& r) { return std::to_string(r.second); }) + "]";
  if (runs.size() > 1) {
    out += "T(" + list(runs, [&](const auto& r) {
      return std::to_string(std::find(sorted.begin(), sorted.end(), r) - sorted.begin());
    }) + ")";
  }
  return out + (replicated ? " last_tile_dim_replicate}" : "}");
}

}  // namespace tpu::sharding
