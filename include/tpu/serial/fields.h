// Reading an object's fields so that nothing is missed: each getter marks its field as known, finish() refuses what is
// left by name. The first problem wins and later getters return defaults, so a reader is straight-line code:
//
//   FieldReader r(row, "op row");
//   int64_t id = r.requiredInt("id", 0, INT32_MAX);
//   StringRef op = r.requiredString("op");
//   if (llvm::Error e = r.finish()) return e;
#pragma once
#include "tpu/serial/json.h"

namespace tpu {

class FieldReader {
 public:
  /// `what` names the object in messages ("op row"); it must outlive the reader.
  FieldReader(JsonValue object, llvm::StringRef what);

  std::optional<JsonValue> optional(llvm::StringRef key);  // nothing also for null
  std::optional<JsonValue> required(llvm::StringRef key);  // nothing only after a failure

  int64_t requiredInt(llvm::StringRef key, int64_t min = INT64_MIN, int64_t max = INT64_MAX);
  int64_t optionalInt(llvm::StringRef key, int64_t otherwise, int64_t min = INT64_MIN, int64_t max = INT64_MAX);
  bool optionalBool(llvm::StringRef key, bool otherwise);
  llvm::StringRef requiredString(llvm::StringRef key);
  llvm::StringRef optionalString(llvm::StringRef key, llvm::StringRef otherwise = "");
  /// False, with `out` empty, where the field is absent or wrong.
  bool requiredInts(llvm::StringRef key, llvm::SmallVectorImpl<int64_t>* out);
  bool optionalInts(llvm::StringRef key, llvm::SmallVectorImpl<int64_t>* out);
  /// The elements of an array field.
  JsonValue::Range requiredArray(llvm::StringRef key);
  JsonValue::Range optionalArray(llvm::StringRef key);

  /// Marks a field as known without reading it.
  void ignore(llvm::StringRef key) { (void)lookup(key); }
  /// Records a problem with the value of a field (kBadField at the field).
  void bad(llvm::StringRef key, const llvm::Twine& text);
  bool ok() const { return !problem_; }
  /// The first problem, or kUnknownField for a field that no getter named, or kBadField for one that stands twice.
  llvm::Error finish();

 private:
  std::optional<JsonValue> lookup(llvm::StringRef key);
  void wrongKind(llvm::StringRef key, JsonValue got, const llvm::Twine& expected);
  void record(Code code, std::string loc, const llvm::Twine& text);
  template <class T>
  T take(std::optional<JsonValue> v, llvm::StringRef key, std::optional<T> (JsonValue::*as)() const,
         const char* expected, T otherwise);
  int64_t inRange(std::optional<JsonValue> v, llvm::StringRef key, int64_t otherwise, int64_t min, int64_t max);

  JsonValue object_;
  llvm::StringRef what_;
  llvm::SmallVector<bool, 24> used_;
  uint32_t next_ = 0;       // members usually come in the order they are asked for
  uint32_t next_node_ = 0;  // the tape node of member next_
  std::optional<Diagnostic> problem_;
};

}  // namespace tpu
