// Dijkstra over layouts written as lists of atoms (pieces of mesh axes that no list of the problem cuts
// further).
#include "plan.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace tpu::partition {

using sharding::Axes;
using sharding::AxisRef;

llvm::StringRef moveName(MoveKind kind) {
  switch (kind) {
    case MoveKind::kSlice:
      return "slice";
    case MoveKind::kGather:
      return "all_gather";
    case MoveKind::kAllToAll:
      return "all_to_all";
    case MoveKind::kPermute:
      return "collective_permute";
    case MoveKind::kReduceScatter:
      return "reduce_scatter";
    case MoveKind::kAllReduce:
      return "all_reduce";
  }
  return "";
}

Layout layoutOf(const hlo::Module& m, hlo::ShardingId id, int64_t rank) {
  Layout l;
  l.dims.resize(rank);
  if (!id) return l;
  const hlo::Sharding& s = m.sharding(id);
  for (size_t d = 0; d < s.dims.size() && d < l.dims.size(); ++d) l.dims[d] = s.dims[d].axes;
  l.unreduced = s.unreduced;
  return l;
}

double elementsHeld(llvm::ArrayRef<int64_t> sizes, const Layout& layout) {
  double n = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    n *= static_cast<double>(sharding::shardSize(sizes[d], sharding::product(layout.dims[d])));
  return n;
}

hlo::ShardingId internLayout(hlo::Module& m, hlo::MeshId mesh, const Layout& layout) {
  hlo::Sharding s;
  s.mesh = mesh;
  s.dims.resize(layout.dims.size());
  bool any = !layout.unreduced.empty();
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    s.dims[d].axes = layout.dims[d];
    any |= !layout.dims[d].empty();
  }
  s.unreduced = layout.unreduced;
  return any ? m.internSharding(s) : hlo::ShardingId();
}

hlo::Dims localDims(llvm::ArrayRef<int64_t> dims, const Layout& layout) {
  hlo::Dims out(dims.begin(), dims.end());
  for (size_t d = 0; d < out.size() && d < layout.dims.size(); ++d) {
    out[d] = sharding::shardSize(out[d], sharding::product(layout.dims[d]));
  }
  return out;
}

namespace {

using Atoms = llvm::SmallVector<uint8_t, 4>;

/// A layout over atom numbers; the key of the search.
struct State {
  llvm::SmallVector<Atoms, 6> dims;
  Atoms unreduced;
  std::string key() const {
    std::string k;
    for (const Atoms& d : dims) {
      k.append(d.begin(), d.end());
      k += '\xff';
    }
    k.append(unreduced.begin(), unreduced.end());
    return k;
  }
};

constexpr double kPerSlice = 1;

class Search {
 public:
  /// `cut`: axes are also cut where others of their mesh would fit into them, so that a part of an axis may take the
  /// place of a smaller one.
  Search(const hlo::Mesh& mesh, llvm::ArrayRef<int64_t> sizes, int bits, const Layout& from, const Layout& to, bool cut)
      : mesh_(mesh), sizes_(sizes), bits_(bits) {
    llvm::SmallVector<Axes, 12> lists;
    for (const Axes& a : from.dims) lists.push_back(a);
    lists.push_back(from.unreduced);
    for (const Axes& a : to.dims) lists.push_back(a);
    lists.push_back(to.unreduced);
    sharding::splitToAtoms(lists);
    if (cut) {
      for (Axes& part : partsThatFit(lists)) lists.push_back(std::move(part));
      sharding::splitToAtoms(lists);
    }
    size_t at = 0, rank = sizes.size();
    auto read = [&](State& s) {
      for (size_t d = 0; d < rank; ++d) s.dims.push_back(number(lists[at++]));
      s.unreduced = number(lists[at++]);
    };
    read(from_);
    read(to_);
    limit_ = std::max(bytes(from_), bytes(to_));
  }

  /// The cheapest plan; of those that cost less than `bound` where that is given.
  Plan run(double bound = 0) {
    struct Item {
      double cost;
      int node;
    };
    auto later = [](const Item& a, const Item& b) {
      return a.cost != b.cost ? a.cost > b.cost : a.node > b.node;
    };
    std::priority_queue<Item, std::vector<Item>, decltype(later)> open(later);
    bound_ = bound;
    nodes_.push_back({from_, -1, {}, 0, false});
    seen_[from_.key()] = 0;
    open.push({0, 0});
    std::string goal = to_.key();
    int end = -1, expanded = 0;
    while (!open.empty()) {
      Item it = open.top();
      open.pop();
      if (nodes_[it.node].done) continue;
      nodes_[it.node].done = true;
      if (nodes_[it.node].state.key() == goal) {
        end = it.node;
        break;
      }
      if (++expanded > 4000) break;
      fresh_.clear();
      expand(it.node);
      for (int n : fresh_) open.push({nodes_[n].cost, n});
    }
    if (end >= 0) return collect(end);
    if (bound > 0) return {{}, 0, bound};
    return gatherAndSlice();
  }

