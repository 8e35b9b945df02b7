// Text and JSON forms of diagnostics.
#include "common/diagnostic_printer.h"

#include <cstdlib>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/serial/json_writer.h"

namespace tpu {
namespace {

constexpr size_t kMaxSourceBytes = size_t{64} << 20;
constexpr size_t kShownColumns = 100;

llvm::StringRef severityName(Severity s) {
  switch (s) {
    case Severity::kError: return "error";
    case Severity::kWarning: return "warning";
    case Severity::kRemark: return "remark";
    case Severity::kNote: return "note";
  }
  return "";
}

llvm::StringRef severityColor(Severity s) {
  switch (s) {
    case Severity::kError: return "\033[1;31m";
    case Severity::kWarning: return "\033[1;35m";
    default: return "\033[1;36m";
  }
}

struct Place {
  llvm::StringRef file;
  unsigned line = 0, column = 0;  // 0: not known
};

Place parsePlace(llvm::StringRef loc) {
  Place p{loc};
  auto [head, column] = loc.rsplit(':');
  auto [file, line] = head.rsplit(':');
  unsigned l, c;
  if (!line.getAsInteger(10, l) && !column.getAsInteger(10, c)) return {file, l, c};
  if (!column.getAsInteger(10, l)) return {head, l, 0};
  return p;
}

bool wantsColor() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return ::isatty(2) && !(no_color && *no_color) && !(term && llvm::StringRef(term) == "dumb");
}

}  // namespace

std::string codeName(Code code) {
  std::string digits = std::to_string(static_cast<unsigned>(code));
  return "TP" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

std::optional<uint16_t> parseCode(llvm::StringRef text) {
  if (!text.consume_front("TP")) text.consume_front("tp");
  uint16_t n;
  if (text.getAsInteger(10, n)) return std::nullopt;
  return n;
}

DiagnosticPrinter::DiagnosticPrinter(llvm::StringRef tool, llvm::StringRef input)
    : tool_(tool.str()), input_(input.str()), color_(wantsColor()) {}

void DiagnosticPrinter::report(const Diagnostic& d) {
  Severity severity = d.severity;
  if (severity == Severity::kWarning) {
    if (suppressed_.count(d.code)) return;
    if (all_errors_ || errors_.count(d.code)) {
      severity = Severity::kError;
      promoted_ = true;
    } else {
      ++warnings_;
    }
  }
  if (json_) {
    printJson(llvm::errs(), d, severity);
    llvm::errs() << '\n';
  } else {
    printText(d, severity);
  }
}

ExitStatus DiagnosticPrinter::reportError(llvm::Error error) {
  std::vector<Diagnostic> all = takeDiagnostics(std::move(error));
  for (const Diagnostic& d : all)
    if (d.code != Code::kClosedPipe) report(d);
  return all.front().exit;
}

void DiagnosticPrinter::printText(const Diagnostic& d, Severity severity) {
  llvm::raw_ostream& os = llvm::errs();
  llvm::StringRef bold = color_ ? "\033[1m" : "", reset = color_ ? "\033[0m" : "";
  os << bold << (d.loc.empty() ? tool_ : d.loc) << ": " << reset;
  if (color_) os << severityColor(severity);
  os << severityName(severity);
  if (severity != Severity::kNote) os << '[' << codeName(d.code) << ']';
  os << reset << ": " << d.text << '\n';
  printSource(d.loc);
  for (const Diagnostic& note : d.notes) printText(note, Severity::kNote);
}

const std::vector<std::string>* DiagnosticPrinter::sourceLines(llvm::StringRef file) {
  auto [it, fresh] = sources_.try_emplace(file.str());
  if (fresh && !file.empty() && !file.starts_with("<")) {
    std::string beside = (llvm::sys::path::parent_path(input_) + "/" + file).str();
    for (const std::string& path : {file.str(), beside}) {
      struct stat st;
      if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || static_cast<size_t>(st.st_size) > kMaxSourceBytes) continue;
      auto buffer = llvm::MemoryBuffer::getFile(path);
      if (!buffer || (*buffer)->getBuffer().contains('\0')) continue;
      llvm::SmallVector<llvm::StringRef, 0> lines;
      (*buffer)->getBuffer().split(lines, '\n');
      it->second.assign(lines.begin(), lines.end());
      break;
    }
  }
  return it->second.empty() ? nullptr : &it->second;
}

void DiagnosticPrinter::printSource(llvm::StringRef loc) {
  Place place = parsePlace(loc);
  if (place.line == 0) return;
  const std::vector<std::string>* lines = sourceLines(place.file);
  if (!lines || place.line > lines->size()) return;
  llvm::StringRef line = llvm::StringRef((*lines)[place.line - 1]).rtrim("\r");
  size_t column = place.column ? place.column - 1 : 0;
  if (column > line.size()) return;
  // A long line is cut around the column.
  size_t from = column > kShownColumns * 2 / 3 ? column - kShownColumns / 2 : 0;
  std::string shown = line.substr(from, kShownColumns).str();
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  llvm::errs() << "    " << (from ? "..." : "") << shown << (from + kShownColumns < line.size() ? "..." : "") << '\n';
  if (place.column) llvm::errs().indent(static_cast<unsigned>(4 + (from ? 3 : 0) + column - from)) << "^\n";
}

void DiagnosticPrinter::printJson(llvm::raw_ostream& os, const Diagnostic& d, Severity severity) const {
  Place place = parsePlace(d.loc);
  JsonWriter w(os);
  w.beginObject().field("severity", severityName(severity)).field("code", codeName(d.code));
  w.field("file", place.file);
  if (place.line) w.field("line", place.line);
  if (place.column) w.field("col", place.column);
  w.field("text", d.text).key("notes").beginArray();
  for (const Diagnostic& note : d.notes) {
    Place at = parsePlace(note.loc);
    w.beginObject().field("file", at.file);
    if (at.line) w.field("line", at.line);
    if (at.column) w.field("col", at.column);
    w.field("text", note.text).endObject();
  }
  w.endArray().endObject();
}

}  // namespace tpu
