#include "copy_plan.h"

#include <algorithm>

namespace tpu::lower {
namespace {

// A maximal stretch of one iteration dimension on which both addresses are linear.
struct Run {
  int64_t count, src, dst, src_stride, dst_stride;
};

// Up to two levels along one iteration dimension.
struct Piece {
  int64_t src, dst;
  std::vector<CopyLevel> levels;
};

Run singleRun(const IterDim& d) {
  int64_t s = d.src.at(d.src_start), t = d.dst.at(d.dst_start);
  if (d.count == 1) return {1, s, t, 0, 0};
  return {d.count, s, t, d.src.at(d.src_start + d.src_step) - s, d.dst.at(d.dst_start + d.dst_step) - t};
}

std::vector<Run> scanRuns(const IterDim& d) {
  std::vector<Run> runs;
  auto src = [&](int64_t i) { return d.src.at(d.src_start + i * d.src_step); };
  auto dst = [&](int64_t i) { return d.dst.at(d.dst_start + i * d.dst_step); };
  // A run ends at a tile border on either side: there the step only happens to be the same.
  auto crosses = [](const AxisAddress& a, int64_t from, int64_t to) {
    return a.tile != INT64_MAX && from / a.tile != to / a.tile && a.tile_stride != a.tile * a.in_stride;
  };
  auto border = [&](int64_t i) {
    return crosses(d.src, d.src_start + (i - 1) * d.src_step, d.src_start + i * d.src_step) ||
           crosses(d.dst, d.dst_start + (i - 1) * d.dst_step, d.dst_start + i * d.dst_step);
  };
  for (int64_t start = 0, i = 0; start < d.count; start = i) {
    Run run{1, src(start), dst(start), 0, 0};
    i = start + 1;
    if (i < d.count && !border(i)) {
      run.src_stride = src(i) - run.src;
      run.dst_stride = dst(i) - run.dst;
      while (i < d.count && !border(i) && src(i) - src(i - 1) == run.src_stride && dst(i) - dst(i - 1) == run.dst_stride) ++i;
    }
    run.count = i - start;
    runs.push_back(run);
  }
  return runs;
}

bool sameShape(const Run& a, const Run& b) {
  return a.count == b.count && (a.count == 1 || (a.src_stride == b.src_stride && a.dst_stride == b.dst_stride));
}

// How many groups of `period` runs from `begin` on repeat at constant distances.
int64_t repeats(const std::vector<Run>& runs, size_t begin, size_t period) {
  if (begin + 2 * period > runs.size()) return 1;
  int64_t ds = runs[begin + period].src - runs[begin].src, dd = runs[begin + period].dst - runs[begin].dst;
  int64_t n = 1;
  for (size_t at = begin + period; at + period <= runs.size(); at += period, ++n)
    for (size_t j = 0; j < period; ++j) {
      const Run &a = runs[at - period + j], &b = runs[at + j];
      if (!sameShape(a, b) || b.src - a.src != ds || b.dst - a.dst != dd) return n;
    }
  return n;
}

// The period whose repetition removes most runs.
size_t bestPeriod(const std::vector<Run>& runs, size_t begin) {
  constexpr size_t kLongest = 40;
  size_t best = 1;
  int64_t saved = 0;
  for (size_t p = 1; p <= kLongest && begin + 2 * p <= runs.size(); ++p) {
    int64_t saves = (repeats(runs, begin, p) - 1) * static_cast<int64_t>(p);
    if (saves > saved) {
      saved = saves;
      best = p;
    }
  }
  return best;
}

std::vector<Piece> pieces(const IterDim& d) {
  bool linear = d.src.tile == INT64_MAX && d.dst.tile == INT64_MAX;
  std::vector<Run> runs = linear ? std::vector<Run>{singleRun(d)} : scanRuns(d);
  std::vector<Piece> out;
  for (size_t at = 0; at < runs.size();) {
    size_t period = bestPeriod(runs, at);
    int64_t n = repeats(runs, at, period);
    for (size_t j = 0; j < period; ++j) {
      const Run& r = runs[at + j];
      Piece p{r.src, r.dst, {}};
      if (n > 1) p.levels.push_back({n, runs[at + period].src - runs[at].src, runs[at + period].dst - runs[at].dst});
      if (r.count > 1) p.levels.push_back({r.count, r.src_stride, r.dst_stride});
      out.push_back(std::move(p));
    }
    at += static_cast<size_t>(n) * period;
  }
  return out;
}

bool mergeOnce(CopyNest& nest) {
  auto& levels = nest.levels;
  for (size_t i = 0; i < levels.size(); ++i) {
    if (levels[i].src_stride == nest.run && levels[i].dst_stride == nest.run) {
      nest.run *= levels[i].count;
      levels.erase(levels.begin() + i);
      return true;
    }
    for (size_t j = 0; j < levels.size(); ++j)
      if (i != j && levels[i].src_stride == levels[j].src_stride * levels[j].count &&
          levels[i].dst_stride == levels[j].dst_stride * levels[j].count) {
        levels[j].count *= levels[i].count;
        levels.erase(levels.begin() + i);
        return true;
      }
  }
  return false;
}

}  // namespace

int64_t CopyNest::totalBytes() const {
  int64_t n = run;
  for (const CopyLevel& l : levels) n *= l.count;
  return n;
}

std::vector<AxisAddress> axisAddresses(const isa::Layout& layout, llvm::ArrayRef<int64_t> dims) {
  std::vector<AxisAddress> axes(dims.size());
  if (dims.empty()) return axes;
  int rank = static_cast<int>(dims.size());
  if (layout.dense) {
    int64_t stride = 4;
    for (int d = rank - 1; d >= 0; --d) {
      axes[d].in_stride = stride;
      stride *= dims[d];
    }
    return axes;
  }
  int64_t cols = dims[rank - 1], rows = rank > 1 ? dims[rank - 2] : 1, tr = layout.tile_rows;
  int64_t col_tiles = (cols + 127) / 128, row_tiles = (rows + tr - 1) / tr;
  axes[rank - 1] = {128, tr * 512, 4};
  if (col_tiles == 1) axes[rank - 1] = {INT64_MAX, 0, 4};
  if (rank == 1) return axes;
  axes[rank - 2] = {tr, col_tiles * tr * 512, 512};
  if (row_tiles == 1) axes[rank - 2] = {INT64_MAX, 0, 512};
  int64_t stride = row_tiles * col_tiles * tr * 512;
  for (int d = rank - 3; d >= 0; --d) {
    axes[d].in_stride = stride;
    stride *= dims[d];
  }
  return axes;
}

std::vector<CopyNest> planCopy(llvm::ArrayRef<IterDim> dims) {
  std::vector<CopyNest> nests(1);
  for (const IterDim& d : dims) {
    if (d.count == 0) return {};
    std::vector<Piece> parts = pieces(d);
    std::vector<CopyNest> next;
    next.reserve(nests.size() * parts.size());
    for (const CopyNest& nest : nests)
      for (const Piece& p : parts) {
        CopyNest n = nest;
        n.src_offset += p.src;
        n.dst_offset += p.dst;
        n.levels.insert(n.levels.end(), p.levels.begin(), p.levels.end());
        next.push_back(std::move(n));
      }
    nests = std::move(next);
  }
  for (CopyNest& n : nests)
    while (mergeOnce(n)) {
    }
  return nests;
}

}  // namespace tpu::lower
