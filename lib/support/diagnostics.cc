// Diagnostics as llvm::Error payloads, and the table of all codes.
#include "tpu/support/diagnostics.h"

#include <algorithm>

#include "llvm/Support/raw_ostream.h"

namespace tpu {

char DiagnosticError::ID = 0;

void DiagnosticError::log(llvm::raw_ostream& os) const {
  if (!diag.loc.empty()) os << diag.loc << ": ";
  os << diag.text;
}

std::error_code DiagnosticError::convertToErrorCode() const { return llvm::inconvertibleErrorCode(); }

// A message quotes what it found, which may be megabytes: its middle is left out then.
llvm::Error fail(Diagnostic diagnostic) {
  constexpr size_t kLongest = 4000, kKept = 300;
  std::string& text = diagnostic.text;
  if (text.size() > kLongest) text.replace(kKept, text.size() - 2 * kKept, " ... ");
  return llvm::make_error<DiagnosticError>(std::move(diagnostic));
}

llvm::Error fail(Code code, llvm::StringRef loc, const llvm::Twine& text, ExitStatus exit) {
  Diagnostic d;
  d.code = code;
  d.loc = loc.str();
  d.text = text.str();
  d.exit = exit;
  return fail(std::move(d));
}

llvm::Error prefixed(const llvm::Twine& prefix, llvm::Error error) {
  const std::string before = prefix.str();
  llvm::Error out = llvm::Error::success();
  for (Diagnostic& d : takeDiagnostics(std::move(error))) {
    d.text = before + d.text;
    out = llvm::joinErrors(std::move(out), fail(std::move(d)));
  }
  return out;
}

std::vector<Diagnostic> takeDiagnostics(llvm::Error error) {
  std::vector<Diagnostic> out;
  llvm::handleAllErrors(
      std::move(error), [&](DiagnosticError& e) { out.push_back(std::move(e.diag)); },
      [&](const llvm::ErrorInfoBase& e) {
        Diagnostic d;
        d.code = Code::kInternalError;
        d.text = e.message();
        d.exit = ExitStatus::kInternal;
        out.push_back(std::move(d));
      });
  return out;
}

llvm::ArrayRef<CodeInfo> allCodes() {
  static const std::vector<CodeInfo> codes = [] {
    std::vector<CodeInfo> rows = {
#define TPU_CODE(number, name, title, cause, fix) {Code::name, #name, title, cause, fix},
#include "tpu/support/codes/all.def"
    };
    std::sort(rows.begin(), rows.end(), [](const CodeInfo& a, const CodeInfo& b) { return a.code < b.code; });
    return rows;
  }();
  return codes;
}

const CodeInfo* findCode(uint16_t number) {
  for (const CodeInfo& info : allCodes())
    if (static_cast<uint16_t>(info.code) == number) return &info;
  return nullptr;
}

void DiagnosticSink::warn(Code code, llvm::StringRef loc, const llvm::Twine& text) {
  Diagnostic d;
  d.severity = Severity::kWarning;
  d.code = code;
  d.loc = loc.str();
  d.text = text.str();
  report(d);
}

}  // namespace tpu
