// Finding out what an input is, and reading it.
#include "tpu/frontend/frontend.h"

#include "bytecode/bytecode.h"
#include "hlo_text.h"
#include "parser.h"
#include "tpu/hlo/document.h"
#include "tpu/hlo/verify.h"
#include "tpu/serial/document.h"

namespace tpu::frontend {

Format sniff(llvm::StringRef bytes) {
  if (bytes.starts_with("ML\xefR") || bytes.starts_with("StableHLO_v")) return Format::kBytecode;
  llvm::StringRef rest = bytes;
  // Comments of StableHLO text ("//") may come first.
  for (;;) {
    rest = rest.ltrim();
    if (!rest.starts_with("//")) break;
    rest = rest.drop_until([](char ch) { return ch == '\n'; });
  }
  if (rest.empty()) return Format::kEmpty;
  if (rest.starts_with("{") && !rest.starts_with("{-#")) return Format::kIrDocument;
  if (rest.starts_with("HloModule")) return Format::kHloText;
  for (llvm::StringRef word : {"module", "builtin.module", "func.func", "#", "!", "sdy.mesh", "{-#",
                               "\"builtin.module\"", "\"func.func\""})
    if (rest.starts_with(word)) return Format::kStableHlo;
  return Format::kUnknown;
}

std::vector<Piece> splitInput(llvm::StringRef text) {
  std::vector<Piece> pieces;
  size_t start = 0, at = 0;
  int line = 1, first_line = 1;
  const auto close = [&](size_t end) { pieces.push_back({text.slice(start, end), first_line}); };
  while (at < text.size()) {
    size_t newline = text.find('\n', at);
    size_t next = newline == llvm::StringRef::npos ? text.size() : newline + 1;
    if (text.slice(at, next).trim() == "// -----") {
      close(at);
      start = next;
      first_line = line + 1;
    }
    ++line;
    at = next;
  }
  close(text.size());
  return pieces;
}

llvm::Expected<hlo::Module> parseStableHlo(llvm::StringRef text, llvm::StringRef filename,
                                           DiagnosticSink& sink, const ReadOptions& options) {
  // A copy, so that it ends in a NUL byte whatever the caller holds.
  std::string copy = text.str();
  hlo::Module module;
  Parser parser(copy, filename, module, sink, options);
  if (llvm::Error e = parser.run()) return e;
  return module;
}

llvm::Expected<hlo::Module> readProgram(llvm::StringRef bytes, llvm::StringRef filename, DiagnosticSink& sink,
                                        const ReadOptions& options) {
  switch (sniff(bytes)) {
    case Format::kEmpty:
      return fail(Code::kEmptyInput, filename, "the input is empty");
    case Format::kUnknown:
      if (startsLikeObject(bytes)) return wrongStage(filename, "object", {"hlo", "spmd"});
      return fail(Code::kUnsupportedFormat, filename, "this is neither StableHLO, HLO text nor an IR document");
    case Format::kIrDocument:
    case Format::kStableHlo:
    case Format::kBytecode:
    case Format::kHloText:
      break;
  }
  const Format format = sniff(bytes);
  llvm::Expected<hlo::Module> module =
      format == Format::kIrDocument ? hlo::readDocument(bytes, filename)
      : format == Format::kBytecode ? readBytecode(bytes, filename, sink, options)
      : format == Format::kHloText  ? parseHloText(bytes, filename, sink)
                                    : parseStableHlo(bytes, filename, sink, options);
  if (!module) return module;
  if (llvm::Error e = hlo::verify(*module)) return e;
  return module;
}

}  // namespace tpu::frontend
