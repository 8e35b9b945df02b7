#include "source.h"

#include <map>

#include "expression.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "tpu/support/diagnostics.h"

namespace tpu::assembly {
namespace {

constexpr int kMaxNesting = 64;
constexpr uint64_t kMaxLines = uint64_t{1} << 22;

struct RawLine {
  llvm::StringRef text;
  uint32_t number;
};
using Lines = std::vector<RawLine>;

// The part of a line before its comment; '#' inside a string does not count.
llvm::StringRef withoutComment(llvm::StringRef line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '\\')
      ++i;
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == '#' && !quoted)
      return line.take_front(i);
  }
  return line;
}

llvm::StringRef firstWord(llvm::StringRef line) {
  return line.ltrim().take_while([](char c) { return isWordChar(c); });
}

bool isName(llvm::StringRef word) {
  return !word.empty() && !llvm::isDigit(word[0]) && word[0] != '.' && llvm::all_of(word, isWordChar);
}

// Splits at commas outside of brackets, parentheses and strings.
std::vector<llvm::StringRef> splitArguments(llvm::StringRef text) {
  std::vector<llvm::StringRef> parts;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '(' || c == '{'))
      ++depth;
    else if (!quoted && (c == ']' || c == ')' || c == '}'))
      --depth;
    else if (!quoted && c == ',' && depth == 0)
      parts.push_back(text.slice(begin, i).trim()), begin = i + 1;
  }
  if (!text.trim().empty()) parts.push_back(text.substr(begin).trim());
  return parts;
}

bool isRegisterName(llvm::StringRef text) {
  for (llvm::StringRef prefix : {"mxu", "xlu", "s", "v", "m", "p"}) {
    llvm::StringRef rest = text;
    if (rest.consume_front(prefix) && !rest.empty() && llvm::all_of(rest, llvm::isDigit)) return true;
  }
  return false;
}

struct Macro {
  std::vector<std::string> parameters;
  Lines body;
};

}  // namespace

class SourceReader {
 public:
  SourceReader(llvm::StringRef file, llvm::function_ref<llvm::Error(const LogicalLine&)> consume)
      : file_(file), consume_(consume) {}

  llvm::Error process(const Lines& lines) {
    if (++nesting_ > kMaxNesting)
      return failAt(lines.front(), 0, Code::kBadDirective, "macros are nested too deeply");
    for (size_t i = 0; i < lines.size();) {
      if (++processed_ > kMaxLines)
        return failAt(lines[i], 0, Code::kBadDirective, "the text expands to too many lines");
      if (llvm::Error error = statement(lines, &i)) return error;
    }
    --nesting_;
    return llvm::Error::success();
  }

 private:
  using Scope = llvm::StringMap<std::string>;

  llvm::Error failAt(const RawLine& line, size_t column, Code code, const llvm::Twine& text) const {
    return fail(code, placeText(file_, {line.number, static_cast<uint32_t>(column + 1)}), text);
  }

  std::optional<llvm::StringRef> lookup(llvm::StringRef name) const {
    for (size_t i = scopes_.size(); i-- > 0;) {
      auto it = scopes_[i].find(name);
      if (it != scopes_[i].end()) return llvm::StringRef(it->second);
    }
    return std::nullopt;
  }

  llvm::Expected<int64_t> number(const RawLine& line, llvm::StringRef expression) const {
    const ExpressionResult r = evaluate(expression, [&](llvm::StringRef name) { return lookup(name); });
    if (r.error.empty()) return r.value;
    return failAt(line, static_cast<size_t>(expression.data() - line.text.data()) + r.error_at,
                  Code::kBadExpression, r.error);
  }

  // Handles the statement at lines[*i] and moves *i behind it.
  llvm::Error statement(const Lines& lines, size_t* i) {
    const RawLine& line = lines[*i];
    const llvm::StringRef text = withoutComment(line.text), word = firstWord(text);
    const llvm::StringRef rest = text.ltrim().drop_front(word.size()).trim();
    if (word == ".equ") return ++*i, defineName(line, rest);
    if (word == ".rept") return repeat(lines, i, rest);
    if (word == ".macro") return defineMacro(lines, i, rest);
    if (word == ".chip") return passRaw(lines, i);
    if (word == ".endr" || word == ".endm")
      return failAt(line, text.find(word), Code::kBadDirective, "'" + word + "' without its beginning");
    const auto macro = macros_.find(word.str());
    if (macro != macros_.end() && !rest.starts_with(":")) return ++*i, callMacro(line, macro->second, rest);
    return logicalLine(lines, i);
  }