 private:
  struct Node {
    State state;
    int parent;
    Move move;
    double cost;
    bool done;
  };

  /// Both ends of each axis, as long as the part that another axis of `lists` has in common with it.
  static llvm::SmallVector<Axes, 8> partsThatFit(llvm::ArrayRef<Axes> lists) {
    Axes all;
    for (const Axes& list : lists) {
      for (const AxisRef& a : list) {
        if (!llvm::is_contained(all, a)) all.push_back(a);
      }
    }
    llvm::SmallVector<Axes, 8> out;
    for (const AxisRef& a : all) {
      for (const AxisRef& b : all) {
        const int64_t part = std::gcd(a.size, b.size);
        if (part == 1 || part == a.size) continue;
        AxisRef major = a, minor = a;
        major.size = minor.size = part;
        minor.pre = a.pre * (a.size / part);
        out.push_back({major});
        out.push_back({minor});
      }
    }
    return out;
  }

  Atoms number(const Axes& list) {
    Atoms out;
    for (const AxisRef& a : list) {
      auto it = llvm::find(atoms_, a);
      out.push_back(static_cast<uint8_t>(it - atoms_.begin()));
      if (it == atoms_.end()) atoms_.push_back(a);
    }
    return out;
  }
  Axes axesOf(llvm::ArrayRef<uint8_t> list) const {
    Axes out;
    for (uint8_t a : list) sharding::append(out, atoms_[a]);
    return out;
  }
  int64_t product(llvm::ArrayRef<uint8_t> list) const {
    int64_t n = 1;
    for (uint8_t a : list) n *= atoms_[a].size;
    return n;
  }
  double bytes(const State& s) const {
    double n = bits_ / 8.0;
    for (size_t d = 0; d < sizes_.size(); ++d)
      n *= static_cast<double>(sharding::shardSize(sizes_[d], product(s.dims[d])));
    return n;
  }
  Layout layout(const State& s) const {
    Layout l;
    for (const Atoms& d : s.dims) l.dims.push_back(axesOf(d));
    l.unreduced = axesOf(s.unreduced);
    return l;
  }
  bool used(const State& s, uint8_t a) const {
    for (const Atoms& d : s.dims) {
      if (llvm::is_contained(d, a)) return true;
    }
    return llvm::is_contained(s.unreduced, a);
  }
  /// Shards of `fine` lie inside shards of `coarse`, a prefix of it, on every device.
  bool aligned(size_t d, llvm::ArrayRef<uint8_t> coarse, llvm::ArrayRef<uint8_t> fine) const {
    if (coarse.empty()) return true;
    int64_t c = product(coarse), f = product(fine);
    return sharding::shardSize(sizes_[d], c) == sharding::shardSize(sizes_[d], f) * (f / c);
  }

  void reach(int parent, State state, MoveKind kind, int from, int to, Axes axes, double wire) {
    double cost = nodes_[parent].cost + wire + (kind == MoveKind::kSlice ? kPerSlice : kPerCollective);
    double size = bytes(state);
    if (size > limit_) cost += 2 * (size - limit_);
    if (bound_ > 0 && cost >= bound_) return;
    std::string key = state.key();
    auto [it, fresh] = seen_.try_emplace(key, static_cast<int>(nodes_.size()));
    if (!fresh) {
      if (nodes_[it->second].cost <= cost) return;
      it->second = static_cast<int>(nodes_.size());
    }
    Move move;
    move.kind = kind;
    move.from = from;
    move.to = to;
    move.axes = std::move(axes);
    move.wire_bytes = static_cast<int64_t>(wire);
    fresh_.push_back(static_cast<int>(nodes_.size()));
    nodes_.push_back({std::move(state), parent, std::move(move), cost, false});
  }

  void expand(int n) {
    const State s = nodes_[n].state;
    double size = bytes(s);
    for (size_t d = 0; d < s.dims.size(); ++d) {
      slices(n, s, d);
      gathers(n, s, d);
      exchanges(n, s, d, size);
      scatters(n, s, d);
    }
    reduces(n, s, size);
    permutes(n, s, size);
  }

