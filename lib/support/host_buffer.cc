// Large blocks are mapped alone, on large pages, and kept by their size when they are given back, up to a
// limit.
#include "tpu/support/host_buffer.h"

#include <sys/mman.h>

#include <array>
#include <bit>
#include <mutex>
#include <new>

#include "llvm/Support/ErrorHandling.h"

namespace tpu {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kLarge = SIZE_MAX;  // so that every use after the end is seen
#else
constexpr size_t kLarge = size_t{1} << 19;
#endif
constexpr size_t kPage = size_t{2} << 20;        // a large page
constexpr size_t kMostKept = size_t{512} << 20;  // bytes held for the next buffers
constexpr std::align_val_t kAlignment{64};

// Sizes of blocks: four steps to each doubling, so at most a quarter of a block is waste, which is never
// touched.
size_t roundedUp(size_t n) {
  const size_t step = std::bit_floor(n) / 4;
  return (n + step - 1) / step * step;
}

size_t classOf(size_t rounded) {
  const size_t low = std::bit_floor(rounded);
  return static_cast<size_t>(std::countr_zero(low)) * 4 + (rounded - low) / (low / 4);
}

uint8_t* mapBlock(size_t n) {
  // Blocks of a large page and more begin on one.
  const size_t slack = n >= kPage ? kPage : 0;
  void* whole = mmap(nullptr, n + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) llvm::report_bad_alloc_error("out of memory for an array");
  auto* start = static_cast<uint8_t*>(whole);
  if (!slack) return start;
  const size_t skip = (kPage - reinterpret_cast<uintptr_t>(start) % kPage) % kPage;
  if (skip) munmap(start, skip);
  if (slack > skip) munmap(start + skip + n, slack - skip);
  madvise(start + skip, n, MADV_HUGEPAGE);
  return start + skip;
}

class Pool {
 public:
  uint8_t* take(size_t rounded) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::vector<uint8_t*>& free = free_[classOf(rounded)];
      if (!free.empty()) {
        uint8_t* block = free.back();
        free.pop_back();
        kept_ -= rounded;
        return block;
      }
    }
    return mapBlock(rounded);
  }
  void give(uint8_t* block, size_t rounded) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (kept_ + rounded <= kMostKept) {
        kept_ += rounded;
        free_[classOf(rounded)].push_back(block);
        return;
      }
    }
    munmap(block, rounded);
  }

 private:
  std::mutex mutex_;
  std::array<std::vector<uint8_t*>, 64 * 4> free_;
  size_t kept_ = 0;
};

// Never destroyed: buffers of static lifetime may be freed after it would be.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

}  // namespace

uint8_t* takeHostBlock(size_t n) {
  if (n >= kLarge) return pool().take(roundedUp(n));
  return static_cast<uint8_t*>(operator new(n ? n : 1, kAlignment));
}

void giveHostBlock(uint8_t* block, size_t n) {
  if (n >= kLarge) return pool().give(block, roundedUp(n));
  operator delete(block, kAlignment);
}

}  // namespace tpu
