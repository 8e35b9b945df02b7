// Tiled layouts and the conversion between row-major host arrays and their bytes in device memory. Conversion
// goes by word rows: 128 lanes of `packing` consecutive array rows, which the compiler turns into vector
// code.
#include "tpu/isa/layout.h"

#include <cassert>
#include <cstring>

#include "llvm/Support/MathExtras.h"

namespace tpu::isa {
namespace {

constexpr int64_t kLanes = 128;
constexpr int64_t kRowBytes = 512;

// An array seen as batch x rows x cols: rank 1 is one row, leading dimensions are merged.
struct Extent {
  int64_t batch = 1, rows = 1, cols = 1;
};

Extent extentOf(llvm::ArrayRef<int64_t> dims) {
  Extent e;
  if (!dims.empty()) e.cols = dims.back();
  if (dims.size() >= 2) e.rows = dims[dims.size() - 2];
  for (size_t i = 0; i + 2 < dims.size(); ++i) e.batch *= dims[i];
  return e;
}

int64_t elementCount(llvm::ArrayRef<int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

// Bits of one element as they stand in memory, from the host form.
template <class Host, bool kBool, uint32_t kMask>
uint32_t toBits(Host value) {
  if constexpr (kBool) return value != 0;
  return static_cast<uint32_t>(value) & kMask;
}

template <class Host, bool kSignExtend, int kBits>
Host fromBits(uint32_t word) {
  if constexpr (kSignExtend)
    return static_cast<Host>(static_cast<int32_t>(word << (32 - kBits)) >> (32 - kBits));
  return static_cast<Host>(kBits == 32 ? word : word & ((uint32_t{1} << (kBits & 31)) - 1));
}

// How one element type is converted. kPack elements share a word; kBool: stored as 0 or 1; kSignExtend: host
// form is wider.
template <class HostT, int kPackT, bool kBoolT = false, bool kSignExtendT = false>
struct Form {
  using Host = HostT;
  static constexpr int kPack = kPackT, kBits = 32 / kPackT;
  static constexpr bool kBool = kBoolT, kSignExtend = kSignExtendT;
  static constexpr uint32_t kMask = kBits == 32 ? ~0u : (1u << (kBits & 31)) - 1;
};

// One word row: `present` array rows starting at `host`, `stride` elements apart, `n` lanes.
template <class F>
void packRow(const typename F::Host* host, int64_t stride, int64_t present, int64_t n, uint32_t* words) {
  using Host = typename F::Host;
  if constexpr (F::kPack == 1) {
    std::memcpy(words, host, static_cast<size_t>(n) * 4);
    return;
  }
  if (present == F::kPack) {
    for (int64_t l = 0; l < n; ++l) {
      uint32_t word = 0;
      for (int k = 0; k < F::kPack; ++k)
        word |= toBits<Host, F::kBool, F::kMask>(host[k * stride + l]) << (k * F::kBits);
      words[l] = word;
    }
    return;
  }
  const uint32_t keep = ~0u << (present * F::kBits);
  for (int64_t l = 0; l < n; ++l) {
    uint32_t word = words[l] & keep;
    for (int64_t k = 0; k < present; ++k)
      word |= toBits<Host, F::kBool, F::kMask>(host[k * stride + l]) << (k * F::kBits);
    words[l] = word;
  }
}

template <class F>
void unpackRow(typename F::Host* host, int64_t stride, int64_t present, int64_t n, const uint32_t* words) {
  using Host = typename F::Host;
  if constexpr (F::kPack == 1) {
    std::memcpy(host, words, static_cast<size_t>(n) * 4);
    return;
  }
  for (int64_t k = 0; k < present; ++k)
    for (int64_t l = 0; l < n; ++l)
      host[k * stride + l] = fromBits<Host, F::kSignExtend, F::kBits>(words[l] >> (k * F::kBits));
}

// Calls f(host element index, present rows, lanes, word index) for every word row of the array.
template <class Fn>
void forEachWordRow(const Layout& layout, llvm::ArrayRef<int64_t> dims, Fn&& f) {
  const Extent e = extentOf(dims);
  const int64_t pack = layout.packing, groups = llvm::divideCeil(e.rows, pack),
                tile_groups = layout.tile_rows / pack;
  const int64_t row_tiles = llvm::divideCeil(e.rows, layout.tile_rows),
                col_tiles = llvm::divideCeil(e.cols, kLanes);
  for (int64_t b = 0; b < e.batch; ++b)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t c = 0; c < col_tiles; ++c) {
        const int64_t tile = (b * row_tiles + g / tile_groups) * col_tiles + c;
        const int64_t host = (b * e.rows + g * pack) * e.cols + c * kLanes;
        f(host, std::min(pack, e.rows - g * pack), std::min(kLanes, e.cols - c * kLanes),
          (tile * tile_groups + g % tile_groups) * kLanes);
      }
}

template <class F>
void packArray(const Layout& layout, llvm::ArrayRef<int64_t> dims, const uint8_t* host, uint8_t* memory) {
  const auto* from = reinterpret_cast<const typename F::Host*>(host);
  auto* to = reinterpret_cast<uint32_t*>(memory);
  const int64_t stride = extentOf(dims).cols;
  forEachWordRow(layout, dims, [&](int64_t element, int64_t present, int64_t lanes, int64_t word) {
    packRow<F>(from + element, stride, present, lanes, to + word);
  });
}

template <class F>
void unpackArray(const Layout& layout, llvm::ArrayRef<int64_t> dims, const uint8_t* memory, uint8_t* host) {
  auto* to = reinterpret_cast<typename F::Host*>(host);
  const auto* from = reinterpret_cast<const uint32_t*>(memory);
  const int64_t stride = extentOf(dims).cols;
  forEachWordRow(layout, dims, [&](int64_t element, int64_t present, int64_t lanes, int64_t word) {
    unpackRow<F>(to + element, stride, present, lanes, from + word);
  });
}

// Calls f.template operator()<Form>() for the form of a type.
template <class Fn>
void withForm(ElementType type, Fn&& f) {
  if (type == ElementType::kPred) return f.template operator()<Form<uint8_t, 4, true>>();
  const bool is_signed = isSigned(type);
  switch (packingOf(type)) {
    case 1:
      return f.template operator()<Form<uint32_t, 1>>();
    case 2:
      return f.template operator()<Form<uint16_t, 2>>();
    case 4:
      return f.template operator()<Form<uint8_t, 4>>();
    case 8:
      return is_signed ? f.template operator()<Form<uint8_t, 8, false, true>>()
                       : f.template operator()<Form<uint8_t, 8>>();
    default:
      return is_signed ? f.template operator()<Form<uint8_t, 16, false, true>>()
                       : f.template operator()<Form<uint8_t, 16>>();
  }
}

}  // namespace

int packingOf(ElementType type) {
  if (type == ElementType::kPred) return 4;
  const int bits = elementBits(type);
  assert(bits <= 32 && "64-bit types have no device layout");
  return 32 / static_cast<int>(llvm::PowerOf2Ceil(static_cast<uint64_t>(bits)));
}

Layout defaultLayout(ElementType type, llvm::ArrayRef<int64_t> dims) {
  Layout layout;
  layout.packing = packingOf(type);
  const int64_t rows = std::max<int64_t>(extentOf(dims).rows, 1);
  const int64_t wanted = static_cast<int64_t>(llvm::PowerOf2Ceil(static_cast<uint64_t>(rows)));
  layout.tile_rows = static_cast<int>(std::clamp<int64_t>(wanted, layout.packing, 8 * layout.packing));
  return layout;
}

int64_t layoutBytes(const Layout& layout, ElementType type, llvm::ArrayRef<int64_t> dims) {
  if (dims.empty()) return 4;
  if (layout.dense)
    return static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(elementCount(dims)) * 4, kRowBytes));
  const Extent e = extentOf(dims);
  return e.batch * llvm::divideCeil(e.rows, layout.tile_rows) * llvm::divideCeil(e.cols, kLanes) *
         (layout.tile_rows / layout.packing) * kRowBytes;
}

