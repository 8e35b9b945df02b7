// Writing canonical JSON: no spaces, keys in the order the caller gives, one form per number, valid UTF-8.
// Doubles are the shortest text that reads back to the same bits; nan and infinities are the strings "nan", "inf", "-inf".
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace tpu {

class JsonWriter {
 public:
  explicit JsonWriter(llvm::raw_ostream& os) : os_(&os) {}

  JsonWriter& beginObject();
  JsonWriter& endObject();
  JsonWriter& beginArray();
  JsonWriter& endArray();
  JsonWriter& key(llvm::StringRef name);

  JsonWriter& null();
  JsonWriter& boolean(bool value);
  JsonWriter& integer(int64_t value);
  JsonWriter& uinteger(uint64_t value);
  JsonWriter& number(double value);
  JsonWriter& string(llvm::StringRef value);
  JsonWriter& ints(llvm::ArrayRef<int64_t> values);
  JsonWriter& strings(llvm::ArrayRef<std::string> values);
  /// A value that is JSON text already.
  JsonWriter& raw(llvm::StringRef json);

  // key and value in one
  JsonWriter& field(llvm::StringRef name, int64_t value) { return key(name).integer(value); }
  JsonWriter& field(llvm::StringRef name, int value) { return key(name).integer(value); }
  JsonWriter& field(llvm::StringRef name, uint32_t value) { return key(name).uinteger(value); }
  JsonWriter& field(llvm::StringRef name, uint64_t value) { return key(name).uinteger(value); }
  JsonWriter& field(llvm::StringRef name, double value) { return key(name).number(value); }
  JsonWriter& field(llvm::StringRef name, bool value) { return key(name).boolean(value); }
  JsonWriter& field(llvm::StringRef name, llvm::StringRef value) { return key(name).string(value); }
  JsonWriter& field(llvm::StringRef name, const std::string& value) { return key(name).string(value); }
  JsonWriter& field(llvm::StringRef name, const char* value) { return key(name).string(value); }
  JsonWriter& field(llvm::StringRef name, llvm::ArrayRef<int64_t> values) { return key(name).ints(values); }
  /// What is unknown is null.
  template <class T>
  JsonWriter& field(llvm::StringRef name, const std::optional<T>& value) {
    return value ? field(name, *value) : key(name).null();
  }

 private:
  void separate();
  llvm::raw_ostream* os_;
  llvm::SmallVector<bool, 16> first_ = {true};  // per open container: nothing written in it yet
  bool after_key_ = false;
};

/// `value` as a JSON string with its quotes.
void writeJsonString(llvm::raw_ostream& os, llvm::StringRef value);
void writeJsonNumber(llvm::raw_ostream& os, double value);

}  // namespace tpu
