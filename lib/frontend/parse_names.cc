// Value names and their scopes. Numbers (%12) index a vector, other names a hash table; leaving a region
// undoes its bindings.
#include "llvm/ADT/StringExtras.h"
#include "parser.h"

namespace tpu::frontend {
namespace {

constexpr uint32_t kMaxNumber = 1u << 24;  // larger numbers go into the hash table

bool numberOf(llvm::StringRef name, uint32_t& number) {
  if (name.empty() || name.size() > 8 || (name[0] == '0' && name.size() > 1)) return false;
  number = 0;
  for (char c : name) {
    if (!isDigit(c)) return false;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  return number < kMaxNumber;
}

}  // namespace

Parser::Binding* Parser::slot(llvm::StringRef name) {
  uint32_t number;
  if (!numberOf(name, number)) return &named_[name];
  if (number >= numbered_.size()) numbered_.resize(number + number / 2 + 64);
  return &numbered_[number];
}

void Parser::bind(llvm::StringRef name, ValueId first, uint32_t count, const char* at) {
  Binding* binding = slot(name);
  if (binding->first && binding->depth == depth_) {
    c.error(Code::kRepeatedName, at, "value '%" + name + "' is defined twice");
    return;
  }
  undo_.push_back({name, *binding});
  *binding = {first, count, depth_};
}

void Parser::closeScope(size_t mark) {
  while (undo_.size() > mark) {
    *slot(undo_.back().name) = undo_.back().old;
    undo_.pop_back();
  }
  --depth_;
}

bool Parser::valueName(llvm::StringRef& name) {
  if (!c.expect('%')) return false;
  const char* start = c.p;
  while (isWordChar(*c.p)) ++c.p;
  name = llvm::StringRef(start, static_cast<size_t>(c.p - start));
  if (name.empty()) return c.error("expected a value name");
  return true;
}

bool Parser::operand(ValueId& value) {
  c.blanks();
  const char* at = c.p;
  llvm::StringRef name;
  if (!valueName(name)) return false;
  int64_t index = 0;
  if (*c.p == '#') {
    ++c.p;
    if (!c.digits(index)) return false;
  }
  uint32_t number;
  Binding binding;
  if (numberOf(name, number)) {
    if (number < numbered_.size()) binding = numbered_[number];
  } else if (auto it = named_.find(name); it != named_.end()) {
    binding = it->second;
  }
  if (!binding.first) return c.error(Code::kUnknownName, at, "use of undefined value '%" + name + "'");
  if (index >= binding.count)
    return c.error(
        Code::kUnknownName, at,
        "'%" + name + "' has " + llvm::Twine(binding.count) + " results, asked for #" + llvm::Twine(index));
  value = ValueId(binding.first.v + static_cast<uint32_t>(index));
  return true;
}

bool Parser::operandList(llvm::SmallVectorImpl<ValueId>& values) {
  trailing_comma_ = false;
  while (c.peek() == '%') {
    ValueId value;
    if (!operand(value)) return false;
    values.push_back(value);
    trailing_comma_ = c.accept(',');
    if (!trailing_comma_) break;
  }
  return true;
}

bool Parser::symbol(std::string& name) {
  if (!c.expect('@')) return false;
  if (*c.p == '"') return c.string(name);
  name = c.word().str();
  return !name.empty() || c.error("expected a symbol name");
}

}  // namespace tpu::frontend
