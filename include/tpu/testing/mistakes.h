// Documents with mistakes, told as edits of one that has none (testdata/mistakes/*.edits):
//
//   {"format":"tpu-ir", ...
//   ====
//   `"version":1` -> `"version":2`: 1:30: the document has version 2, ...
//
// Each edit is of the first place where its text stands; "\n" in it is a new line. What follows is said of the document, its
// place in front. The fuzz targets take the edited documents as seeds.
#pragma once
#include <string>
#include <vector>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

namespace tpu::testing {

struct Mistake {
  std::string edit, document, expected;
};

/// The document without mistakes comes first, its edit empty.
inline std::vector<Mistake> readMistakes(llvm::StringRef text) {
  const auto lines = [](llvm::StringRef piece) {
    llvm::SmallVector<llvm::StringRef, 2> parts;
    piece.split(parts, "\\n");
    return llvm::join(parts, "\n");
  };
  auto [base, edits] = text.split("====\n");
  std::vector<Mistake> out = {{"", base.str(), "accepted"}};
  while (!edits.empty()) {
    llvm::StringRef line;
    std::tie(line, edits) = edits.split('\n');
    llvm::SmallVector<llvm::StringRef, 5> parts;
    line.split(parts, '`', 4);
    if (line.trim().empty()) continue;
    if (parts.size() != 5) {
      out.push_back({line.str(), "", "a line `from`to`: expected"});
      continue;
    }
    Mistake m{line.str(), base.str(), parts[4].drop_front(2).str()};
    const std::string from = lines(parts[1]);
    if (const size_t at = m.document.find(from); at != std::string::npos) m.document.replace(at, from.size(), lines(parts[3]));
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace tpu::testing