  void slices(int n, const State& s, size_t d) {
    // Runs of free atoms in the goal's order: several at once where uneven shards of the first would not line
    // up.
    const Atoms& goal = to_.dims[d];
    for (size_t i = 0; i < goal.size(); ++i) {
      State next = s;
      Axes axes;
      for (size_t j = i; j < goal.size() && !used(s, goal[j]); ++j) {
        next.dims[d].push_back(goal[j]);
        axes.push_back(atoms_[goal[j]]);
        if (aligned(d, s.dims[d], next.dims[d]))
          reach(n, next, MoveKind::kSlice, -1, static_cast<int>(d), axes, 0);
      }
    }
  }

  void gathers(int n, const State& s, size_t d) {
    for (size_t keep = 0; keep < s.dims[d].size(); ++keep) {
      State next = s;
      next.dims[d].resize(keep);
      if (!aligned(d, next.dims[d], s.dims[d])) continue;
      auto cut = llvm::ArrayRef<uint8_t>(s.dims[d]).drop_front(keep);
      int64_t k = product(cut);
      double wire = paddedBytes(next, d, s) * static_cast<double>(k - 1) / static_cast<double>(k);
      reach(n, std::move(next), MoveKind::kGather, static_cast<int>(d), -1, axesOf(cut), wire);
    }
  }

  /// Bytes of the gathered result, padding included.
  double paddedBytes(const State& gathered, size_t d, const State& before) const {
    int64_t k = product(before.dims[d]) / product(gathered.dims[d]);
    return bytes(before) * static_cast<double>(k);
  }

  void exchanges(int n, const State& s, size_t d, double size) {
    for (size_t keep = 0; keep < s.dims[d].size(); ++keep) {
      auto cut = llvm::ArrayRef<uint8_t>(s.dims[d]).drop_front(keep);
      for (size_t e = 0; e < s.dims.size(); ++e) {
        if (e == d || !llvm::is_contained(to_.dims[e], cut[0])) continue;
        State next = s;
        next.dims[d].resize(keep);
        next.dims[e].append(cut.begin(), cut.end());
        if (!aligned(d, next.dims[d], s.dims[d]) || !aligned(e, s.dims[e], next.dims[e])) continue;
        double k = static_cast<double>(product(cut));
        // What is sent is the padded operand: its split dimension is a multiple of k.
        double split = static_cast<double>(sharding::shardSize(sizes_[e], product(s.dims[e])));
        double padded = static_cast<double>(sharding::shardSize(sizes_[e], product(next.dims[e]))) * k;
        double wire = (split > 0 ? size / split * padded : 0) * (k - 1) / k;
        reach(n, std::move(next), MoveKind::kAllToAll, static_cast<int>(d), static_cast<int>(e), axesOf(cut),
              wire);
      }
    }
  }

  void scatters(int n, const State& s, size_t d) {
    // All unreduced atoms that the goal wants on this dimension next, in its order.
    Atoms run;
    for (uint8_t a : to_.dims[d]) {
      if (llvm::is_contained(s.unreduced, a) && !llvm::is_contained(to_.unreduced, a)) run.push_back(a);
    }
    for (size_t count = run.size(); count > 0; --count) {
      State next = s;
      auto part = llvm::ArrayRef<uint8_t>(run).take_front(count);
      next.dims[d].append(part.begin(), part.end());
      llvm::erase_if(next.unreduced, [&](uint8_t a) { return llvm::is_contained(part, a); });
      if (!aligned(d, s.dims[d], next.dims[d])) continue;
      double k = static_cast<double>(product(part));
      double wire = bytes(next) * (k - 1);
      reach(n, std::move(next), MoveKind::kReduceScatter, -1, static_cast<int>(d), axesOf(part), wire);
    }
  }

  void reduces(int n, const State& s, double size) {
    Atoms all;
    for (uint8_t a : s.unreduced) {
      if (!llvm::is_contained(to_.unreduced, a)) all.push_back(a);
    }
    auto reduce = [&](llvm::ArrayRef<uint8_t> part) {
      State next = s;
      llvm::erase_if(next.unreduced, [&](uint8_t a) { return llvm::is_contained(part, a); });
      double k = static_cast<double>(product(part));
      reach(n, std::move(next), MoveKind::kAllReduce, -1, -1, axesOf(part), 2 * size * (k - 1) / k);
    };
    if (all.empty()) return;
    reduce(all);
    Atoms unwanted;  // those that no dimension of the goal wants
    for (uint8_t a : all) {
      bool wanted = false;
      for (const Atoms& d : to_.dims) wanted |= llvm::is_contained(d, a);
      if (!wanted) unwanted.push_back(a);
    }
    if (!unwanted.empty() && unwanted.size() < all.size()) reduce(unwanted);
  }

