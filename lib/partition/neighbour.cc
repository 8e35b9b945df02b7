// Window arithmetic: which borders are exchanged, and what they cost.
#include "neighbour.h"

#include <algorithm>

#include "sort_order.h"
#include "tpu/hlo/analysis.h"
#include "tpu/sharding/reducer.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;

namespace {

// Of what borders send: blocks that send more than this are not worth their tables.
constexpr double kWorthBlocks = 0.75;

}  // namespace

int64_t Window::first(int64_t p) const {
  int64_t at = start + p * step;
  return at >= 0 ? at / dilation : -((-at + dilation - 1) / dilation);
}

int64_t Window::count() const {
  if (dilation == 1) return length;
  int64_t most = 0;
  for (int64_t p = 0; p < shards; ++p) {
    int64_t past = start + p * step + length - 1 - first(p) * dilation;
    most = std::max(most, past / dilation + 1);
  }
  return most;
}

Halo haloOf(const Window& w) {
  Halo h;
  const int64_t c = w.shard(), count = w.count();
  bool first = true;
  int64_t left = 0, right = 0;
  for (int64_t p = 0; p < w.shards; ++p) {
    int64_t start = w.first(p), end = start + count;
    int64_t lo = std::clamp<int64_t>(start, 0, w.size), hi = std::clamp<int64_t>(end, 0, w.size);
    if (lo < hi) {
      left = std::max(left, p * c - lo);
      right = std::max(right, hi - (p + 1) * c);
    }
    h.outside |= start < 0 || end > w.size;
  }
  h.left = left;
  h.right = right;
  for (int64_t p = 0; p < w.shards; ++p) {
    int64_t offset = w.first(p) - (p * c - left);
    h.min_offset = first ? offset : std::min(h.min_offset, offset);
    h.max_offset = first ? offset : std::max(h.max_offset, offset);
    first = false;
  }
  // The piece from h shards away is sent by all devices but h.
  auto send = [&](int64_t total) {
    for (int64_t hop = 1; total > 0; ++hop, total -= c) {
      h.sent += static_cast<double>(std::min(total, c)) *
                static_cast<double>(std::max<int64_t>(0, w.shards - hop)) / static_cast<double>(w.shards);
    }
  };
  send(left);
  send(right);
  return h;
}

std::optional<Blocks> blocksOf(const Window& w) {
  const int64_t c = w.shard();
  if (w.dilation != 1 || w.shards < 2) return std::nullopt;
  const Halo h = haloOf(w);
  // Borders of the next neighbours, or wider ones that every window reaches over.
  if (w.step == c && h.left + c + h.right <= w.count()) return std::nullopt;
  const bool near = w.step == c && h.left <= c && h.right <= c;
  Blocks out;
  for (int64_t p = 0; p < w.shards; ++p) {
    const int64_t start = w.first(p), lo = std::clamp<int64_t>(start, 0, w.size), hi = std::clamp<int64_t>(start + w.count(), 0, w.size);
    for (int64_t at = lo; at < hi;) {
      const int64_t q = at / c, end = std::min(hi, (q + 1) * c);
      // The first round of this length in which the one does not send and the other does not receive yet.
      size_t r = 0;
      while (r < out.rounds.size() && (out.rounds[r].length != end - at || out.rounds[r].receives[p] || out.rounds[r].begin[q] >= 0)) ++r;
      if (r == out.rounds.size()) {
        BlockRound fresh;
        fresh.length = end - at;
        fresh.begin.assign(w.shards, -1);
        fresh.place.assign(w.shards, -1);
        fresh.receives.assign(w.shards, false);
        out.rounds.push_back(std::move(fresh));
      }
      BlockRound& round = out.rounds[r];
      round.pairs.insert(round.pairs.end(), {q, p});
      round.begin[q] = at - q * c;
      round.place[p] = at - start;
      round.receives[p] = true;
      if (p != q) out.sent += static_cast<double>(end - at) / static_cast<double>(w.shards);
      at = end;
    }
    if (near && out.sent > kWorthBlocks * h.sent) return std::nullopt;
  }
  return out;
}

