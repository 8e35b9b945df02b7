// Memory of a device as one flat range of the host's address space that costs nothing until touched. In
// strict runs it is poisoned: what nobody has written reads as 0xff - NaN, -1, and in the shadow memory
// "undefined" - else as zero.
#pragma once
#include <cstddef>
#include <cstdint>
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
    return *this;
  }
  uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
  size_t mapped_ = 0;  // 0: from the heap
};

}  // namespace tpu::emulate
