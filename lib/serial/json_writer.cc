// Canonical JSON text.
#include "tpu/serial/json_writer.h"

#include <cassert>
#include <charconv>
#include <cmath>

#include "llvm/Support/ConvertUTF.h"

namespace tpu {

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_.back()) *os_ << ',';
  first_.back() = false;
}

JsonWriter& JsonWriter::beginObject() {
  separate();
  *os_ << '{';
  first_.push_back(true);
  return *this;
}
JsonWriter& JsonWriter::endObject() {
  assert(first_.size() > 1 && !after_key_ && "endObject without beginObject, or after a key");
  first_.pop_back();
  *os_ << '}';
  return *this;
}
JsonWriter& JsonWriter::beginArray() {
  separate();
  *os_ << '[';
  first_.push_back(true);
  return *this;
}
JsonWriter& JsonWriter::endArray() {
  assert(first_.size() > 1 && !after_key_ && "endArray without beginArray, or after a key");
  first_.pop_back();
  *os_ << ']';
  return *this;
}
JsonWriter& JsonWriter::key(llvm::StringRef name) {
  separate();
  writeJsonString(*os_, name);
  *os_ << ':';
  after_key_ = true;
  return *this;
}
JsonWriter& JsonWriter::null() {
  separate();
  *os_ << "null";
  return *this;
}
JsonWriter& JsonWriter::boolean(bool value) {
  separate();
  *os_ << (value ? "true" : "false");
  return *this;
}
JsonWriter& JsonWriter::integer(int64_t value) {
  separate();
  *os_ << value;
  return *this;
}
JsonWriter& JsonWriter::uinteger(uint64_t value) {
  separate();
  *os_ << value;
  return *this;
}
JsonWriter& JsonWriter::number(double value) {
  separate();
  writeJsonNumber(*os_, value);
  return *this;
}
JsonWriter& JsonWriter::string(llvm::StringRef value) {
  separate();
  writeJsonString(*os_, value);
  return *this;
}
JsonWriter& JsonWriter::raw(llvm::StringRef json) {
  separate();
  *os_ << json;
  return *this;
}
JsonWriter& JsonWriter::ints(llvm::ArrayRef<int64_t> values) {
  beginArray();
  for (int64_t v : values) integer(v);
  return endArray();
}
JsonWriter& JsonWriter::strings(llvm::ArrayRef<std::string> values) {
  beginArray();
  for (const std::string& v : values) string(v);
  return endArray();
}

void writeJsonNumber(llvm::raw_ostream& os, double value) {
  if (std::isnan(value)) {
    os << "\"nan\"";
  } else if (std::isinf(value)) {
    os << (value < 0 ? "\"-inf\"" : "\"inf\"");
  } else if (value == 0 && std::signbit(value)) {
    os << "-0.0";  // "-0" would be read as an integer, which has no sign
  } else {
    char text[32];
    std::to_chars_result r = std::to_chars(text, text + sizeof text, value);
    os << llvm::StringRef(text, static_cast<size_t>(r.ptr - text));
  }
}

namespace {

bool isPlain(char c) { return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f && c != '"' && c != '\\'; }

void writeEscape(llvm::raw_ostream& os, char c) {
  switch (c) {
    case '"': os << "\\\""; return;
    case '\\': os << "\\\\"; return;
    case '\b': os << "\\b"; return;
    case '\f': os << "\\f"; return;
    case '\n': os << "\\n"; return;
    case '\r': os << "\\r"; return;
    case '\t': os << "\\t"; return;
    default: break;
  }
  const char* hex = "0123456789abcdef";
  auto u = static_cast<unsigned char>(c);
  os << "\\u00" << hex[u >> 4] << hex[u & 15];
}

/// Length of the UTF-8 sequence at the start of `s`, 0 where there is none.
unsigned utf8Length(llvm::StringRef s) {
  auto* begin = reinterpret_cast<const llvm::UTF8*>(s.data());
  unsigned n = llvm::getNumBytesForUTF8(*begin);
  return n <= s.size() && llvm::isLegalUTF8Sequence(begin, begin + n) ? n : 0;
}

}  // namespace

void writeJsonString(llvm::raw_ostream& os, llvm::StringRef value) {
  os << '"';
  while (!value.empty()) {
    size_t plain = 0;
    while (plain < value.size() && isPlain(value[plain])) ++plain;
    os << value.take_front(plain);
    value = value.drop_front(plain);
    if (value.empty()) break;
    if (static_cast<unsigned char>(value[0]) < 0x80) {
      writeEscape(os, value[0]);
      value = value.drop_front(1);
    } else if (unsigned n = utf8Length(value)) {
      os << value.take_front(n);
      value = value.drop_front(n);
    } else {
      os << "\xef\xbf\xbd";  // the replacement character stands for each byte that is no UTF-8
      value = value.drop_front(1);
    }
  }
  os << '"';
}

}  // namespace tpu
