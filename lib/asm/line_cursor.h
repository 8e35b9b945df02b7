// Reads the arguments of a directive from a logical line: items separated by commas, each an expression, a
// string, a word or key=value, with errors at the column.
#pragma once
#include "expression.h"
#include "source.h"
#include "tpu/isa/dma.h"
#include "tpu/support/diagnostics.h"

namespace tpu::assembly {

/// One argument: its text and where it stands on the line.
struct Argument {
  llvm::StringRef text;
  size_t at = 0;
};

class LineCursor {
 public:
  LineCursor(const LogicalLine& line, llvm::StringRef file) : line_(line), file_(file) {}

  llvm::Error failAt(size_t offset, const llvm::Twine& text, Code code = Code::kBadDirective) const {
    return fail(code, placeText(file_, line_.place(offset)), text);
  }
  llvm::Error failAt(const Argument& a, const llvm::Twine& text) const { return failAt(a.at, text); }

  /// The arguments of the line from offset `begin`.
  std::vector<Argument> arguments(size_t begin) const;
  /// "key=value" apart; false where the argument has another form.
  static bool splitKey(const Argument& a, Argument* key, Argument* value);
  llvm::Expected<int64_t> number(const Argument& a) const;
  llvm::Expected<int64_t> numberIn(const Argument& a, int64_t low, int64_t high) const;
  /// A quoted string with its escapes resolved, or a bare word.
  llvm::Expected<std::string> string(const Argument& a) const;
  /// "hbm:4096"
  llvm::Expected<std::pair<isa::Space, int64_t>> spaceAddress(const Argument& a) const;
  llvm::Expected<isa::Space> space(const Argument& a) const;
  /// "[a, b, c]"; an item "-" is left to the caller.
  llvm::Expected<std::vector<Argument>> list(const Argument& a) const;

 private:
  const LogicalLine& line_;
  llvm::StringRef file_;
};

/// `text` in quotes, escaped so that LineCursor::string gives it back.
std::string quoted(llvm::StringRef text);

}  // namespace tpu::assembly