  void permutes(int n, const State& s, double size) {
    // Reorder within dimensions: what the goal keeps first, in its order.
    State next = s;
    for (size_t d = 0; d < s.dims.size(); ++d) {
      Atoms first, rest;
      for (uint8_t a : to_.dims[d]) {
        if (llvm::is_contained(s.dims[d], a)) first.push_back(a);
      }
      for (uint8_t a : s.dims[d]) {
        if (!llvm::is_contained(first, a)) rest.push_back(a);
      }
      first.append(rest.begin(), rest.end());
      next.dims[d] = first;
    }
    permuteTo(n, s, next, size);
    // Exchange of whole dimensions for the goal's axes where the counts agree.
    next = s;
    for (size_t d = 0; d < s.dims.size(); ++d) {
      if (product(s.dims[d]) == product(to_.dims[d])) next.dims[d] = to_.dims[d];
    }
    permuteTo(n, s, next, size);
    // Exchange of a minor part for axes of the same count that are free.
    for (size_t d = 0; d < s.dims.size(); ++d) {
      for (uint8_t want : to_.dims[d]) {
        if (used(s, want)) continue;
        for (size_t i = 0; i < s.dims[d].size(); ++i) {
          if (llvm::is_contained(to_.dims[d], s.dims[d][i]) || atoms_[s.dims[d][i]].size != atoms_[want].size)
            continue;
          next = s;
          next.dims[d][i] = want;
          permuteTo(n, s, next, size);
        }
      }
    }
  }

  void permuteTo(int n, const State& s, const State& next, double size) {
    Axes group;
    llvm::SmallVector<uint8_t, 8> seen;
    for (size_t d = 0; d < s.dims.size(); ++d) {
      for (uint8_t a : next.dims[d]) {
        if (llvm::is_contained(seen, a) || llvm::is_contained(next.unreduced, a)) return;
        seen.push_back(a);
      }
    }
    for (size_t d = 0; d < s.dims.size(); ++d) {
      const Atoms &x = s.dims[d], &y = next.dims[d];
      size_t same = 0;
      while (same < x.size() && same < y.size() && x[same] == y[same]) ++same;
      for (const Atoms* list : {&x, &y}) {
        for (uint8_t a : llvm::ArrayRef<uint8_t>(*list).drop_front(same)) {
          if (!llvm::is_contained(group, atoms_[a])) group.push_back(atoms_[a]);
        }
      }
    }
    if (group.empty()) return;
    PermutePairs p = permutePairs(mesh_, layout(s), layout(next), group);
    double wire = size * static_cast<double>(p.moving) / static_cast<double>(p.group);
    reach(n, next, MoveKind::kPermute, -1, -1, group, wire);
  }

  Plan collect(int end) {
    std::vector<int> path;
    for (int n = end; nodes_[n].parent >= 0; n = nodes_[n].parent) path.push_back(n);
    std::reverse(path.begin(), path.end());
    Plan plan;
    plan.cost = nodes_[end].cost;
    for (int n : path) {
      Move move = nodes_[n].move;
      move.after = layout(nodes_[n].state);
      plan.wire_bytes += move.wire_bytes;
      plan.largest_bytes = std::max(plan.largest_bytes, static_cast<int64_t>(bytes(nodes_[n].state)));
      plan.full_copy |= bytes(nodes_[n].state) > limit_;
      if (move.kind == MoveKind::kSlice && !plan.moves.empty() &&
          plan.moves.back().kind == MoveKind::kSlice) {
        plan.moves.back().after = move.after;  // one slice cuts any number of dimensions
        sharding::append(plan.moves.back().axes, move.axes);
        continue;
      }
      plan.moves.push_back(std::move(move));
    }
    return plan;
  }

