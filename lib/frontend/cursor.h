// A place in a text and the small steps of reading it: blanks, words, names, numbers, strings, balanced text.
//
// Errors are sticky: the first one is kept and the cursor jumps to the end of the text, where every further
// step fails, so that loops end by themselves and callers look once.
#pragma once
#include <string>

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "tpu/support/diagnostics.h"

namespace tpu::frontend {

inline bool isWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '.' || c == '-';
}
inline bool isDigit(char c) { return c >= '0' && c <= '9'; }
inline bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Cursor {
 public:
  /// `text` must stay alive and end in a NUL byte at text.end().
  /// `first_line` is the number of its first line.
  Cursor(llvm::StringRef text, llvm::StringRef filename, int first_line = 1)
      : p(text.data()),
        begin(text.data()),
        end(text.data() + text.size()),
        filename_(filename),
        first_line_(first_line),
        line_(first_line) {}

  const char* p;
  const char* begin;
  const char* end;

  void blanks() {
    for (;;) {
      while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r') ++p;
      if (*p != '/' || p[1] != '/') return;
      while (p < end && *p != '\n') ++p;
    }
  }
  bool atEnd() {
    blanks();
    return p == end;
  }
  char peek() {
    blanks();
    return *p;
  }

  bool accept(char c) {
    blanks();
    if (*p != c || p == end) return false;
    ++p;
    return true;
  }
  /// A punctuation text such as "->" or "^bb".
  bool accept(llvm::StringRef s) {
    blanks();
    if (!llvm::StringRef(p, static_cast<size_t>(end - p)).starts_with(s)) return false;
    p += s.size();
    return true;
  }
  /// A whole word.
  bool acceptWord(llvm::StringRef word) {
    blanks();
    if (!llvm::StringRef(p, static_cast<size_t>(end - p)).starts_with(word) || isWordChar(p[word.size()]))
      return false;
    p += word.size();
    return true;
  }
  bool expect(char c) {
    if (accept(c)) return true;
    return error(llvm::Twine("expected '") + llvm::Twine(c) + "'");
  }
  bool expect(llvm::StringRef s) {
    if (accept(s)) return true;
    return error("expected '" + s + "'");
  }
  bool expectWord(llvm::StringRef word) {
    if (acceptWord(word)) return true;
    return error("expected '" + word + "'");
  }

  /// Letters, digits, '_', '$', '.', '-'; empty where none follow. Does not take "->".
  llvm::StringRef word() {
    blanks();
    const char* start = p;
    while (isWordChar(*p) && !(*p == '-' && p[1] == '>')) ++p;
    return llvm::StringRef(start, static_cast<size_t>(p - start));
  }
  /// A decimal integer with sign.
  bool integer(int64_t& value);
  /// Digits only.
  bool digits(int64_t& value);
  /// A double-quoted string; escapes are resolved.
  bool string(std::string& value);
  /// The raw text between the quotes, escapes as written.
  bool rawString(llvm::StringRef& value);
  /// Skips a value up to a ',' or a closing bracket of the surrounding list, brackets and strings balanced.
  llvm::StringRef balanced();
  /// Skips one bracketed group that starts here.
  bool skipGroup();

  bool error(Code code, const char* at, const llvm::Twine& text);
  bool error(const llvm::Twine& text) { return error(Code::kSyntaxError, p, text); }
  bool failed() const { return failed_; }
  llvm::Error takeError();
  /// Makes another error stand for one that was found without a place.
  std::string locate(const char* at);
  /// 1-based; cheap where calls come in ascending order.
  std::pair<int, int> lineColumn(const char* at);

 private:
  bool stepBalanced(llvm::SmallVectorImpl<char>& open);
  std::string filename_;
  bool failed_ = false;
  Diagnostic diagnostic_;
  const int first_line_;
  const char* line_start_ = nullptr;  // of the last place asked for
  int line_;
};

/// A string as MLIR writes it, with quotes and escapes.
std::string quotedText(llvm::StringRef text);

/// "dir/model.mlir" -> "model.mlir"; "-" -> "<stdin>".
std::string baseName(llvm::StringRef filename);

}  // namespace tpu::frontend
