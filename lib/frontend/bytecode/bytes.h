// A place in a bytecode file and the primitives of the format: variable-width integers, counts, byte ranges.
//
// Errors are sticky, as in the text cursor: the first one is kept with its byte offset, and every step after
// it fails, so that loops end by themselves. A count is never larger than the bytes that are left, so nothing
// is allocated that the file could not fill.
#pragma once
#include <string>

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "tpu/support/diagnostics.h"

namespace tpu::frontend::bytecode {

/// The first thing found wrong in a file.
class Fault {
 public:
  bool set(Code code, uint64_t offset, const llvm::Twine& text) {
    if (!set_) {
      code_ = code;
      offset_ = offset;
      text_ = text.str();
      set_ = true;
    }
    return false;
  }
  bool isSet() const { return set_; }
  /// "file: text (byte 123)".
  llvm::Error take(llvm::StringRef filename) const;

 private:
  bool set_ = false;
  Code code_ = Code::kSyntaxError;
  uint64_t offset_ = 0;
  std::string text_;
};

class Bytes {
 public:
  Bytes(llvm::StringRef data, uint64_t offset, Fault& fault) : data_(data), offset_(offset), fault_(&fault) {}

  uint64_t offset() const { return offset_; }  // in the file
  size_t left() const { return data_.size(); }
  bool failed() const { return fault_->isSet(); }
  bool fail(const llvm::Twine& text) { return fault_->set(Code::kSyntaxError, offset_, text); }
  bool fail(Code code, const llvm::Twine& text) { return fault_->set(code, offset_, text); }

  bool byte(uint8_t& value);
  /// Up to 64 bits; the low zero bits of the first byte count the bytes that follow it.
  bool varint(uint64_t& value);
  /// The same with a flag in its lowest bit.
  bool flagged(uint64_t& value, bool& flag);
  /// Zigzag coded.
  bool svarint(int64_t& value);
  /// A number of things that take at least one byte each.
  bool count(uint64_t& value);
  /// A number below `limit`.
  bool index(uint64_t& value, size_t limit, llvm::StringRef what);
  bool take(uint64_t size, llvm::StringRef& bytes);
  /// A range of its own, for the content of a section or an entry.
  Bytes part(llvm::StringRef bytes) const {
    return Bytes(bytes, offset_ - static_cast<uint64_t>(data_.data() - bytes.data()), *fault_);
  }
  /// Text up to a NUL byte, which is taken too.
  bool cString(llvm::StringRef& text);

 private:
  llvm::StringRef data_;
  uint64_t offset_;
  Fault* fault_;
};

}  // namespace tpu::frontend::bytecode
