// The one place that includes nlohmann/json: its SAX parser fills the tape.
#include <nlohmann/json.hpp>

#include "tape.h"

namespace tpu {
namespace {

using detail::JsonNode;
using detail::JsonTape;

/// Bytes of the text, telling the SAX handler how far the parser has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  CountingIterator(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& o) const { return at_ == o.at_; }
  bool operator!=(const CountingIterator& o) const { return at_ != o.at_; }

 private:
  const char* at_;
  const char** seen_;
};

class TapeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TapeBuilder(JsonTape* tape, const char* const* seen) : tape_(*tape), seen_(seen) {}

  bool null() override { return add(JsonKind::kNull, 0); }
  bool boolean(bool v) override {
    add(JsonKind::kBool, 0);
    tape_.nodes.back().b = v;
    return true;
  }
  bool number_integer(number_integer_t v) override {
    add(JsonKind::kInt, 1);
    tape_.nodes.back().i = v;
    return true;
  }
  bool number_unsigned(number_unsigned_t v) override {
    bool fits = v <= static_cast<uint64_t>(INT64_MAX);
    add(fits ? JsonKind::kInt : JsonKind::kUint, 1);
    tape_.nodes.back().u = v;
    return true;
  }
  bool number_float(number_float_t v, const string_t&) override {
    add(JsonKind::kDouble, 1);
    tape_.nodes.back().d = v;
    return true;
  }
  bool string(string_t& v) override { return addString(v); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(JsonKind::kObject); }
  bool key(string_t& v) override {
    addString(v);
    if (!open_.empty()) --tape_.nodes[open_.back()].size;  // a key is not an element of its own
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(JsonKind::kArray); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    error = e.what();
    error_offset = offset() > 0 ? offset() - 1 : 0;
    return false;
  }

  std::string error;
  uint64_t error_offset = 0;

 private:
  uint64_t offset() const { return static_cast<uint64_t>(*seen_ - tape_.text.data()); }

  /// `read_ahead`: bytes beyond the token's end that the parser has read (one for numbers).
  bool add(JsonKind kind, uint64_t read_ahead) {
    if (!open_.empty()) ++tape_.nodes[open_.back()].size;
    uint64_t end = offset();
    // A number at the very end of the text is followed by nothing that could have been read.
    if (read_ahead && !(end > 0 && std::isdigit(static_cast<unsigned char>(tape_.text[end - 1])))) end -= read_ahead;
    JsonNode node{};
    node.kind = kind;
    node.next = static_cast<uint32_t>(tape_.nodes.size() + 1);
    node.end_offset = end;
    tape_.nodes.push_back(node);
    return true;
  }
  bool addString(const std::string& v) {
    add(JsonKind::kString, 0);
    tape_.nodes.back().u = tape_.strings.size();
    tape_.nodes.back().size = static_cast<uint32_t>(v.size());
    tape_.strings += v;
    return true;
  }
  bool open(JsonKind kind) {
    if (open_.size() >= kMaxJsonDepth) {
      error = "nesting deeper than " + std::to_string(kMaxJsonDepth) + " levels";
      error_offset = offset() - 1;
      return false;
    }
    add(kind, 0);
    open_.push_back(static_cast<uint32_t>(tape_.nodes.size() - 1));
    return true;
  }
  bool close() {
    tape_.nodes[open_.back()].next = static_cast<uint32_t>(tape_.nodes.size());
    open_.pop_back();
    return true;
  }

  JsonTape& tape_;
  const char* const* seen_;
  std::vector<uint32_t> open_;
};

/// nlohmann's text without its prefix "[json.exception...] parse error at line 1, column 2: ".
llvm::StringRef plainReason(llvm::StringRef text) {
  size_t at = text.find(": ");
  if (text.starts_with("[json.exception") && at != llvm::StringRef::npos) text = text.drop_front(at + 2);
  at = text.find("; last read:");
  text = text.substr(0, at);
  text.consume_front("syntax error ");
  return text;
}

}  // namespace

llvm::Expected<JsonDoc> JsonDoc::parse(llvm::StringRef name, std::string text) {
  JsonDoc doc;
  doc.tape_ = std::make_unique<JsonTape>();
  JsonTape& tape = *doc.tape_;
  tape.name = name.str();
  tape.text = std::move(text);
  // More than 2^32 nodes cannot stand in fewer bytes, and a string's length must fit its 32 bits.
  if (tape.text.size() >= (uint64_t{1} << 32)) return fail(Code::kBadJson, name, "JSON text of 4 GiB or more");
  tape.nodes.reserve(tape.text.size() / 12 + 16);
  const char* begin = tape.text.data();
  const char* seen = begin;
  TapeBuilder builder(&tape, &seen);
  CountingIterator first(begin, &seen), last(begin + tape.text.size(), &seen);
  if (nlohmann::json::sax_parse(first, last, &builder)) return doc;
  llvm::StringRef reason = plainReason(builder.error);
  llvm::StringRef error = builder.error;
  bool truncated = error.contains("unexpected end of input") || error.contains("missing closing quote");
  uint64_t offset = truncated ? tape.text.size() : builder.error_offset;
  return fail(Code::kBadJson, detail::locateByte(name, tape.text, offset),
              (truncated ? "the document ends too early: " : "malformed JSON: ") + reason);
}

}  // namespace tpu
