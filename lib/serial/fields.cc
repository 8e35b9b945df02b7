// FieldReader: every field of an object is asked for or refused.
#include "tpu/serial/fields.h"

#include "tape.h"

namespace tpu {

FieldReader::FieldReader(JsonValue object, llvm::StringRef what) : object_(object), what_(what) {
  if (!object.isObject()) {
    record(Code::kBadField, object.loc(), what + ": expected an object, found " + jsonKindName(object.kind()));
    return;
  }
  used_.assign(object.size(), false);
  next_node_ = object.node_ + 1;
}

void FieldReader::record(Code code, std::string loc, const llvm::Twine& text) {
  if (problem_) return;
  problem_.emplace();
  problem_->code = code;
  problem_->loc = std::move(loc);
  problem_->text = text.str();
}

std::optional<JsonValue> FieldReader::lookup(llvm::StringRef key) {
  const detail::JsonTape* tape = object_.tape_;
  uint32_t count = static_cast<uint32_t>(used_.size());
  for (uint32_t tried = 0; tried < count; ++tried) {
    if (next_ == count) {
      next_ = 0;
      next_node_ = object_.node_ + 1;
    }
    uint32_t index = next_++, node = next_node_;
    next_node_ = tape->nodes[node + 1].next;
    if (used_[index] || tape->string(tape->nodes[node]) != key) continue;
    used_[index] = true;
    return JsonValue(tape, node + 1);
  }
  return std::nullopt;
}

std::optional<JsonValue> FieldReader::optional(llvm::StringRef key) {
  std::optional<JsonValue> v = lookup(key);
  if (v && v->isNull()) return std::nullopt;
  return v;
}

std::optional<JsonValue> FieldReader::required(llvm::StringRef key) {
  std::optional<JsonValue> v = lookup(key);
  if (!v) record(Code::kBadField, object_.loc(), what_ + " without the field \"" + key + "\"");
  return v;
}

void FieldReader::wrongKind(llvm::StringRef key, JsonValue got, const llvm::Twine& expected) {
  record(Code::kBadField, got.loc(), what_ + ", field \"" + key + "\": expected " + expected + ", found " +
                                         jsonKindName(got.kind()));
}

void FieldReader::bad(llvm::StringRef key, const llvm::Twine& text) {
  std::optional<JsonValue> v = object_.find(key);
  record(Code::kBadField, v ? v->loc() : object_.loc(), what_ + ", field \"" + key + "\": " + text);
}

template <class T>
T FieldReader::take(std::optional<JsonValue> v, llvm::StringRef key, std::optional<T> (JsonValue::*as)() const,
                    const char* expected, T otherwise) {
  if (!v) return otherwise;
  std::optional<T> got = ((*v).*as)();
  if (got) return *got;
  wrongKind(key, *v, expected);
  return otherwise;
}

int64_t FieldReader::inRange(std::optional<JsonValue> v, llvm::StringRef key, int64_t otherwise, int64_t min, int64_t max) {
  if (!v) return otherwise;
  std::optional<int64_t> got = v->asInt();
  if (!got) {
    wrongKind(key, *v, "an integer");
    return otherwise;
  }
  if (*got >= min && *got <= max) return *got;
  record(Code::kBadField, v->loc(), what_ + ", field \"" + key + "\": " + llvm::Twine(*got) + " is not in " +
                                        llvm::Twine(min) + ".." + llvm::Twine(max));
  return otherwise;
}

int64_t FieldReader::requiredInt(llvm::StringRef key, int64_t min, int64_t max) {
  return inRange(required(key), key, 0, min, max);
}
int64_t FieldReader::optionalInt(llvm::StringRef key, int64_t otherwise, int64_t min, int64_t max) {
  return inRange(optional(key), key, otherwise, min, max);
}
bool FieldReader::optionalBool(llvm::StringRef key, bool otherwise) {
  return take<bool>(optional(key), key, &JsonValue::asBool, "true or false", otherwise);
}
llvm::StringRef FieldReader::requiredString(llvm::StringRef key) {
  return take<llvm::StringRef>(required(key), key, &JsonValue::asString, "a string", "");
}
llvm::StringRef FieldReader::optionalString(llvm::StringRef key, llvm::StringRef otherwise) {
  return take<llvm::StringRef>(optional(key), key, &JsonValue::asString, "a string", otherwise);
}

bool FieldReader::requiredInts(llvm::StringRef key, llvm::SmallVectorImpl<int64_t>* out) {
  out->clear();
  std::optional<JsonValue> v = required(key);
  if (!v || v->readInts(out)) return v.has_value();
  wrongKind(key, *v, "an array of integers");
  return false;
}

bool FieldReader::optionalInts(llvm::StringRef key, llvm::SmallVectorImpl<int64_t>* out) {
  out->clear();
  std::optional<JsonValue> v = optional(key);
  if (!v || v->readInts(out)) return v.has_value();
  wrongKind(key, *v, "an array of integers");
  return false;
}

namespace {
JsonValue::Range nothing() { return {{nullptr, 0}, {nullptr, 0}}; }
}  // namespace

JsonValue::Range FieldReader::requiredArray(llvm::StringRef key) {
  std::optional<JsonValue> v = required(key);
  if (!v) return nothing();
  if (!v->isArray()) wrongKind(key, *v, "an array");
  return v->elements();
}

JsonValue::Range FieldReader::optionalArray(llvm::StringRef key) {
  std::optional<JsonValue> v = optional(key);
  if (!v) return nothing();
  if (!v->isArray()) wrongKind(key, *v, "an array");
  return v->elements();
}

llvm::Error FieldReader::finish() {
  if (problem_) return fail(std::move(*problem_));
  uint32_t index = 0;
  for (auto it = object_.members().begin(); index < used_.size(); ++it, ++index) {
    if (used_[index]) continue;
    llvm::StringRef key = (*it).key;
    bool twice = (*object_.find(key)).node_ != it.node_ + 1;
    return fail(twice ? Code::kBadField : Code::kUnknownField, JsonValue(it.tape_, it.node_).loc(),
                what_ + (twice ? ": the field \"" + key + "\" stands twice" : " with an unknown field \"" + key + "\""));
  }
  return llvm::Error::success();
}

}  // namespace tpu
