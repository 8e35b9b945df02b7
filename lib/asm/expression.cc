#include "expression.h"

#include "llvm/ADT/StringExtras.h"

namespace tpu::assembly {
namespace {

constexpr int kMaxDepth = 64;

// Binary operators by rising precedence.
struct Level {
  const char* ops[3];
};
constexpr Level kLevels[] = {{{"|"}}, {{"^"}}, {{"&"}}, {{"<<", ">>"}}, {{"+", "-"}}, {{"*", "/", "%"}}};
constexpr int kNumLevels = std::size(kLevels);

struct Evaluator {
  llvm::StringRef text;
  NameLookup lookup;
  ExpressionResult result;
  size_t at = 0;
  int depth = 0;

  int64_t failAt(size_t position, const llvm::Twine& message) {
    if (result.error.empty()) result.error = message.str(), result.error_at = position;
    at = text.size();
    return 0;
  }
  void skipSpace() {
    while (at < text.size() && text[at] == ' ') ++at;
  }

  llvm::StringRef takeOperator(const Level& level) {
    skipSpace();
    for (const char* op : level.ops)
      if (op && text.substr(at).starts_with(op)) {
        at += llvm::StringRef(op).size();
        return op;
      }
    return {};
  }

  int64_t apply(llvm::StringRef op, int64_t a, int64_t b, size_t position) {
    const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
    switch (op[0]) {
      case '|':
        return a | b;
      case '^':
        return a ^ b;
      case '&':
        return a & b;
      case '<':
        return ub < 64 ? static_cast<int64_t>(ua << ub) : 0;
      case '>':
        return a >> (ub < 64 ? ub : 63);
      case '+':
        return static_cast<int64_t>(ua + ub);
      case '-':
        return static_cast<int64_t>(ua - ub);
      case '*':
        return static_cast<int64_t>(ua * ub);
      default:
        break;
    }
    if (b == 0 || (a == INT64_MIN && b == -1)) return failAt(position, "division by zero or overflow");
    return op[0] == '/' ? a / b : a % b;
  }

  int64_t binary(int level) {
    if (level == kNumLevels) return unary();
    int64_t value = binary(level + 1);
    while (result.error.empty()) {
      const size_t position = at;
      const llvm::StringRef op = takeOperator(kLevels[level]);
      if (op.empty()) break;
      value = apply(op, value, binary(level + 1), position);
    }
    return value;
  }

  int64_t unary() {
    skipSpace();
    if (++depth > kMaxDepth) return failAt(at, "nested too deeply");
    const char c = at < text.size() ? text[at] : '\0';
    int64_t value = 0;
    if (c == '-' || c == '~' || c == '+') {
      ++at;
      const auto operand = static_cast<uint64_t>(unary());
      value = static_cast<int64_t>(c == '-' ? 0 - operand : c == '~' ? ~operand : operand);
    } else if (c == '(') {
      ++at;
      value = binary(0);
      skipSpace();
      if (at >= text.size() || text[at] != ')') return failAt(at, "expected ')'");
      ++at;
    } else {
      value = primary();
    }
    --depth;
    return value;
  }

  int64_t primary() {
    const size_t begin = at;
    while (at < text.size() && isWordChar(text[at])) ++at;
    const llvm::StringRef word = text.slice(begin, at);
    if (word.empty()) return failAt(begin, "expected a number or a name");
    if (std::optional<int64_t> value = number(word)) return *value;
    const std::optional<llvm::StringRef> meaning = lookup(word);
    if (!meaning) return failAt(begin, "'" + word + "' is not defined");
    if (std::optional<int64_t> value = number(*meaning)) return *value;
    return failAt(begin, "'" + word + "' stands for '" + *meaning + "', not for a number");
  }

  static std::optional<int64_t> number(llvm::StringRef word) {
    const bool negative = word.consume_front("-");
    const bool hex = word.consume_front("0x") || word.consume_front("0X");
    uint64_t value = 0;
    if (word.empty() || word.getAsInteger(hex ? 16 : 10, value)) return std::nullopt;
    return static_cast<int64_t>(negative ? 0 - value : value);
  }
};

}  // namespace

bool isWordChar(char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; }

ExpressionResult evaluate(llvm::StringRef text, NameLookup lookup) {
  Evaluator e{text, lookup, {}};
  e.result.value = e.binary(0);
  e.skipSpace();
  if (e.result.error.empty() && e.at != text.size())
    e.failAt(e.at, "unexpected '" + text.substr(e.at, 8) + "'");
  return e.result;
}

}  // namespace tpu::assembly
