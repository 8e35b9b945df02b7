// Plain memory is anonymous, in huge pages where the host gives them: faulting in small ones would take a
// tenth of a run. For poison, a file of 0xff bytes without a name is mapped copy-on-write over and over, so
// that a 16 GiB memory needs only the pages that a program writes. Where the host has no such files the
// memory is filled by hand.
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace tpu::emulate {
namespace {

constexpr size_t kPiece = size_t{16} << 20;
constexpr size_t kHugePage = size_t{2} << 20;

// The file, or -1.
int poisonFile() {
  static const int file = [] {
    const int fd = memfd_create("poison", MFD_CLOEXEC);
    if (fd < 0) return -1;
    const std::vector<uint8_t> block(size_t{1} << 20, 0xff);
    for (size_t done = 0; done < kPiece; done += block.size()) {
      if (write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size())) {
        close(fd);
        return -1;
      }
    }
    return fd;
  }();
  return file;
}

uint8_t* mapPlain(size_t bytes) {
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return base == MAP_FAILED ? nullptr : static_cast<uint8_t*>(base);
}

// `bytes`, whole huge pages, at the start of one: a mapping with room to spare is cut to fit.
uint8_t* mapHuge(size_t bytes) {
  uint8_t* room = mapPlain(bytes + kHugePage);
  if (!room) return nullptr;
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(room) % kHugePage) % kHugePage;
  if (before > 0) munmap(room, before);
  munmap(room + before + bytes, kHugePage - before);
  madvise(room + before, bytes, MADV_HUGEPAGE);  // a wish
  return room + before;
}

uint8_t* mapPoison(size_t bytes) {
  const int file = poisonFile();
  if (file < 0) return nullptr;
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  for (size_t at = 0; at < bytes; at += kPiece) {
    uint8_t* piece = static_cast<uint8_t*>(base) + at;
    const size_t length = std::min(kPiece, bytes - at);
    if (mmap(piece, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) ==
        MAP_FAILED) {
      munmap(base, bytes);
      return nullptr;
    }
  }
  return static_cast<uint8_t*>(base);
}

}  // namespace

Memory::Memory(int64_t bytes, bool poison) : bytes_(bytes) {
  if (bytes == 0) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const bool huge = !poison && static_cast<size_t>(bytes) > kHugePage / 2;
  const size_t unit = huge ? kHugePage : page;
  const size_t whole = (static_cast<size_t>(bytes) + unit - 1) / unit * unit;
  if (whole >= page * 4) data_ = poison ? mapPoison(whole) : huge ? mapHuge(whole) : mapPlain(whole);
  if (data_) {
    mapped_ = whole;
    return;
  }
  data_ = static_cast<uint8_t*>(std::aligned_alloc(64, (static_cast<size_t>(bytes) + 63) / 64 * 64));
  if (!data_) std::abort();
  std::memset(data_, poison ? 0xff : 0, static_cast<size_t>(bytes));
}

Memory::~Memory() {
  if (borrowed_) return;
  if (mapped_) munmap(data_, mapped_);
  if (!mapped_) std::free(data_);
}

Memory Memory::part(int64_t at, int64_t bytes) const {
  assert(at + bytes <= bytes_);
  Memory part;
  part.data_ = data_ + at;
  part.bytes_ = bytes;
  part.borrowed_ = true;
  return part;
}

Arena::Arena(int64_t bytes, int memories, bool poison) : poison_(poison) {
  if (!poison) room_ = Memory(bytes + memories * kAlign, false);
}

Memory Arena::take(int64_t bytes) {
  if (poison_) return Memory(bytes, true);
  const int64_t at = used_;
  used_ += (bytes + kAlign - 1) / kAlign * kAlign;
  return room_.part(at, bytes);
}

}  // namespace tpu::emulate
