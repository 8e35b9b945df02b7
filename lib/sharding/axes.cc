// Axis lists: every function walks the lists from the major end, cutting an axis into sub-axes where the two
// sides meet in the middle of one.
#include "tpu/sharding/axes.h"

#include <algorithm>

#include "tpu/sharding/gspmd.h"

namespace tpu::sharding {

int64_t product(AxesRef axes) {
  int64_t n = 1;
  for (const AxisRef& a : axes) n *= a.size;
  return n;
}

AxisRef fullAxis(const Mesh& mesh, uint32_t axis) { return {axis, 1, mesh.axes[axis].size}; }

bool overlaps(const AxisRef& a, const AxisRef& b) {
  return a.axis == b.axis && a.pre < b.pre * b.size && b.pre < a.pre * a.size;
}

bool overlaps(const AxisRef& a, AxesRef list) {
  return std::any_of(list.begin(), list.end(), [&](const AxisRef& b) { return overlaps(a, b); });
}

bool overlaps(AxesRef a, AxesRef b) {
  return std::any_of(a.begin(), a.end(), [&](const AxisRef& x) { return overlaps(x, b); });
}

void append(Axes& list, const AxisRef& ref) {
  if (ref.size == 1) return;
  if (!list.empty() && list.back().axis == ref.axis && list.back().pre * list.back().size == ref.pre) {
    list.back().size *= ref.size;
    return;
  }
  list.push_back(ref);
}

void append(Axes& list, AxesRef refs) {
  for (const AxisRef& r : refs) append(list, r);
}

Axes concat(AxesRef a, AxesRef b) {
  Axes out(a.begin(), a.end());
  append(out, b);
  return out;
}

namespace {

/// A list being consumed from its major end, with the head possibly cut.
struct Cursor {
  AxesRef list;
  size_t i = 0;
  AxisRef head;
  explicit Cursor(AxesRef l) : list(l) {
    if (!list.empty()) head = list[0];
  }
  bool done() const { return i == list.size(); }
  void take(int64_t size) {
    if (size == head.size) {
      if (++i < list.size()) head = list[i];
      return;
    }
    head.pre *= size;
    head.size /= size;
  }
  Axes rest() const {
    Axes out;
    if (done()) return out;
    append(out, head);
    for (size_t k = i + 1; k < list.size(); ++k) append(out, list[k]);
    return out;
  }
};

/// Size of the common major part of two heads, 1 when there is none.
int64_t commonSize(const AxisRef& a, const AxisRef& b) {
  if (a.axis != b.axis || a.pre != b.pre) return 1;
  int64_t small = std::min(a.size, b.size), large = std::max(a.size, b.size);
  return large % small == 0 ? small : 1;
}

}  // namespace

bool isPrefix(AxesRef prefix, AxesRef list) {
  Cursor x(prefix), y(list);
  while (!x.done() && !y.done()) {
    int64_t n = commonSize(x.head, y.head);
    if (n == 1) return false;
    x.take(n);
    y.take(n);
  }
  return x.done();
}

Axes dropPrefix(AxesRef list, AxesRef prefix) {
  Cursor x(prefix), y(list);
  while (!x.done() && !y.done()) {
    int64_t n = commonSize(x.head, y.head);
    if (n == 1) break;
    x.take(n);
    y.take(n);
  }
  return y.rest();
}

bool takeProduct(AxesRef list, int64_t count, Axes& taken, Axes& rest) {
  Cursor x(list);
  taken.clear();
  while (count > 1 && !x.done()) {
    int64_t n = x.head.size;
    if (count % n != 0) {
      if (n % count != 0) return false;
      n = count;
    }
    append(taken, AxisRef{x.head.axis, x.head.pre, n});
    x.take(n);
    count /= n;
  }
  rest = x.rest();
  return count == 1;
}

Axes prefixWithout(AxesRef list, AxesRef used) {
  Axes out;
  for (const AxisRef& r : list) {
    if (!overlaps(r, used)) {
      append(out, r);
      continue;
    }
    int64_t end = r.pre * r.size;  // cut at the first used border behind r.pre
    for (const AxisRef& u : used) {
      if (overlaps(r, u)) end = std::min(end, std::max(u.pre, r.pre));
    }
    if (end > r.pre && end % r.pre == 0 && (r.pre * r.size) % end == 0)
      append(out, AxisRef{r.axis, r.pre, end / r.pre});
    break;
  }
  return out;
}

Axes unused(const Mesh& mesh, AxesRef used) {
  Axes out;
  for (uint32_t a = 0; a < mesh.axes.size(); ++a) {
    llvm::SmallVector<AxisRef, 2> mine;
    for (const AxisRef& u : used) {
      if (u.axis == a) mine.push_back(u);
    }
    std::sort(mine.begin(), mine.end(), [](const AxisRef& x, const AxisRef& y) { return x.pre < y.pre; });
    int64_t at = 1;
    for (const AxisRef& u : mine) {
      if (u.pre > at) append(out, AxisRef{a, at, u.pre / at});
      at = u.pre * u.size;
    }
    if (at < mesh.axes[a].size) append(out, AxisRef{a, at, mesh.axes[a].size / at});
  }
  return out;
}

Axes cutBy(AxesRef list, AxesRef borders) {
  Axes out;
  for (AxisRef r : list) {
    llvm::SmallVector<int64_t, 4> cuts;
    for (const AxisRef& b : borders) {
      if (b.axis != r.axis) continue;
      for (int64_t c : {b.pre, b.pre * b.size}) {
        if (c > r.pre && c < r.pre * r.size && c % r.pre == 0 && (r.pre * r.size) % c == 0) cuts.push_back(c);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    for (int64_t c : cuts) {
      if (c <= r.pre || c % r.pre != 0) continue;
      out.push_back({r.axis, r.pre, c / r.pre});
      r = {r.axis, c, r.size / (c / r.pre)};
    }
    out.push_back(r);
  }
  return out;
}

void splitToAtoms(llvm::MutableArrayRef<Axes> lists) {
  Axes all;
  for (const Axes& l : lists) all.append(l.begin(), l.end());
  for (Axes& l : lists) l = cutBy(l, all);
}

int64_t stride(const Mesh& mesh, const AxisRef& ref) {
  int64_t s = 1;
  for (size_t a = mesh.axes.size(); a-- > ref.axis + 1;) s *= mesh.axes[a].size;
  return s * (mesh.axes[ref.axis].size / (ref.pre * ref.size));
}

int64_t coordinate(const Mesh& mesh, const AxisRef& ref, int64_t device) {
  return device / stride(mesh, ref) % ref.size;
}

int64_t coordinate(const Mesh& mesh, AxesRef axes, int64_t device) {
  int64_t c = 0;
  for (const AxisRef& a : axes) c = c * a.size + coordinate(mesh, a, device);
  return c;
}

namespace {

/// The mesh axes refined so that `row` (a group) walks them as a box: found by reading the row's steps minor
/// to major.
bool axesOfRow(const Mesh& mesh, llvm::ArrayRef<int64_t> row, Axes& axes) {
  // A row over axes a1..am visits base + sum c_i * stride_i: read strides and sizes off, minor to major.
  llvm::SmallVector<std::pair<int64_t, int64_t>, 4> steps;  // (stride, size)
  for (size_t block = 1; block < row.size();) {
    int64_t step = row[block] - row[0];
    int64_t n = 1;
    while (n * block < row.size() && row[n * block] - row[0] == step * n) ++n;
    while (n > 1 && row.size() % (n * block) != 0) --n;
    if (n == 1 || step <= 0) return false;
    steps.push_back({step, n});
    block *= n;
  }
  axes.clear();
  for (size_t k = steps.size(); k-- > 0;) {
    auto [step, size] = steps[k];
    Axes found;  // one step may cover several neighbouring mesh axes
    if (!axesOfStride(mesh, step, size, found)) return false;
    append(axes, found);
  }
  return true;
}

}  // namespace

bool axesOfGroups(const Mesh& mesh, const hlo::Groups& groups, Axes& axes) {
  axes.clear();
  int64_t devices = mesh.numDevices();
  if (groups.rows == 0 || groups.cols == 0) {  // empty: one group of all devices
    for (uint32_t a = 0; a < mesh.axes.size(); ++a) append(axes, fullAxis(mesh, a));
    return true;
  }
  if (groups.rows * groups.cols != devices) return false;
  if (groups.cols == 1) return true;
  llvm::ArrayRef<int64_t> ids(groups.ids);
  if (!axesOfRow(mesh, ids.take_front(groups.cols), axes) || product(axes) != groups.cols) return false;
  // The rows must be the cosets of that box, each in the same order.
  std::vector<bool> seen(devices, false);
  for (int64_t r = 0; r < groups.rows; ++r) {
    int64_t base = ids[r * groups.cols];
    if (base < 0 || base >= devices || coordinate(mesh, axes, base) != 0) return false;
    for (int64_t c = 0; c < groups.cols; ++c) {
      int64_t want = base, rest = c;
      for (size_t k = axes.size(); k-- > 0;) {
        want += rest % axes[k].size * stride(mesh, axes[k]);
        rest /= axes[k].size;
      }
      int64_t id = ids[r * groups.cols + c];
      if (id != want || id < 0 || id >= devices || seen[id]) return false;
      seen[id] = true;
    }
  }
  return true;
}

bool axesOfPermute(const Mesh& mesh, const hlo::Groups& pairs, Axes& axes, hlo::Groups& inside) {
  axes.clear();
  int64_t devices = mesh.numDevices();
  uint64_t moving = 0;
  for (int64_t i = 0; i < pairs.rows; ++i) {
    int64_t s = pairs.ids[2 * i], t = pairs.ids[2 * i + 1];
    if (s < 0 || s >= devices || t < 0 || t >= devices) return false;
    for (uint32_t a = 0; a < mesh.axes.size(); ++a) {
      if (coordinate(mesh, fullAxis(mesh, a), s) != coordinate(mesh, fullAxis(mesh, a), t))
        moving |= uint64_t{1} << a;
    }
  }
  for (uint32_t a = 0; a < mesh.axes.size(); ++a) {
    if (moving >> a & 1) axes.push_back(fullAxis(mesh, a));
  }
  int64_t group = product(axes);
  if (axes.empty() || group == devices) {  // nothing to share: keep the program's own order of pairs
    if (group != devices) return false;
    inside = pairs;
    inside.cols = 2;
    return true;
  }
  std::vector<int64_t> target(group, -1);
  inside = {};
  inside.cols = 2;
  for (int64_t i = 0; i < pairs.rows; ++i) {
    int64_t s = coordinate(mesh, axes, pairs.ids[2 * i]), t = coordinate(mesh, axes, pairs.ids[2 * i + 1]);
    if (target[s] == t) continue;
    if (target[s] >= 0) return false;
    target[s] = t;
    inside.ids.push_back(s);
    inside.ids.push_back(t);
    ++inside.rows;
  }
  return pairs.rows == inside.rows * (devices / group);
}

}  // namespace tpu::sharding
