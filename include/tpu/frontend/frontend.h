// Programs as frameworks print them, read into HLO.
#pragma once
#include <vector>

#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"
#include "tpu/support/diagnostics.h"

namespace tpu::frontend {

enum class Format : uint8_t { kIrDocument, kStableHlo, kHloText, kBytecode, kEmpty, kUnknown };

/// What the first bytes say. Compressed input is recognised and unpacked before (support).
Format sniff(llvm::StringRef bytes);

/// A piece of a text that holds several programs between lines "// -----".
struct Piece {
  llvm::StringRef text;
  int first_line = 1;  // of the piece in the whole text, from 1
};
std::vector<Piece> splitInput(llvm::StringRef text);

struct ReadOptions {
  int first_line = 1;  // line of the text's first line in the file that it comes from
  bool any_entry =
      false;  // take a module without @main and with several public functions: the first is the entry
};

/// Reads a program in any format that is read: an IR document of stage hlo or spmd, StableHLO text,
/// StableHLO's portable artifacts (MLIR bytecode), or HLO text. Others are refused by name. The result is
/// verified. `filename` names the input in diagnostics, its base name locates ops of text without locations
/// (one warning says how to print them); errors in bytecode name the byte.
llvm::Expected<hlo::Module> readProgram(llvm::StringRef bytes, llvm::StringRef filename, DiagnosticSink& sink,
                                        const ReadOptions& options = {});

/// StableHLO text in pretty or generic form, as JAX, PyTorch and TensorFlow print it. Not verified.
llvm::Expected<hlo::Module> parseStableHlo(llvm::StringRef text, llvm::StringRef filename,
                                           DiagnosticSink& sink, const ReadOptions& options = {});

/// The formats besides StableHLO text, which spells every op, that have a spelling of an op.
struct Spellings {
  bool bytecode = false, hlo_text = false;
};
Spellings spellingsOf(hlo::Opcode opcode);

}  // namespace tpu::frontend
