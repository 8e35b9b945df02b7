// Memory of a device as one flat range of the host's address space. It costs nothing until touched, and what nobody has
// written reads as 0xff: NaN, -1, and in the shadow memory of a strict run "undefined".
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tpu::emulate {

class Memory {
 public:
  Memory() = default;
  explicit Memory(int64_t bytes);
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
