// The memories of one device as the llo interpreter sees them: areas with unmapped space between them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tpu::emulate::llo_run {

class AddressSpace {
 public:
  explicit AddressSpace(uint32_t garbage) : garbage_(garbage) {}

  /// Maps a new area and returns its address, a multiple of 4096.
  int64_t add(int64_t bytes) {
    const int64_t address = next_;
    std::vector<uint8_t> data(static_cast<size_t>((bytes + 3) / 4 * 4));
    for (size_t i = 0; i < data.size(); i += 4) __builtin_memcpy(&data[i], &garbage_, 4);
    areas_[address] = std::move(data);
    next_ = (address + bytes + 4095) / 4096 * 4096 + kGap;
    return address;
  }
  void remove(int64_t address) { areas_.erase(address); }
  void refill(int64_t address) {
    std::vector<uint8_t>& data = areas_[address];
    for (size_t i = 0; i < data.size(); i += 4) __builtin_memcpy(&data[i], &garbage_, 4);
  }
  std::vector<uint8_t>& bytes(int64_t address) { return areas_[address]; }
  /// The bytes at [address, address + length), or null where any of them is not mapped.
  uint8_t* at(int64_t address, int64_t length) {
    if (address >= cached_begin_ && address + length <= cached_end_ && cached_version_ == next_)
      return cached_ + (address - cached_begin_);
    auto it = areas_.upper_bound(address);
    if (it == areas_.begin()) return nullptr;
    --it;
    const int64_t end = it->first + static_cast<int64_t>(it->second.size());
    if (length < 0 || address + length > end) return nullptr;
    cached_begin_ = it->first;
    cached_end_ = end;
    cached_ = it->second.data();
    cached_version_ = next_;
    return cached_ + (address - cached_begin_);
  }
  void forget() { cached_version_ = -1; }

 private:
  static constexpr int64_t kGap = 1 << 16;
  uint32_t garbage_;
  int64_t next_ = kGap;
  std::map<int64_t, std::vector<uint8_t>> areas_;
  int64_t cached_begin_ = 0, cached_end_ = 0, cached_version_ = -1;
  uint8_t* cached_ = nullptr;
};

}  // namespace tpu::emulate::llo_run