  llvm::Error defineName(const RawLine& line, llvm::StringRef rest) {
    const size_t column = static_cast<size_t>(rest.data() - line.text.data());
    const llvm::StringRef name = firstWord(rest);
    llvm::StringRef value = rest.drop_front(name.size()).ltrim();
    value.consume_front(",");
    value = value.trim();
    if (!isName(name) || value.empty())
      return failAt(line, column, Code::kBadDirective, "expected '.equ NAME, VALUE'");
    const std::optional<llvm::StringRef> alias = isRegisterName(value) ? value : lookup(value);
    if (alias) {
      setName(name, alias->str());
      return llvm::Error::success();
    }
    auto number = this->number(line, value);
    if (!number) return number.takeError();
    setName(name, std::to_string(*number));
    return llvm::Error::success();
  }
  // A name that an enclosing block defines is changed there, so that .equ can count inside .rept.
  void setName(llvm::StringRef name, std::string value) {
    for (size_t i = scopes_.size(); i-- > 1;)
      if (scopes_[i].count(name)) {
        scopes_[i][name] = std::move(value);
        return;
      }
    scopes_[0][name] = std::move(value);
  }

  // The lines between `open` at *i and its `close`; *i moves behind the close.
  llvm::Expected<Lines> blockBody(const Lines& lines, size_t* i, llvm::StringRef open,
                                  llvm::StringRef close) const {
    Lines body;
    int depth = 1;
    const size_t begin = *i;
    for (++*i; *i < lines.size(); ++*i) {
      const llvm::StringRef word = firstWord(lines[*i].text);
      depth += word == open ? 1 : word == close ? -1 : 0;
      if (depth == 0) return ++*i, std::move(body);
      body.push_back(lines[*i]);
    }
    return failAt(lines[begin], 0, Code::kBadDirective, "'" + open + "' without '" + close + "'");
  }

  llvm::Error repeat(const Lines& lines, size_t* i, llvm::StringRef rest) {
    const RawLine& line = lines[*i];
    const std::vector<llvm::StringRef> arguments = splitArguments(rest);
    if (arguments.empty() || arguments.size() > 2 || (arguments.size() == 2 && !isName(arguments[1])))
      return failAt(line, 0, Code::kBadDirective, "expected '.rept COUNT' or '.rept COUNT, NAME'");
    auto count = number(line, arguments[0]);
    if (!count) return count.takeError();
    if (*count < 0) return failAt(line, 0, Code::kBadDirective, "the count is " + llvm::Twine(*count));
    auto body = blockBody(lines, i, ".rept", ".endr");
    if (!body) return body.takeError();
    for (int64_t n = 0; n < *count && !body->empty(); ++n) {
      scopes_.emplace_back();
      if (arguments.size() == 2) scopes_.back()[arguments[1]] = std::to_string(n);
      if (llvm::Error error = process(*body)) return error;
      scopes_.pop_back();
    }
    return llvm::Error::success();
  }

  llvm::Error defineMacro(const Lines& lines, size_t* i, llvm::StringRef rest) {
    const RawLine& line = lines[*i];
    const llvm::StringRef name = firstWord(rest);
    Macro macro;
    for (llvm::StringRef parameter : splitArguments(rest.drop_front(name.size()))) {
      if (!isName(parameter))
        return failAt(line, 0, Code::kBadDirective, "expected '.macro NAME PARAMETER, ...'");
      macro.parameters.push_back(parameter.str());
    }
    if (!isName(name)) return failAt(line, 0, Code::kBadDirective, "expected '.macro NAME PARAMETER, ...'");
    auto body = blockBody(lines, i, ".macro", ".endm");
    if (!body) return body.takeError();
    macro.body = std::move(*body);
    macros_[name.str()] = std::move(macro);
    return llvm::Error::success();
  }

  llvm::Error callMacro(const RawLine& line, const Macro& macro, llvm::StringRef rest) {
    const std::vector<llvm::StringRef> arguments = splitArguments(rest);
    if (arguments.size() != macro.parameters.size())
      return failAt(line, 0, Code::kBadDirective,
                    "the macro takes " + llvm::Twine(macro.parameters.size()) + " arguments, not " +
                        llvm::Twine(arguments.size()));
    if (macro.body.empty()) return llvm::Error::success();
    Scope scope;
    for (size_t i = 0; i < arguments.size(); ++i) {
      // Arguments mean what they mean at the call.
      LogicalLine expanded;
      if (llvm::Error error = expand({line.text, line.number}, arguments[i], &expanded)) return error;
      const ExpressionResult value =
          evaluate(expanded.text, [&](llvm::StringRef name) { return lookup(name); });
      scope[macro.parameters[i]] = value.error.empty() ? std::to_string(value.value) : expanded.text;
    }
    scope["@"] = std::to_string(++calls_);
    scopes_.push_back(std::move(scope));
    const Macro copy = macro;  // the body may redefine the macro
    if (llvm::Error error = process(copy.body)) return error;
    scopes_.pop_back();
    return llvm::Error::success();
  }

