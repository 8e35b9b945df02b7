// Memory of a device as one flat range of the host's address space that costs nothing until touched. In
// strict runs it is poisoned: what nobody has written reads as 0xff - NaN, -1, and in the shadow memory
// "undefined" - else as zero. What a core uses most is taken from one arena, so that a small program touches one
// huge page of the host instead of hundreds of small ones.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tpu::emulate {

class Memory {
 public:
  Memory() = default;
  Memory(int64_t bytes, bool poison);
  ~Memory();
  Memory(Memory&& other) noexcept { *this = std::move(other); }
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    std::swap(borrowed_, other.borrowed_);
    return *this;
  }
  /// A part of another memory, which must outlive it.
  Memory part(int64_t at, int64_t bytes) const;
  uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
  size_t mapped_ = 0;  // 0: from the heap
  bool borrowed_ = false;
};

/// Memories one after another in one mapping, in the order in which they are taken.
class Arena {
 public:
  Arena() = default;
  /// Room for `bytes` of memories and the gaps between them. Poisoned memories get mappings of their own.
  Arena(int64_t bytes, int memories, bool poison);
  Memory take(int64_t bytes);

 private:
  static constexpr int64_t kAlign = 512;
  Memory room_;
  int64_t used_ = 0;
  bool poison_ = false;
};

// An array of plain values in such a memory.
template <class T>
class Lazy {
 public:
  Lazy() = default;
  Lazy(size_t size, bool poison) : memory_(static_cast<int64_t>(size * sizeof(T)), poison), size_(size) {}
  Lazy(size_t size, Arena& arena) : memory_(arena.take(static_cast<int64_t>(size * sizeof(T)))), size_(size) {}
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  static_assert(std::is_trivially_copyable_v<T>);
  Memory memory_;
  size_t size_ = 0;
};

}  // namespace tpu::emulate
