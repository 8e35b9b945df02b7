// --help, --help-all and man pages.
#include "common/help.h"

#include "llvm/ADT/StringExtras.h"

namespace tpu {
namespace {

constexpr size_t kHelpColumn = 27;
constexpr size_t kWidth = 100;

struct ExitRow {
  int status;
  const char* meaning;
};
constexpr ExitRow kExits[] = {
    {0, "done; also when the reader of a pipe went away"},
    {1, "the input was refused, or a check failed"},
    {2, "wrong usage: an unknown flag, value or chip"},
    {3, "results differ from what was expected"},
    {4, "the program needs more memory than the machine has"},
    {5, "the program hangs or would hang"},
    {6, "a file cannot be opened, read or written"},
    {70, "a bug of the tool"},
};

struct GroupRow {
  FlagGroup group;
  const char* title;
};
constexpr GroupRow kGroups[] = {
    {kToolFlags, "What this tool does"}, {kOutputFlags, "Output"},      {kEmitFlags, "Form of the output"},
    {kPassFlags, "Passes"},              {kReportFlags, "Report"},      {kTargetFlags, "Machines"},
    {kCommonFlags, "Common to all tools"},
};

/// "-o, --out=FILE"
std::string signature(const Flag& f) {
  std::string s = f.letter ? std::string("-") + f.letter + ", " : "";
  s += f.spelling();
  if (f.kind == FlagKind::kOptional) return s + "[=" + f.value.str() + "]";
  if (f.kind == FlagKind::kSwitch) return s;
  return s + "=" + f.value.str();
}

std::string firstSentence(llvm::StringRef help) {
  size_t end = help.find(". ");
  return help.substr(0, end).rtrim('.').str();
}

std::string fullHelp(const Flag& f) {
  std::string text = f.help.str();
  if (!f.otherwise.empty() && f.kind == FlagKind::kValue) text += " Default: " + f.otherwise.str() + ".";
  return text;
}

void appendWrapped(std::string* out, llvm::StringRef text, size_t column) {
  size_t used = column;
  llvm::SmallVector<llvm::StringRef, 32> words;
  text.split(words, ' ', -1, false);
  bool first = true;
  for (llvm::StringRef w : words) {
    if (!first && used + 1 + w.size() > kWidth) {
      *out += "\n" + std::string(column, ' ');
      used = column;
      first = true;
    }
    if (!first) *out += ' ', ++used;
    *out += w;
    used += w.size();
    first = false;
  }
  *out += '\n';
}

void appendFlag(std::string* out, const Flag& f, llvm::StringRef text) {
  std::string head = "  " + signature(f);
  *out += head;
  if (head.size() + 2 > kHelpColumn)
    *out += "\n" + std::string(kHelpColumn, ' ');
  else
    *out += std::string(kHelpColumn - head.size(), ' ');
  appendWrapped(out, text, kHelpColumn);
}

std::string roff(llvm::StringRef text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else if (c == '\'') out += "\\(aq";
    else out += c;
  }
  if (!out.empty() && out[0] == '.') out = "\\&" + out;
  return out;
}

std::string manOptions(llvm::ArrayRef<Flag> flags) {
  std::string out = ".SH OPTIONS\n";
  for (const GroupRow& g : kGroups) {
    bool any = false;
    for (const Flag& f : flags) {
      if (f.group != g.group || f.level == FlagLevel::kHidden) continue;
      if (!any) out += ".SS " + std::string(g.title) + "\n";
      any = true;
      out += ".TP\n.B " + roff(signature(f)) + "\n" + roff(fullHelp(f)) + "\n";
    }
  }
  return out;
}

std::string manSection(const ToolInfo& info, llvm::ArrayRef<Flag> flags, llvm::StringRef name) {
  std::string out;
  if (name == "NAME") {
    out = ".SH NAME\n" + roff(info.name) + " \\- " + roff(info.summary) + "\n";
  } else if (name == "SYNOPSIS") {
    out = ".SH SYNOPSIS\n.B " + roff(info.name) + "\n[FLAGS] [FILE]\n";
  } else if (name == "OPTIONS") {
    out = manOptions(flags);
  } else if (name == "PASSES") {
    out = ".SH PASSES\n";
    for (const PassInfo& p : info.passes) out += ".TP\n.B " + roff(p.name) + "\n" + roff(p.summary) + "\n";
  } else if (name == "EXAMPLES") {
    out = ".SH EXAMPLES\n";
    for (const Example& e : info.examples) out += ".TP\n.B " + roff(e.command) + "\n" + roff(e.what) + "\n";
  } else if (name == "EXIT") {
    out = ".SH EXIT STATUS\n";
    for (const ExitRow& e : kExits) out += ".TP\n.B " + std::to_string(e.status) + "\n" + roff(e.meaning) + "\n";
  }
  return out;
}

}  // namespace

std::string helpText(const ToolInfo& info, llvm::ArrayRef<Flag> flags, bool all) {
  std::string out = info.name.str() + " - " + info.summary.str() + "\n\nusage: " + info.name.str() + " [FLAGS] [FILE]\n";
  out += "  ";
  appendWrapped(&out, "FILE is " + info.input.str() + "; '-' or nothing is stdin.", 2);
  out += '\n';
  for (const Example& e : info.examples) out += "  " + e.command.str() + "\n      " + e.what.str() + "\n";
  for (const GroupRow& g : kGroups) {
    bool any = false;
    for (const Flag& f : flags) {
      if (f.group != g.group || f.level == FlagLevel::kHidden || (!all && f.level != FlagLevel::kBrief)) continue;
      if (!any && (all || g.group == kToolFlags)) out += all ? "\n" + std::string(g.title) + ":\n" : "\n";
      any = true;
      appendFlag(&out, f, all ? fullHelp(f) : firstSentence(f.help));
    }
  }
  if (!all) return out;
  out += "\nExit status:\n";
  for (const ExitRow& e : kExits)
    out += (e.status < 10 ? "   " : "  ") + std::to_string(e.status) + "  " + e.meaning + "\n";
  return out;
}

std::string manPage(const ToolInfo& info, llvm::ArrayRef<Flag> flags, llvm::StringRef prose) {
  std::string out = ".TH " + llvm::StringRef(info.name).upper() + " 1 \"\" \"tpu-toolchain\" \"TPU compiler toolchain\"\n";
  while (!prose.empty()) {
    auto [line, rest] = prose.split('\n');
    prose = rest;
    if (line.size() > 2 && line.starts_with("@") && line.ends_with("@"))
      out += manSection(info, flags, line.drop_front().drop_back());
    else
      out += line.str() + "\n";
  }
  return out;
}

}  // namespace tpu