  /// The way that always exists.
  Plan gatherAndSlice() {
    nodes_.clear();
    seen_.clear();
    fresh_.clear();
    nodes_.push_back({from_, -1, {}, 0, false});
    auto last = [&] { return static_cast<int>(nodes_.size()) - 1; };
    Atoms partial;
    for (uint8_t a : from_.unreduced) {
      if (!llvm::is_contained(to_.unreduced, a)) partial.push_back(a);
    }
    if (!partial.empty()) {
      State next = from_;
      llvm::erase_if(next.unreduced, [&](uint8_t a) { return llvm::is_contained(partial, a); });
      double k = static_cast<double>(product(partial));
      reach(last(), std::move(next), MoveKind::kAllReduce, -1, -1, axesOf(partial),
            2 * bytes(from_) * (k - 1) / k);
    }
    for (size_t d = 0; d < sizes_.size(); ++d) {
      State s = nodes_.back().state;
      if (s.dims[d].empty() || s.dims[d] == to_.dims[d]) continue;
      State next = s;
      next.dims[d].clear();
      int64_t k = product(s.dims[d]);
      double wire = bytes(s) * static_cast<double>(k - 1);
      reach(last(), std::move(next), MoveKind::kGather, static_cast<int>(d), -1, axesOf(s.dims[d]), wire);
    }
    if (nodes_.back().state.key() != to_.key()) reach(last(), to_, MoveKind::kSlice, -1, -1, {}, 0);
    return collect(last());
  }

  const hlo::Mesh& mesh_;
  llvm::ArrayRef<int64_t> sizes_;
  int bits_;
  Axes atoms_;
  State from_, to_;
  double limit_ = 0, bound_ = 0;
  std::vector<Node> nodes_;
  llvm::StringMap<int> seen_;
  std::vector<int> fresh_;
};

void addKey(std::string& key, int64_t v) { key.append(reinterpret_cast<const char*>(&v), sizeof v); }
void addKey(std::string& key, const Layout& l) {
  auto list = [&](const Axes& axes) {
    for (const AxisRef& a : axes) {
      addKey(key, static_cast<int64_t>(a.axis) << 48 | a.pre << 24 | a.size);
    }
    addKey(key, -1);
  };
  for (const Axes& d : l.dims) list(d);
  list(l.unreduced);
}

}  // namespace

const Plan& Planner::plan(llvm::ArrayRef<int64_t> dims, int bits, const Layout& from, const Layout& to) {
  static const Plan nothing;
  if (from == to) return nothing;
  std::string key;
  for (int64_t d : dims) addKey(key, d);
  addKey(key, bits);
  addKey(key, from);
  addKey(key, to);
  auto [it, fresh] = memo_.try_emplace(key);
  if (fresh) {
    Plan whole = Search(mesh_, dims, bits, from, to, false).run();
    const auto sends = llvm::count_if(whole.moves, [](const Move& m) { return m.kind != MoveKind::kSlice; });
    if (sends > 1 || whole.full_copy) {
      Plan parts = Search(mesh_, dims, bits, from, to, true).run(whole.cost);
      if (parts.cost < whole.cost) whole = std::move(parts);
    }
    it->second = std::move(whole);
  }
  return it->second;
}

PermutePairs permutePairs(const hlo::Mesh& mesh, const Layout& before, const Layout& after,
                          sharding::AxesRef group) {
  // Both sides order the group's atoms: sharded ones by dimension, then the idle ones. A device's place in
  // the first order is the place in the second order of the device that needs its data.
  auto order = [&](const Layout& l) {
    Axes out;
    for (const Axes& d : l.dims) {
      for (const AxisRef& a : sharding::cutBy(d, group)) {
        if (llvm::is_contained(group, a)) out.push_back(a);
      }
    }
    for (const AxisRef& a : group) {
      if (!llvm::is_contained(out, a)) out.push_back(a);
    }
    return out;
  };
  Axes from = order(before), to = order(after);
  PermutePairs p;
  p.group = sharding::product(group);
  auto place = [&](const Axes& list,
                   int64_t linear) {  // linear place in `list` -> row-major place in `group`
    llvm::SmallVector<int64_t, 8> coord(group.size());
    for (size_t k = list.size(); k-- > 0;) {
      coord[llvm::find(group, list[k]) - group.begin()] = linear % list[k].size;
      linear /= list[k].size;
    }
    int64_t at = 0;
    for (size_t k = 0; k < group.size(); ++k) at = at * group[k].size + coord[k];
    return at;
  };
  for (int64_t i = 0; i < p.group; ++i) {
    int64_t source = place(from, i), target = place(to, i);
    p.pairs.push_back(source);
    p.pairs.push_back(target);
    p.moving += source != target;
  }
  return p;
}

}  // namespace tpu::partition
