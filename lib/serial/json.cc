// Views of the tape.
#include "tpu/serial/json.h"

#include <algorithm>
#include <limits>

#include "tape.h"

namespace tpu {

using detail::JsonNode;
using detail::JsonTape;

namespace detail {

std::string locateByte(llvm::StringRef name, llvm::StringRef text, uint64_t offset) {
  llvm::StringRef before = text.take_front(offset);
  size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  size_t start = before.rfind('\n');
  size_t column = offset - (start == llvm::StringRef::npos ? 0 : start + 1) + 1;
  return (name + ":" + llvm::Twine(line) + ":" + llvm::Twine(column)).str();
}

namespace {

bool isNumberChar(char c) { return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'; }

/// The first byte of the string whose closing quote is text[end - 1].
uint64_t stringStart(llvm::StringRef text, uint64_t end) {
  uint64_t at = end - 1;
  while (at > 0) {
    --at;
    if (text[at] != '"') continue;
    uint64_t slashes = 0;
    while (slashes < at && text[at - 1 - slashes] == '\\') ++slashes;
    if (slashes % 2 == 0) break;
  }
  return at;
}

}  // namespace

std::string JsonTape::locate(const JsonNode& n) const {
  uint64_t at = n.end_offset;
  switch (n.kind) {
    case JsonKind::kNull: at -= 4; break;
    case JsonKind::kBool: at -= n.b ? 4 : 5; break;
    case JsonKind::kString: at = stringStart(text, at); break;
    case JsonKind::kArray:
    case JsonKind::kObject: at -= 1; break;
    default:
      while (at > 0 && isNumberChar(text[at - 1])) --at;
  }
  return locateByte(name, text, at);
}

}  // namespace detail

llvm::StringRef jsonKindName(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull: return "null";
    case JsonKind::kBool: return "a boolean";
    case JsonKind::kInt:
    case JsonKind::kUint: return "an integer";
    case JsonKind::kDouble: return "a number";
    case JsonKind::kString: return "a string";
    case JsonKind::kArray: return "an array";
    case JsonKind::kObject: return "an object";
  }
  return "";
}

JsonDoc::JsonDoc(JsonDoc&&) noexcept = default;
JsonDoc& JsonDoc::operator=(JsonDoc&&) noexcept = default;
JsonDoc::~JsonDoc() = default;
llvm::StringRef JsonDoc::name() const { return tape_->name; }

JsonKind JsonValue::kind() const { return tape_->nodes[node_].kind; }

std::optional<bool> JsonValue::asBool() const {
  const JsonNode& n = tape_->nodes[node_];
  return n.kind == JsonKind::kBool ? std::optional(n.b) : std::nullopt;
}

std::optional<int64_t> JsonValue::asInt() const {
  const JsonNode& n = tape_->nodes[node_];
  return n.kind == JsonKind::kInt ? std::optional(n.i) : std::nullopt;
}

std::optional<uint64_t> JsonValue::asUint() const {
  const JsonNode& n = tape_->nodes[node_];
  if (n.kind == JsonKind::kUint || (n.kind == JsonKind::kInt && n.i >= 0)) return n.u;
  return std::nullopt;
}

std::optional<double> JsonValue::asDouble() const {
  const JsonNode& n = tape_->nodes[node_];
  switch (n.kind) {
    case JsonKind::kInt: return static_cast<double>(n.i);
    case JsonKind::kUint: return static_cast<double>(n.u);
    case JsonKind::kDouble: return n.d;
    case JsonKind::kString: break;
    default: return std::nullopt;
  }
  llvm::StringRef s = tape_->string(n);
  if (s == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (s == "inf") return std::numeric_limits<double>::infinity();
  if (s == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::optional<llvm::StringRef> JsonValue::asString() const {
  const JsonNode& n = tape_->nodes[node_];
  return n.kind == JsonKind::kString ? std::optional(tape_->string(n)) : std::nullopt;
}

uint32_t JsonValue::size() const { return isArray() || isObject() ? tape_->nodes[node_].size : 0; }

JsonValue::Range JsonValue::elements() const {
  uint32_t end = isArray() ? tape_->nodes[node_].next : node_ + 1;
  return {{tape_, node_ + 1}, {tape_, end}};
}

JsonValue::MemberRange JsonValue::members() const {
  uint32_t end = isObject() ? tape_->nodes[node_].next : node_ + 1;
  return {{tape_, node_ + 1}, {tape_, end}};
}

std::optional<JsonValue> JsonValue::find(llvm::StringRef key) const {
  for (JsonMember m : members())
    if (m.key == key) return m.value;
  return std::nullopt;
}

bool JsonValue::readInts(llvm::SmallVectorImpl<int64_t>* out) const {
  out->clear();
  if (!isArray()) return false;
  out->reserve(size());
  for (JsonValue v : elements()) {
    std::optional<int64_t> i = v.asInt();
    if (!i) {
      out->clear();
      return false;
    }
    out->push_back(*i);
  }
  return true;
}

std::string JsonValue::loc() const { return tape_->locate(tape_->nodes[node_]); }

JsonValue::Iterator& JsonValue::Iterator::operator++() {
  node_ = tape_->nodes[node_].next;
  return *this;
}

JsonMember JsonValue::MemberIterator::operator*() const {
  return {tape_->string(tape_->nodes[node_]), JsonValue(tape_, node_ + 1)};
}

JsonValue::MemberIterator& JsonValue::MemberIterator::operator++() {
  node_ = tape_->nodes[node_ + 1].next;
  return *this;
}

bool looksLikeJson(llvm::StringRef bytes) { return bytes.ltrim(" \t\r\n").starts_with("{"); }

}  // namespace tpu