namespace {

int64_t at(llvm::ArrayRef<int64_t> list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

int64_t indexOf(llvm::ArrayRef<int64_t> list, int64_t value) {
  return static_cast<int64_t>(std::find(list.begin(), list.end(), value) - list.begin());
}

/// Windowed ops: output element j reads [j * stride - low, + (window - 1) * dilation + 1) of the spread array.
Window windowed(int64_t size, int64_t shards, int64_t out_shard, int64_t stride, int64_t low, int64_t window,
                int64_t dilation, int64_t base) {
  return {size, shards, -low, out_shard * stride, (out_shard - 1) * stride + (window - 1) * dilation + 1, base};
}

/// The windows of select_and_scatter that touch a device's rows, over the operand and over the source. The shards of the
/// operand must begin where windows do, and windows must cover all rows.
llvm::SmallVector<Window, 2> scatteredWindows(const hlo::Module& m, hlo::OpId id, int64_t dim, llvm::ArrayRef<int64_t> sizes,
                                              int64_t shards, int64_t own) {
  auto get = [&](AttrKey key, int64_t i, int64_t otherwise) { return at(m.getInts(id, key), i, otherwise); };
  const int64_t window = get(AttrKey::window_dimensions, dim, 1), stride = get(AttrKey::window_strides, dim, 1);
  const int64_t low = get(AttrKey::padding, 2 * dim, 0), high = get(AttrKey::padding, 2 * dim + 1, 0);
  if (sizes.size() != 2 || own % stride != 0 || window < stride) return {};
  if (sharding::reducerOf(m, m.op(id).regions[1]) != Opcode::add) return {};
  if (low < 0 || high < 0 || low >= window || high >= window) return {};  // a window of padding alone, or rows that none sees
  auto floor = [&](int64_t n) { return n >= 0 ? n / stride : -((-n + stride - 1) / stride); };
  const int64_t first = floor(low - window + stride), last = floor(own - 1 + low), count = last - first + 1;
  return {{sizes[0], shards, first * stride - low, own, (count - 1) * stride + window},
          {sizes[1], shards, first, own / stride, count}};
}

}  // namespace

llvm::SmallVector<Window, 2> windowsOf(const hlo::Module& m, hlo::OpId id, int64_t dim, int64_t result_dim,
                                       llvm::ArrayRef<int64_t> sizes, int64_t result_size, int64_t shards) {
  int64_t out = sharding::shardSize(result_size, shards), n = sizes[0];
  auto ints = [&](AttrKey key) { return m.getInts(id, key); };
  switch (m.op(id).opcode) {
    case Opcode::slice: {
      int64_t stride = at(ints(AttrKey::strides), dim, 1);
      return {{n, shards, ints(AttrKey::start_indices)[dim], out * stride, (out - 1) * stride + 1}};
    }
    case Opcode::pad:
      return {{n, shards, -ints(AttrKey::edge_padding_low)[dim], out, out,
               at(ints(AttrKey::interior_padding), dim, 0) + 1}};
    case Opcode::dynamic_update_slice: {
      auto start = hlo::constantInt(m, m.op(id).operands[2 + dim]);
      if (!start) return {};
      int64_t first = std::clamp<int64_t>(*start, 0, n - sizes[1]);
      return {{n, shards, 0, out, out}, {sizes[1], shards, -first, out, out}};
    }
    case Opcode::concatenate: {
      llvm::SmallVector<Window, 2> all;
      int64_t offset = 0;
      for (int64_t s : sizes) {
        all.push_back({s, shards, -offset, out, out});
        offset += s;
      }
      return all;
    }
    case Opcode::reverse: {
      int64_t c = sharding::shardSize(n, shards);
      return {{n, shards, -(c * shards - n), c, c}};
    }
    case Opcode::convolution: {
      size_t s = indexOf(ints(AttrKey::input_spatial_dimensions), dim);
      int64_t k = m.typeOf(m.op(id).operands[1]).dims[ints(AttrKey::kernel_spatial_dimensions)[s]];
      return {windowed(n, shards, out, at(ints(AttrKey::window_strides), s, 1),
                       at(ints(AttrKey::padding), 2 * s, 0), k, at(ints(AttrKey::rhs_dilation), s, 1),
                       at(ints(AttrKey::lhs_dilation), s, 1))};
    }
    case Opcode::select_and_scatter:
      return scatteredWindows(m, id, dim, sizes, shards, out);
    case Opcode::reduce_window: {
      Window w = windowed(
          n, shards, out, at(ints(AttrKey::window_strides), dim, 1), at(ints(AttrKey::padding), 2 * dim, 0),
          at(ints(AttrKey::window_dimensions), dim, 1), at(ints(AttrKey::window_dilations), dim, 1),
          at(ints(AttrKey::base_dilations), dim, 1));
      return llvm::SmallVector<Window, 2>(m.op(id).results.size(), w);
    }
    default:
      return {};
  }
}

Window tapsWindow(const hlo::Module& m, hlo::OpId id, int64_t dim, int64_t size, int64_t taps, int64_t shards) {
  auto ints = [&](AttrKey key) { return m.getInts(id, key); };
  const size_t s = indexOf(ints(AttrKey::input_spatial_dimensions), dim);
  const int64_t out = m.typeOf(m.op(id).results[0]).dims[ints(AttrKey::output_spatial_dimensions)[s]];
  const int64_t own = sharding::shardSize(taps, shards), dilation = at(ints(AttrKey::rhs_dilation), s, 1);
  return {size, shards, -at(ints(AttrKey::padding), 2 * s, 0), own * dilation,
          (own - 1) * dilation + (out - 1) * at(ints(AttrKey::window_strides), s, 1) + 1, at(ints(AttrKey::lhs_dilation), s, 1)};
}

namespace {

int dimOfFactor(const sharding::TensorFactors& map, int factor) {
  for (size_t d = 0; d < map.size(); ++d) {
    if (llvm::is_contained(map[d], static_cast<int16_t>(factor))) return static_cast<int>(d);
  }
  return -1;
}

llvm::SmallVector<Window, 2> windowsOfFactor(const hlo::Module& m, hlo::OpId id, const sharding::OpRule& rule,
                                             int factor, int64_t shards) {
  int dim = dimOfFactor(rule.operands[0], factor), result = dimOfFactor(rule.results[0], factor);
  if (dim >= 0 && rule.factors[factor].shifted)
    return {tapsWindow(m, id, dim, m.typeOf(m.op(id).operands[0]).dims[dim], rule.factors[factor].size, shards)};
  if (dim < 0 || result < 0) return {};
  llvm::SmallVector<int64_t, 4> sizes;
  for (size_t i = 0; i < m.op(id).operands.size(); ++i) {
    if (dimOfFactor(rule.operands[i], factor) >= 0) sizes.push_back(m.typeOf(m.op(id).operands[i]).dims[dim]);
  }
  return windowsOf(m, id, dim, result, sizes, m.typeOf(m.op(id).results[0]).dims[result], shards);
}

}  // namespace

int cumulativeDirection(const hlo::Module& m, hlo::OpId id, int64_t dim, int64_t n) {
  const hlo::Op& op = m.op(id);
  if (op.opcode != Opcode::reduce_window || op.results.size() != 1) return 0;
  auto get = [&](AttrKey key, size_t i, int64_t otherwise) { return at(m.getInts(id, key), i, otherwise); };
  if (n < 2 || get(AttrKey::window_dimensions, dim, 1) != n || get(AttrKey::window_strides, dim, 1) != 1 ||
      get(AttrKey::base_dilations, dim, 1) != 1 || get(AttrKey::window_dilations, dim, 1) != 1)
    return 0;
  int64_t low = get(AttrKey::padding, 2 * dim, 0), high = get(AttrKey::padding, 2 * dim + 1, 0);
  bool forward = low == n - 1 && high == 0, backward = low == 0 && high == n - 1;
  if ((!forward && !backward) || !sharding::reducerOf(m, op.regions[0])) return 0;
  return forward ? 1 : -1;
}

std::vector<std::vector<std::pair<int64_t, int64_t>>> sortRounds(int64_t n) {
  std::vector<std::vector<std::pair<int64_t, int64_t>>> rounds;
  for (int64_t p = 1; p < n; p *= 2) {
    for (int64_t k = p; k >= 1; k /= 2) {
      std::vector<std::pair<int64_t, int64_t>> pairs;
      for (int64_t j = k % p; j + k < n; j += 2 * k) {
        for (int64_t i = 0; i < k && i + j + k < n; ++i) {
          if ((i + j) / (2 * p) == (i + j + k) / (2 * p)) pairs.push_back({i + j, i + j + k});
        }
      }
      if (!pairs.empty()) rounds.push_back(std::move(pairs));
    }
  }
  return rounds;
}

bool neighbourSupported(const hlo::Module& m, hlo::OpId id, const sharding::OpRule& rule, int factor,
                        int64_t shards) {
  if (m.op(id).opcode == Opcode::sort) return shards > 1;
  return shards > 1 && !windowsOfFactor(m, id, rule, factor, shards).empty();
}

double neighbourBytes(const hlo::Module& m, hlo::OpId id, const sharding::OpRule& rule, int factor,
                      const sharding::FactorAxes& axes) {
  int64_t shards = sharding::product(axes[factor]);
  double total = 0;
  auto sliceBytes = [&](size_t operand, int dim) {
    const hlo::Type& type = m.typeOf(m.op(id).operands[operand]);
    auto dims = dimsOf(rule, rule.operands[operand], axes);
    double bytes = elementBits(type.element) / 8.0;
    for (int64_t d = 0; d < type.rank(); ++d) {
      if (d != dim) bytes *= static_cast<double>(sharding::shardSize(type.dims[d], sharding::product(dims[d])));
    }
    return bytes;
  };
  int first_dim = dimOfFactor(rule.operands[0], factor);
  if (m.op(id).opcode == Opcode::sort) {
    const int64_t size = m.typeOf(m.op(id).operands[0]).dims[first_dim], shard = sharding::shardSize(size, shards);
    int64_t sent = 0;
    for (const auto& round : sortRounds(shards)) sent += 2 * static_cast<int64_t>(round.size()) * shard;
    for (size_t i = 0; i < m.op(id).operands.size(); ++i)
      total += sliceBytes(i, first_dim) * static_cast<double>(sent) / static_cast<double>(shards);
    if (const auto position = positionType(m, id, size, shards)) {
      double ties = sliceBytes(0, first_dim) * elementBits(*position) / elementBits(m.typeOf(m.op(id).operands[0]).element);
      total += ties * static_cast<double>(sent) / static_cast<double>(shards);
    }
    return total;
  }
  if (first_dim >= 0 && cumulativeDirection(m, id, first_dim, m.typeOf(m.op(id).operands[0]).dims[first_dim]) != 0)
    return sliceBytes(0, first_dim) * static_cast<double>(shards - 1);
  llvm::SmallVector<Window, 2> windows = windowsOfFactor(m, id, rule, factor, shards);
  size_t w = 0;
  for (size_t i = 0; i < m.op(id).operands.size() && w < windows.size(); ++i) {
    int dim = dimOfFactor(rule.operands[i], factor);
    if (dim < 0) continue;
    double slice = sliceBytes(i, dim);
    const Window& win = windows[w++];
    const auto blocks = blocksOf(win);
    total += slice * (blocks ? blocks->sent : haloOf(win).sent);
    if (m.op(id).opcode == Opcode::reverse)
      total += slice * static_cast<double>(win.shard());  // the mirror permute
  }
  return total;
}

}  // namespace tpu::partition
