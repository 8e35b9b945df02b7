// Steps of reading text that are not worth inlining.
#include "cursor.h"

#include <charconv>
#include <cstring>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace tpu::frontend {

bool Cursor::integer(int64_t& value) {
  blanks();
  auto [rest, status] = std::from_chars(p, end, value);
  if (status != std::errc())
    return error(status == std::errc::result_out_of_range ? "integer out of range" : "expected an integer");
  p = rest;
  return true;
}

bool Cursor::digits(int64_t& value) {
  blanks();
  if (!isDigit(*p)) return error("expected a number");
  return integer(value);
}

bool Cursor::rawString(llvm::StringRef& value) {
  if (!accept('"')) return error("expected a string");
  const char* start = p;
  for (;;) {
    const void* quote = std::memchr(p, '"', static_cast<size_t>(end - p));
    if (!quote) return error(Code::kSyntaxError, start - 1, "string does not end");
    p = static_cast<const char*>(quote);
    size_t slashes = 0;
    while (p - slashes > start && p[-1 - static_cast<ptrdiff_t>(slashes)] == '\\') ++slashes;
    ++p;
    if (slashes % 2 == 0) break;
  }
  value = llvm::StringRef(start, static_cast<size_t>(p - 1 - start));
  return true;
}

bool Cursor::string(std::string& value) {
  llvm::StringRef raw;
  if (!rawString(raw)) return false;
  value.clear();
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      value += raw[i];
      continue;
    }
    char c = raw[++i];
    if (c == 'n')
      value += '\n';
    else if (c == 't')
      value += '\t';
    else if (c == '"' || c == '\\')
      value += c;
    else if (i + 1 < raw.size() && llvm::isHexDigit(c) && llvm::isHexDigit(raw[i + 1]))
      value += static_cast<char>(llvm::hexDigitValue(c) * 16 + llvm::hexDigitValue(raw[++i]));
    else
      value += c;
  }
  return true;
}

// One step of a walk over balanced text: a string, an arrow, or a character; brackets open and close in `open`.
bool Cursor::stepBalanced(llvm::SmallVectorImpl<char>& open) {
  const char c = *p;
  if (c == '"') {
    llvm::StringRef raw;
    return rawString(raw);
  }
  if (c == '-' && p[1] == '>') {
    p += 2;
    return true;
  }
  if (c == '(' || c == '[' || c == '{' || c == '<') {
    open.push_back(c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '>');
  } else if (c == ')' || c == ']' || c == '}' || c == '>') {
    if (open.empty()) return error("brackets do not match");
    if (open.back() != c) return error(llvm::Twine("expected '") + llvm::Twine(open.back()) + "'");
    open.pop_back();
  }
  ++p;
  return true;
}

llvm::StringRef Cursor::balanced() {
  blanks();
  const char* start = p;
  llvm::SmallVector<char, 32> open;
  const auto ends = [&] {  // '->' is no bracket
    return open.empty() && (*p == ',' || *p == ')' || *p == ']' || *p == '}' || *p == '>');
  };
  while (p < end && !ends())
    if (!stepBalanced(open)) return {};
  if (!open.empty()) {
    error(Code::kSyntaxError, start, "bracket does not close");
    return {};
  }
  return llvm::StringRef(start, static_cast<size_t>(p - start)).rtrim();
}

bool Cursor::skipGroup() {
  blanks();
  const char* start = p;
  llvm::SmallVector<char, 32> open;
  do {
    if (p >= end) return error(Code::kSyntaxError, start, "bracket does not close");
    if (!stepBalanced(open)) return false;
  } while (!open.empty());
  return true;
}

bool Cursor::error(Code code, const char* at, const llvm::Twine& text) {
  if (failed_) return false;
  failed_ = true;
  diagnostic_.code = code;
  diagnostic_.loc = locate(at);
  diagnostic_.text = text.str();
  if (code == Code::kSyntaxError) {
    if (at == end)
      diagnostic_.text += ", found the end of the text";
    else if (at == p) {
      llvm::StringRef rest(at, static_cast<size_t>(end - at));
      diagnostic_.text +=
          ", found '" + rest.take_until([](char c) { return c == '\n'; }).take_front(20).rtrim().str() + "'";
    }
  }
  p = end;
  return false;
}

llvm::Error Cursor::takeError() {
  if (!failed_) return llvm::Error::success();
  return fail(std::move(diagnostic_));
}

std::pair<int, int> Cursor::lineColumn(const char* at) {
  if (!line_start_ || at < line_start_) {
    line_start_ = begin;
    line_ = first_line_;
  }
  while (const void* newline = std::memchr(line_start_, '\n', static_cast<size_t>(at - line_start_))) {
    line_start_ = static_cast<const char*>(newline) + 1;
    ++line_;
  }
  return {line_, static_cast<int>(at - line_start_) + 1};
}

std::string Cursor::locate(const char* at) {
  auto [line, column] = lineColumn(at);
  return filename_ + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string quotedText(llvm::StringRef text) {
  std::string out;
  llvm::raw_string_ostream os(out);
  os << '"';
  llvm::printEscapedString(text, os);
  os << '"';
  return out;
}

std::string baseName(llvm::StringRef filename) {
  if (filename == "-" || filename.empty()) return "<stdin>";
  size_t slash = filename.find_last_of('/');
  return (slash == llvm::StringRef::npos ? filename : filename.substr(slash + 1)).str();
}

}  // namespace tpu::frontend
