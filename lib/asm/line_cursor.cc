#include "line_cursor.h"

#include "llvm/ADT/StringExtras.h"

namespace tpu::assembly {
namespace {

// Splits [begin, end) of `text` at commas outside of strings, brackets and parentheses.
std::vector<Argument> split(llvm::StringRef text, size_t begin, size_t end) {
  std::vector<Argument> out;
  int depth = 0;
  bool in_string = false;
  size_t from = begin;
  auto flush = [&](size_t to) {
    const llvm::StringRef item = text.slice(from, to), trimmed = item.trim();
    out.push_back({trimmed, trimmed.empty() ? from : static_cast<size_t>(trimmed.data() - text.data())});
    from = to + 1;
  };
  for (size_t i = begin; i < end; ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
      if (c == ',' && depth == 0) flush(i);
    }
  }
  if (!out.empty() || !text.slice(from, end).trim().empty()) flush(end);
  return out;
}

}  // namespace

std::vector<Argument> LineCursor::arguments(size_t begin) const {
  return split(line_.text, begin, line_.text.size());
}

bool LineCursor::splitKey(const Argument& a, Argument* key, Argument* value) {
  const size_t n = a.text.find('=');
  if (n == llvm::StringRef::npos || n == 0 || !llvm::all_of(a.text.take_front(n).rtrim(), isWordChar))
    return false;
  *key = {a.text.take_front(n).rtrim(), a.at};
  const llvm::StringRef rest = a.text.substr(n + 1).ltrim();
  *value = {rest, a.at + static_cast<size_t>(rest.data() - a.text.data())};
  return true;
}

llvm::Expected<int64_t> LineCursor::number(const Argument& a) const {
  const ExpressionResult r = evaluate(a.text, [](llvm::StringRef) { return std::nullopt; });
  if (!r.error.empty()) return failAt(a.at + r.error_at, r.error, Code::kBadExpression);
  return r.value;
}

llvm::Expected<int64_t> LineCursor::numberIn(const Argument& a, int64_t low, int64_t high) const {
  auto value = number(a);
  if (value && (*value < low || *value > high))
    return failAt(
        a, llvm::Twine(*value) + " does not lie between " + llvm::Twine(low) + " and " + llvm::Twine(high));
  return value;
}

llvm::Expected<std::string> LineCursor::string(const Argument& a) const {
  llvm::StringRef text = a.text;
  if (!text.consume_front("\"")) {
    if (text.empty() || text.find_first_of(" \t\"=") != llvm::StringRef::npos)
      return failAt(a, "expected a name or a string in quotes");
    return text.str();
  }
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      if (i + 1 != text.size()) return failAt(a.at + i + 2, "unexpected text after the string");
      return out;
    }
    if (text[i] != '\\' || i + 1 >= text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    if (c == 'x' && i + 2 < text.size() && llvm::isHexDigit(text[i + 1]) && llvm::isHexDigit(text[i + 2])) {
      out += static_cast<char>(llvm::hexDigitValue(text[i + 1]) << 4 | llvm::hexDigitValue(text[i + 2]));
      i += 2;
    } else if (c == '"' || c == '\\') {
      out += c;
    } else {
      return failAt(a.at + i, "bad escape; known are \\\\, \\\" and \\xHH");
    }
  }
  return failAt(a, "string without end");
}

llvm::Expected<isa::Space> LineCursor::space(const Argument& a) const {
  for (int i = 0; i <= static_cast<int>(isa::Space::kHost); ++i)
    if (a.text == isa::spaceName(static_cast<isa::Space>(i))) return static_cast<isa::Space>(i);
  return failAt(a, "'" + a.text + "' is no memory; known are hbm, vmem, smem, cmem, host");
}

llvm::Expected<std::pair<isa::Space, int64_t>> LineCursor::spaceAddress(const Argument& a) const {
  const auto [name, address] = a.text.split(':');
  if (name.size() == a.text.size()) return failAt(a, "expected a place such as hbm:4096");
  auto space = this->space({name.rtrim(), a.at});
  if (!space) return space.takeError();
  auto value = numberIn({address, a.at + name.size() + 1}, 0, int64_t{1} << 50);
  if (!value) return value.takeError();
  return std::make_pair(*space, *value);
}

llvm::Expected<std::vector<Argument>> LineCursor::list(const Argument& a) const {
  if (!a.text.starts_with("[") || !a.text.ends_with("]")) return failAt(a, "expected a list such as [1, 2]");
  return split(line_.text, a.at + 1, a.at + a.text.size() - 1);
}

std::string quoted(llvm::StringRef text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\x";
      out += llvm::hexdigit(static_cast<unsigned char>(c) >> 4, true);
      out += llvm::hexdigit(c & 15, true);
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace tpu::assembly
