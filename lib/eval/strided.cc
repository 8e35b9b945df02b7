// Copies between strided arrays: transposes, broadcasts, slices, pads and concatenations are all this one
// loop.
#include <algorithm>
#include <cstring>

#include "tpu/support/parallel.h"
#include "values.h"

namespace tpu::eval {
namespace {

constexpr int64_t kTile = 32;
constexpr int64_t kParallelBytes = 1 << 19;

struct Bytes16 {
  uint64_t lo, hi;
};

struct Loop {
  int64_t size, from, to;  // trips, strides in elements
};

// Drops loops of one trip and joins neighbours that walk both arrays without a gap.
llvm::SmallVector<Loop, 6> simplify(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> from,
                                    llvm::ArrayRef<int64_t> to) {
  llvm::SmallVector<Loop, 6> loops;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    const Loop next{dims[d], from[d], to[d]};
    if (!loops.empty() && loops.back().from == next.from * next.size &&
        loops.back().to == next.to * next.size) {
      loops.back() = {loops.back().size * next.size, next.from, next.to};
    } else {
      loops.push_back(next);
    }
  }
  return loops;
}

template <class T>
void line(const T* from, T* to, const Loop& loop) {
  if (loop.from == 1 && loop.to == 1) {
    std::memcpy(to, from, loop.size * sizeof(T));
  } else if (loop.from == 0 && loop.to == 1) {
    std::fill(to, to + loop.size, *from);
  } else if (loop.to == 1) {
    for (int64_t i = 0; i < loop.size; ++i) to[i] = from[i * loop.from];
  } else {
    for (int64_t i = 0; i < loop.size; ++i) to[i * loop.to] = from[i * loop.from];
  }
}

// Two loops of which one is contiguous on each side: in tiles, so that both sides stay in the cache.
template <class T>
void plane(const T* from, T* to, const Loop& outer, const Loop& inner) {
  for (int64_t i0 = 0; i0 < outer.size; i0 += kTile)
    for (int64_t j0 = 0; j0 < inner.size; j0 += kTile)
      for (int64_t i = i0; i < std::min(outer.size, i0 + kTile); ++i)
        for (int64_t j = j0; j < std::min(inner.size, j0 + kTile); ++j)
          to[i * outer.to + j * inner.to] = from[i * outer.from + j * inner.from];
}

template <class T>
void walk(llvm::ArrayRef<Loop> loops, const T* from, T* to) {
  if (loops.size() == 1) return line(from, to, loops[0]);
  if (loops.size() == 2 && loops[0].from == 1 && loops[1].from != 1 && loops[1].to == 1)
    return plane(from, to, loops[0], loops[1]);
  for (int64_t i = 0; i < loops[0].size; ++i)
    walk(loops.drop_front(), from + i * loops[0].from, to + i * loops[0].to);
}

template <class T>
void copyAs(llvm::SmallVector<Loop, 6> loops, const uint8_t* from, uint8_t* to) {
  const T* f = reinterpret_cast<const T*>(from);
  T* t = reinterpret_cast<T*>(to);
  if (loops.empty()) {
    *t = *f;
    return;
  }
  // A loop that is contiguous in the source moves next to the innermost, so that the tiled plane takes it.
  const auto contiguous = std::find_if(loops.begin(), loops.end(), [](const Loop& l) { return l.from == 1; });
  if (contiguous != loops.end() && loops.size() > 2 && contiguous < loops.end() - 2 && loops.back().to == 1)
    std::rotate(contiguous, contiguous + 1, loops.end() - 1);
  int64_t elements = 1;
  for (const Loop& l : loops) elements *= l.size;
  if (elements * static_cast<int64_t>(sizeof(T)) < kParallelBytes) return walk<T>(loops, f, t);
  // Shares of the outermost loop, in whole tiles where it is one side of a plane.
  const int64_t step = loops.size() == 2 ? kTile : 1;
  const int64_t share = (loops[0].size / (4 * threads()) + step) / step * step;
  parallelFor((loops[0].size + share - 1) / share, [&](size_t task) {
    const int64_t first = static_cast<int64_t>(task) * share;
    llvm::SmallVector<Loop, 6> mine = loops;
    mine[0].size = std::min(share, loops[0].size - first);
    walk<T>(mine, f + first * loops[0].from, t + first * loops[0].to);
  });
}

}  // namespace

void stridedCopy(llvm::ArrayRef<int64_t> dims, int width, const uint8_t* from,
                 llvm::ArrayRef<int64_t> from_strides, uint8_t* to, llvm::ArrayRef<int64_t> to_strides) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  const auto loops = simplify(dims, from_strides, to_strides);
  switch (width) {
    case 1:
      return copyAs<uint8_t>(loops, from, to);
    case 2:
      return copyAs<uint16_t>(loops, from, to);
    case 4:
      return copyAs<uint32_t>(loops, from, to);
    case 8:
      return copyAs<uint64_t>(loops, from, to);
    default:
      return copyAs<Bytes16>(loops, from, to);
  }
}

std::vector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

Tensor transposed(const Tensor& t, llvm::ArrayRef<int64_t> permutation) {
  const std::vector<int64_t> strides = rowMajorStrides(t->dims);
  Dims dims;
  std::vector<int64_t> from;
  for (int64_t p : permutation) {
    dims.push_back(t->dims[p]);
    from.push_back(strides[p]);
  }
  if (std::is_sorted(permutation.begin(), permutation.end())) return t;
  Tensor out = rawTensor(t->element, dims);
  stridedCopy(dims, hostBytes(t->element), t->bytes.data(), from, out->bytes.data(), rowMajorStrides(dims));
  return out;
}

}  // namespace tpu::eval
