// Reading JSON without its library's header: a document parsed once into a flat tape of nodes, seen through light
// values that know where they stand in the text. Integers of 64 bits are exact. Any bytes are safe input: what is not
// JSON is refused with its line and column, nesting deeper than kMaxJsonDepth as well.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "tpu/support/diagnostics.h"

namespace tpu {

inline constexpr int kMaxJsonDepth = 256;

enum class JsonKind : uint8_t { kNull, kBool, kInt, kUint, kDouble, kString, kArray, kObject };
/// "an integer", "a string" ...: for messages.
llvm::StringRef jsonKindName(JsonKind kind);

namespace detail {
struct JsonTape;
}

/// A view of one value; valid as long as its JsonDoc. Copy freely.
class JsonValue {
 public:
  JsonValue() = default;
  JsonValue(const detail::JsonTape* tape, uint32_t node) : tape_(tape), node_(node) {}

  JsonKind kind() const;
  bool isNull() const { return kind() == JsonKind::kNull; }
  bool isObject() const { return kind() == JsonKind::kObject; }
  bool isArray() const { return kind() == JsonKind::kArray; }
  bool isString() const { return kind() == JsonKind::kString; }
  std::optional<bool> asBool() const;
  std::optional<int64_t> asInt() const;    // integers that fit
  std::optional<uint64_t> asUint() const;  // non-negative integers
  /// Any number, and the strings "nan", "inf", "-inf" by which documents write what JSON has no number for.
  std::optional<double> asDouble() const;
  std::optional<llvm::StringRef> asString() const;

  /// Number of elements or members; 0 for anything else.
  uint32_t size() const;
  /// Elements of an array; nothing for anything else: `for (JsonValue v : value.elements())`.
  class Iterator;
  struct Range;
  Range elements() const;
  /// Members of an object, in document order.
  class MemberIterator;
  struct MemberRange;
  MemberRange members() const;
  /// The first member of that name. Linear: rows are short; use FieldReader to read many.
  std::optional<JsonValue> find(llvm::StringRef key) const;
  /// All elements as integers; false when this is not an array of integers.
  bool readInts(llvm::SmallVectorImpl<int64_t>* out) const;

  /// "file:line:col" of the value's first character.
  std::string loc() const;

 private:
  friend class FieldReader;
  const detail::JsonTape* tape_ = nullptr;
  uint32_t node_ = 0;
};

struct JsonMember {
  llvm::StringRef key;
  JsonValue value;
};

class JsonValue::Iterator {
 public:
  Iterator(const detail::JsonTape* tape, uint32_t node) : tape_(tape), node_(node) {}
  JsonValue operator*() const { return {tape_, node_}; }
  Iterator& operator++();
  bool operator!=(const Iterator& o) const { return node_ != o.node_; }

 private:
  const detail::JsonTape* tape_;
  uint32_t node_;
};
struct JsonValue::Range {
  Iterator first, last;
  Iterator begin() const { return first; }
  Iterator end() const { return last; }
};
class JsonValue::MemberIterator {
 public:
  MemberIterator(const detail::JsonTape* tape, uint32_t node) : tape_(tape), node_(node) {}
  JsonMember operator*() const;
  MemberIterator& operator++();
  bool operator!=(const MemberIterator& o) const { return node_ != o.node_; }

 private:
  friend class FieldReader;
  const detail::JsonTape* tape_;
  uint32_t node_;  // of the key; the value follows it
};
struct JsonValue::MemberRange {
  MemberIterator first, last;
  MemberIterator begin() const { return first; }
  MemberIterator end() const { return last; }
};

/// One JSON text and its tape. Move-only; values stay valid when it moves.
class JsonDoc {
 public:
  JsonDoc(JsonDoc&&) noexcept;
  JsonDoc& operator=(JsonDoc&&) noexcept;
  ~JsonDoc();
  /// `name` is the file of locations. Refusals are kBadJson at line and column.
  static llvm::Expected<JsonDoc> parse(llvm::StringRef name, std::string text);
  JsonValue root() const { return {tape_.get(), 0}; }
  llvm::StringRef name() const;

 private:
  JsonDoc() = default;
  std::unique_ptr<detail::JsonTape> tape_;
};

/// True when the first character that is not space opens an object: how tools tell documents from text.
bool looksLikeJson(llvm::StringRef bytes);

}  // namespace tpu
