// Turns assembly text into logical lines: comments and continuations are resolved, .equ names, {expressions},
// .rept blocks and macros expanded. Every character of a logical line knows where it came from.
#pragma once
#include <string>
#include <vector>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tpu::assembly {

struct Place {
  uint32_t line = 0, column = 0;  // from 1
};

class LogicalLine {
 public:
  std::string text;
  Place place(size_t offset) const;
  uint32_t line() const { return pieces_.empty() ? 0 : pieces_.front().from.line; }

 private:
  friend class SourceReader;
  struct Piece {
    size_t begin;  // offset in text
    Place from;
    bool verbatim;  // columns advance with the text; else the whole piece came from one place
  };
  std::vector<Piece> pieces_;
};

std::string placeText(llvm::StringRef file, Place place);

/// Calls `consume` for every logical line that is not blank, in order. Lines from ".chip" to ".endchip" are
/// passed as they stand.
llvm::Error readSource(llvm::StringRef text, llvm::StringRef file,
                       llvm::function_ref<llvm::Error(const LogicalLine&)> consume);

}  // namespace tpu::assembly