  llvm::Error passRaw(const Lines& lines, size_t* i) {
    for (; *i < lines.size(); ++*i) {
      LogicalLine out;
      append(&out, lines[*i].text, {lines[*i].number, 1}, true);
      if (llvm::Error error = consume_(out)) return error;
      if (firstWord(lines[*i].text) == ".endchip") return ++*i, llvm::Error::success();
    }
    return failAt(lines.back(), 0, Code::kBadDirective, "'.chip' without '.endchip'");
  }

  // One line, or several where lines end with ';'.
  llvm::Error logicalLine(const Lines& lines, size_t* i) {
    LogicalLine out;
    for (bool more = true; more && *i < lines.size(); ++*i) {
      const llvm::StringRef part = withoutComment(lines[*i].text).rtrim();
      if (llvm::Error error = expand(lines[*i], part, &out)) return error;
      more = part.ends_with(";") && *i + 1 < lines.size();
    }
    if (llvm::StringRef(out.text).trim().empty()) return llvm::Error::success();
    return consume_(out);
  }

  static void append(LogicalLine* out, llvm::StringRef text, Place from, bool verbatim) {
    if (text.empty()) return;
    out->pieces_.push_back({out->text.size(), from, verbatim});
    out->text.append(text.data(), text.size());
  }

  // Appends `text` (a part of line) with names and {expressions} replaced.
  llvm::Error expand(const RawLine& line, llvm::StringRef text, LogicalLine* out) const {
    const size_t base = static_cast<size_t>(text.data() - line.text.data());
    auto placeOf = [&](size_t at) { return Place{line.number, static_cast<uint32_t>(base + at + 1)}; };
    size_t kept = 0;  // text before this is in `out`
    for (size_t at = 0; at < text.size();) {
      const char c = text[at];
      if (c == '"') {
        for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\';
        ++at;
      } else if (c == '{') {
        const size_t end = text.find('}', at);
        if (end == llvm::StringRef::npos)
          return failAt(line, base + at, Code::kBadExpression, "'{' without '}'");
        append(out, text.slice(kept, at), placeOf(kept), true);
        auto value = braces(line, text.slice(at + 1, end));
        if (!value) return value.takeError();
        append(out, *value, placeOf(at), false);
        kept = at = end + 1;
      } else if (isWordChar(c)) {
        const llvm::StringRef word = text.substr(at).take_while(isWordChar);
        if (const std::optional<llvm::StringRef> meaning = lookup(word)) {
          append(out, text.slice(kept, at), placeOf(kept), true);
          append(out, *meaning, placeOf(at), false);
          kept = at + word.size();
        }
        at += word.size();
      } else {
        ++at;
      }
    }
    append(out, text.substr(kept), placeOf(kept), true);
    return llvm::Error::success();
  }

  // "{@}" is the number of the macro call, for labels of its own.
  llvm::Expected<std::string> braces(const RawLine& line, llvm::StringRef expression) const {
    if (expression.trim() == "@") {
      const std::optional<llvm::StringRef> calls = lookup("@");
      return calls ? calls->str() : "0";
    }
    auto value = number(line, expression);
    if (!value) return value.takeError();
    return std::to_string(*value);
  }

  llvm::StringRef file_;
  llvm::function_ref<llvm::Error(const LogicalLine&)> consume_;
  std::vector<Scope> scopes_{1};
  std::map<std::string, Macro> macros_;
  int nesting_ = 0;
  uint64_t processed_ = 0, calls_ = 0;
};

Place LogicalLine::place(size_t offset) const {
  if (pieces_.empty()) return {};
  size_t i = pieces_.size() - 1;
  while (i > 0 && pieces_[i].begin > offset) --i;
  Place p = pieces_[i].from;
  if (pieces_[i].verbatim) p.column += static_cast<uint32_t>(offset - pieces_[i].begin);
  return p;
}

std::string placeText(llvm::StringRef file, Place place) {
  return (file + ":" + llvm::Twine(place.line) + ":" + llvm::Twine(place.column)).str();
}

llvm::Error readSource(llvm::StringRef text, llvm::StringRef file,
                       llvm::function_ref<llvm::Error(const LogicalLine&)> consume) {
  Lines lines;
  uint32_t number = 0;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    line.consume_back("\r");
    lines.push_back({line, ++number});
    text = rest;
  }
  if (lines.empty()) return llvm::Error::success();
  return SourceReader(file, consume).process(lines);
}

}  // namespace tpu::assembly