int64_t elementOffset(const Layout& layout, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> index,
                      int* sub) {
  *sub = 0;
  if (dims.empty()) return 0;
  const Extent e = extentOf(dims);
  int64_t batch = 0;
  for (size_t i = 0; i + 2 < dims.size(); ++i) batch = batch * dims[i] + index[i];
  const int64_t row = dims.size() >= 2 ? index[dims.size() - 2] : 0, col = index.back();
  if (layout.dense) return ((batch * e.rows + row) * e.cols + col) * 4;
  const int64_t tile = (batch * llvm::divideCeil(e.rows, layout.tile_rows) + row / layout.tile_rows) *
                           llvm::divideCeil(e.cols, kLanes) +
                       col / kLanes;
  const int64_t in_tile = row % layout.tile_rows;
  *sub = static_cast<int>(in_tile % layout.packing);
  return (tile * (layout.tile_rows / layout.packing) + in_tile / layout.packing) * kRowBytes +
         col % kLanes * 4;
}

void packHost(const Layout& layout, ElementType type, llvm::ArrayRef<int64_t> dims, const uint8_t* host,
              uint8_t* memory) {
  if (layout.dense) {
    assert(elementBits(type) == 32 && "the dense form holds 32-bit elements");
    std::memcpy(memory, host, static_cast<size_t>(elementCount(dims)) * 4);
    return;
  }
  withForm(type, [&]<class F>() { packArray<F>(layout, dims, host, memory); });
}

void unpackHost(const Layout& layout, ElementType type, llvm::ArrayRef<int64_t> dims, const uint8_t* memory,
                uint8_t* host) {
  if (layout.dense) {
    assert(elementBits(type) == 32 && "the dense form holds 32-bit elements");
    std::memcpy(host, memory, static_cast<size_t>(elementCount(dims)) * 4);
    return;
  }
  withForm(type, [&]<class F>() { unpackArray<F>(layout, dims, memory, host); });
}

}  // namespace tpu::isa
