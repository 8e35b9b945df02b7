// Transfers: what a descriptor says, which bytes it touches, and who owns them until a wait covers it.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "tpu/isa/dma.h"

namespace tpu::emulate {

/// The bytes of one side of a transfer: n[2] x n[1] x n[0] runs of `run` bytes.
struct Pattern {
  isa::Space space = isa::Space::kHbm;
  int64_t base = 0, run = 0;
  std::array<int64_t, 3> n{1, 1, 1}, stride{0, 0, 0};

  int64_t bytes() const { return run * n[0] * n[1] * n[2]; }
  int64_t low() const;   // first byte touched
  int64_t high() const;  // one past the last byte touched
  /// Start of run `index`, counted with n[0] fastest.
  int64_t runStart(int64_t index) const {
    const int64_t i0 = index % n[0], rest = index / n[0];
    return base + i0 * stride[0] + rest % n[1] * stride[1] + rest / n[1] * stride[2];
  }
  int64_t runs() const { return n[0] * n[1] * n[2]; }
  /// Joins runs that follow one another without a gap.
  void simplify();
  /// Whether any byte of [begin, end) is touched.
  bool touches(int64_t begin, int64_t end) const;
  bool touches(const Pattern& other) const;
};

/// Cost of a piece of a side: bytes of whole granules, those that are only written in part counted twice if
/// `write`.
int64_t granuleBytes(int64_t start, int64_t length, int granule, bool write);

/// A transfer under way at its source, or its arriving half at another device.
struct Transfer {
  uint64_t id = 0;
  int64_t source_device = 0, dest_device = 0;
  Pattern from, to;
  uint32_t source_sem = isa::kNoSemaphore, dest_sem = isa::kNoSemaphore;
  int64_t issue = 0;  // ticks
  int64_t bytes = 0;
  int64_t served = 0;  // bytes read so far, in the order of the runs
  bool done_at_source = false, done_at_dest = false;
  bool owns_from = false, owns_to = false;
  int64_t last_landing = 0;  // ticks, at the destination
  int64_t began = 0;         // ticks, first service
  uint32_t pc = 0, loc = 0;  // of the dma.start
  int queue = -1;
  std::shared_ptr<const Transfer> info;  // remote transfers: as it was started, for the far end
};
using TransferPtr = std::shared_ptr<Transfer>;

/// Calls f(source address, destination address, length) for pieces of bytes [begin, end) of a transfer, in
/// order; a piece lies in one run of either side.
void forEachPiece(const Pattern& from, const Pattern& to, int64_t begin, int64_t end,
                  llvm::function_ref<void(int64_t, int64_t, int64_t)> f);

}  // namespace tpu::emulate
