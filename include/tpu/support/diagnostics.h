// Errors and warnings as data. A function that can fail returns llvm::Error or llvm::Expected<T> carrying a Diagnostic;
// warnings and notes go to a DiagnosticSink that the tool owns. Every diagnostic has a code (codes.def) and, where one
// exists, the location of the user's source, kept as a readable string "file:line:col" through every stage.
#pragma once
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "tpu/support/exit_status.h"

namespace tpu {

enum class Severity : uint8_t { kError, kWarning, kRemark, kNote };

/// One row per code: TPU_CODE(number, severity-class text, title, cause, fix). Numbers are unique over all areas:
/// support/cli 00xx, frontend 01xx, hlo verifier 02xx, eval 03xx, partition 04xx, lower 05xx, schedule 06xx,
/// isa/asm 07xx, emulate 08xx, target 09xx.
enum class Code : uint16_t {
#define TPU_CODE(number, name, title, cause, fix) name = number,
#include "tpu/support/codes/all.def"
};

struct Diagnostic {
  Severity severity = Severity::kError;
  Code code;
  std::string loc;   // "file:line:col", "file", or empty
  std::string text;  // lower-case start, no final full stop, names found and expected
  std::vector<Diagnostic> notes;
  ExitStatus exit = ExitStatus::kRefused;
};

/// The ErrorInfo that carries a Diagnostic.
class DiagnosticError : public llvm::ErrorInfo<DiagnosticError> {
 public:
  static char ID;
  explicit DiagnosticError(Diagnostic d) : diag(std::move(d)) {}
  void log(llvm::raw_ostream& os) const override;
  std::error_code convertToErrorCode() const override;
  Diagnostic diag;
};

/// The usual way to fail: `return fail(Code::kUnknownOp, loc, "unknown op '" + name + "'");`
llvm::Error fail(Code code, llvm::StringRef loc, const llvm::Twine& text, ExitStatus exit = ExitStatus::kRefused);
llvm::Error fail(Diagnostic diagnostic);
/// Takes the diagnostics out of an error (several where errors were joined); foreign errors become kInternalError.
std::vector<Diagnostic> takeDiagnostics(llvm::Error error);
/// The same diagnostics, each text behind `prefix`.
llvm::Error prefixed(const llvm::Twine& prefix, llvm::Error error);

struct CodeInfo {
  Code code;
  llvm::StringRef name, title, cause, fix;
};
/// All codes in ascending order, for --explain-code and the man pages.
llvm::ArrayRef<CodeInfo> allCodes();
const CodeInfo* findCode(uint16_t number);

/// Receives warnings and remarks while work goes on. Thread-compatible, not thread-safe.
class DiagnosticSink {
 public:
  virtual ~DiagnosticSink() = default;
  virtual void report(const Diagnostic& diagnostic) = 0;
  void warn(Code code, llvm::StringRef loc, const llvm::Twine& text);
};

}  // namespace tpu
