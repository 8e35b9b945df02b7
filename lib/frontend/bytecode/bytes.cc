// Reading the primitives of MLIR bytecode.
#include "bytes.h"

#include <algorithm>
#include <bit>

namespace tpu::frontend::bytecode {

llvm::Error Fault::take(llvm::StringRef filename) const {
  return tpu::fail(code_, filename, text_ + " (byte " + std::to_string(offset_) + ")");
}

bool Bytes::take(uint64_t size, llvm::StringRef& bytes) {
  if (failed()) return false;
  if (size > data_.size())
    return fail("the file ends, or a section does: " + llvm::Twine(size) + " bytes are needed, " +
                llvm::Twine(data_.size()) + " are left");
  bytes = data_.take_front(size);
  data_ = data_.drop_front(size);
  offset_ += size;
  return true;
}

bool Bytes::byte(uint8_t& value) {
  llvm::StringRef one;
  if (!take(1, one)) return false;
  value = static_cast<uint8_t>(one[0]);
  return true;
}

bool Bytes::varint(uint64_t& value) {
  uint8_t first;
  if (!byte(first)) return false;
  int more = first ? std::countr_zero(first) : 8;
  llvm::StringRef rest;
  if (!take(static_cast<uint64_t>(more), rest)) return false;
  uint64_t high = 0;
  for (int i = more; i-- > 0;) high = high << 8 | static_cast<uint8_t>(rest[static_cast<size_t>(i)]);
  value = more == 8 ? high : high << (7 - more) | static_cast<uint64_t>(first) >> (more + 1);
  return true;
}

bool Bytes::flagged(uint64_t& value, bool& flag) {
  if (!varint(value)) return false;
  flag = value & 1;
  value >>= 1;
  return true;
}

bool Bytes::svarint(int64_t& value) {
  uint64_t bits;
  if (!varint(bits)) return false;
  value = static_cast<int64_t>(bits >> 1 ^ (~(bits & 1) + 1));
  return true;
}

bool Bytes::count(uint64_t& value) {
  if (!varint(value)) return false;
  if (value > data_.size())
    return fail("a list of " + llvm::Twine(value) + " entries where " + llvm::Twine(data_.size()) +
                " bytes are left");
  return true;
}

bool Bytes::index(uint64_t& value, size_t limit, llvm::StringRef what) {
  if (!varint(value)) return false;
  if (value >= limit)
    return fail(what + " " + llvm::Twine(value) + " of " + llvm::Twine(limit) + " is referred to");
  return true;
}

bool Bytes::cString(llvm::StringRef& text) {
  if (failed()) return false;
  size_t end = data_.find('\0');
  if (end == llvm::StringRef::npos) return fail("a text does not end");
  llvm::StringRef nul;
  return take(end, text) && take(1, nul);
}

}  // namespace tpu::frontend::bytecode
