// Little-endian writing and bounds-checked reading of byte strings.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>

#include "llvm/ADT/StringRef.h"

namespace tpu::assembly {

class ByteWriter {
 public:
  template <class T>
  void fixed(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) out_ += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  }
  /// 7 bits a byte, low bits first.
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void signedVarint(int64_t value) {
    varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  void text(llvm::StringRef value) {
    varint(value.size());
    out_.append(value.data(), value.size());
  }
  void raw(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }
  std::string& str() { return out_; }

 private:
  std::string out_;
};

/// Reads never go beyond the end: after a failed read `failed()` is true and every further read gives zero or
/// nothing.
class ByteReader {
 public:
  explicit ByteReader(llvm::StringRef bytes) : bytes_(bytes) {}

  template <class T>
  T fixed() {
    if (bytes_.size() < sizeof(T)) return static_cast<T>(fail());
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t{static_cast<uint8_t>(bytes_[i])} << (8 * i);
    bytes_ = bytes_.drop_front(sizeof(T));
    return static_cast<T>(value);
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[0]);
      bytes_ = bytes_.drop_front();
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }
  int64_t signedVarint() {
    const uint64_t value = varint();
    return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  /// A count of things of at least `least` bytes each: a number that cannot fit in what is left fails.
  size_t count(size_t least) {
    const uint64_t n = varint();
    return n > bytes_.size() / least ? static_cast<size_t>(fail()) : static_cast<size_t>(n);
  }
  llvm::StringRef take(size_t size) {
    if (size > bytes_.size()) return fail(), llvm::StringRef();
    const llvm::StringRef part = bytes_.take_front(size);
    bytes_ = bytes_.drop_front(size);
    return part;
  }
  llvm::StringRef text() { return take(count(1)); }
  bool atEnd() const { return bytes_.empty(); }
  bool failed() const { return failed_; }

 private:
  uint64_t fail() {
    failed_ = true;
    bytes_ = {};
    return 0;
  }
  llvm::StringRef bytes_;
  bool failed_ = false;
};

}  // namespace tpu::assembly
