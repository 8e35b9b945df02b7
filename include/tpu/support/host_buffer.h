// Bytes of an array in the memory of the host: as a vector of bytes, but new memory is not cleared unless
// asked for, and large blocks lie on large pages and are kept for the next buffer of their size when they are
// freed. Arithmetic on arrays that do not fit the caches is limited by memory, where clearing and page faults
// cost as much as the work itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "llvm/ADT/ArrayRef.h"

namespace tpu {

/// Memory for n bytes, aligned to 64, of any content. Thread-safe.
uint8_t* takeHostBlock(size_t n);
/// Gives back what takeHostBlock(n) returned.
void giveHostBlock(uint8_t* block, size_t n);

class HostBuffer {
 public:
  HostBuffer() = default;
  /// n zero bytes.
  explicit HostBuffer(size_t n) : HostBuffer(uninitialized(n)) { clearBytes(0, n); }
  HostBuffer(const uint8_t* begin, const uint8_t* end) { assign(begin, end); }
  HostBuffer(std::initializer_list<uint8_t> values) { assign(values.begin(), values.end()); }
  HostBuffer(llvm::ArrayRef<uint8_t> values) { assign(values.begin(), values.end()); }  // NOLINT: as a vector
  HostBuffer(const std::vector<uint8_t>& values) {
    assign(values.data(), values.data() + values.size());
  }  // NOLINT
  HostBuffer(const HostBuffer& other) { assign(other.begin(), other.end()); }
  HostBuffer(HostBuffer&& other) noexcept { swap(other); }
  HostBuffer& operator=(const HostBuffer& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~HostBuffer() {
    if (data_) giveHostBlock(data_, capacity_);
  }
  /// n bytes of any content: for those who write all of them.
  static HostBuffer uninitialized(size_t n) {
    HostBuffer b;
    b.fresh(n);
    return b;
  }

  operator llvm::ArrayRef<uint8_t>() const { return {data_, size_}; }  // NOLINT: as a vector

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  uint8_t* begin() { return data_; }
  uint8_t* end() { return data_ + size_; }
  const uint8_t* begin() const { return data_; }
  const uint8_t* end() const { return data_ + size_; }
  uint8_t& operator[](size_t i) { return data_[i]; }
  const uint8_t& operator[](size_t i) const { return data_[i]; }

  void assign(const uint8_t* begin, const uint8_t* end) {
    fresh(static_cast<size_t>(end - begin));
    if (size_) std::memcpy(data_, begin, size_);
  }
  /// New bytes are zero.
  void resize(size_t n) {
    const size_t old = size_;
    if (n > capacity_) {
      HostBuffer larger = uninitialized(n);
      if (old) std::memcpy(larger.data_, data_, old);
      swap(larger);
    }
    size_ = n;
    if (n > old) clearBytes(old, n);
  }
  void swap(HostBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  friend bool operator==(const HostBuffer& a, const HostBuffer& b) {
    return a.size_ == b.size_ && (a.size_ == 0 || std::memcmp(a.data_, b.data_, a.size_) == 0);
  }

 private:
  void fresh(size_t n) {
    if (n > capacity_) {
      if (data_) giveHostBlock(data_, capacity_);
      data_ = takeHostBlock(n);
      capacity_ = n;
    }
    size_ = n;
  }
  void clearBytes(size_t from, size_t to) {
    if (to > from) std::memset(data_ + from, 0, to - from);
  }

  uint8_t* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace tpu
