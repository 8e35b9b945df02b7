// Window arithmetic: which borders are exchanged, and what they cost.
#include "neighbour.h"

#include <algorithm>

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;

Halo haloOf(const Window& w) {
  Halo h;
  int64_t c = w.shard();
  bool first = true;
  int64_t left = 0, right = 0;
  for (int64_t p = 0; p < w.shards; ++p) {
    int64_t start = w.start + p * w.step, end = start + w.length;
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
    int64_t offset = w.start + p * w.step - (p * c - left);
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

namespace {

int64_t at(llvm::ArrayRef<int64_t> list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

int64_t indexOf(llvm::ArrayRef<int64_t> list, int64_t value) {
  return static_cast<int64_t>(std::find(list.begin(), list.end(), value) - list.begin());
}

/// Windowed ops: output element j reads [j * stride - low, + (window - 1) * dilation + 1).
Window windowed(int64_t size, int64_t shards, int64_t out_shard, int64_t stride, int64_t low, int64_t window,
                int64_t dilation) {
  return {size, shards, -low, out_shard * stride, (out_shard - 1) * stride + (window - 1) * dilation + 1};
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
      if (at(ints(AttrKey::interior_padding), dim, 0) != 0) return {};
      return {{n, shards, -ints(AttrKey::edge_padding_low)[dim], out, out}};
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
      if (at(ints(AttrKey::lhs_dilation), s, 1) != 1) return {};
      int64_t k = m.typeOf(m.op(id).operands[1]).dims[ints(AttrKey::kernel_spatial_dimensions)[s]];
      return {windowed(n, shards, out, at(ints(AttrKey::window_strides), s, 1),
                       at(ints(AttrKey::padding), 2 * s, 0), k, at(ints(AttrKey::rhs_dilation), s, 1))};
    }
    case Opcode::reduce_window: {
      if (at(ints(AttrKey::base_dilations), dim, 1) != 1) return {};
      Window w = windowed(
          n, shards, out, at(ints(AttrKey::window_strides), dim, 1), at(ints(AttrKey::padding), 2 * dim, 0),
          at(ints(AttrKey::window_dimensions), dim, 1), at(ints(AttrKey::window_dilations), dim, 1));
      return llvm::SmallVector<Window, 2>(m.op(id).results.size(), w);
    }
    default:
      return {};
  }
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
  if (dim < 0 || result < 0) return {};
  llvm::SmallVector<int64_t, 4> sizes;
  for (size_t i = 0; i < m.op(id).operands.size(); ++i) {
    if (dimOfFactor(rule.operands[i], factor) >= 0) sizes.push_back(m.typeOf(m.op(id).operands[i]).dims[dim]);
  }
  return windowsOf(m, id, dim, result, sizes, m.typeOf(m.op(id).results[0]).dims[result], shards);
}

}  // namespace

bool neighbourSupported(const hlo::Module& m, hlo::OpId id, const sharding::OpRule& rule, int factor,
                        int64_t shards) {
  return shards > 1 && !windowsOfFactor(m, id, rule, factor, shards).empty();
}

double neighbourBytes(const hlo::Module& m, hlo::OpId id, const sharding::OpRule& rule, int factor,
                      const sharding::FactorAxes& axes) {
  int64_t shards = sharding::product(axes[factor]);
  llvm::SmallVector<Window, 2> windows = windowsOfFactor(m, id, rule, factor, shards);
  double total = 0;
  size_t w = 0;
  for (size_t i = 0; i < m.op(id).operands.size() && w < windows.size(); ++i) {
    int dim = dimOfFactor(rule.operands[i], factor);
    if (dim < 0) continue;
    const hlo::Type& type = m.typeOf(m.op(id).operands[i]);
    auto dims = dimsOf(rule, rule.operands[i], axes);
    double slice = elementBits(type.element) / 8.0;
    for (int64_t d = 0; d < type.rank(); ++d) {
      if (d != dim)
        slice *= static_cast<double>(sharding::shardSize(type.dims[d], sharding::product(dims[d])));
    }
    const Window& win = windows[w++];
    total += slice * haloOf(win).sent;
    if (m.op(id).opcode == Opcode::reverse)
      total += slice * static_cast<double>(win.shard());  // the mirror permute
  }
  return total;
}

}  // namespace tpu::partition
