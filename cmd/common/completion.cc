// Completion scripts for bash, zsh and fish.
#include "common/help.h"
#include "llvm/ADT/StringExtras.h"

namespace tpu {
namespace {

bool visible(const Flag& f) { return f.level != FlagLevel::kHidden; }
bool takesValue(const Flag& f) { return f.kind == FlagKind::kValue || f.kind == FlagKind::kList; }
bool isFile(const Flag& f) { return f.value == "FILE" || f.value == "DIR"; }

/// The words that may stand as the flag's value, separated by spaces; empty where anything may.
std::string valueWords(const ToolInfo& info, const Flag& f) {
  if (f.name == "stop-after" || f.name == "print-after" || f.name == "passes") {
    std::string out;
    for (const PassInfo& p : info.passes) out += (out.empty() ? "" : " ") + p.name.str();
    return out;
  }
  std::vector<llvm::StringRef> choices = f.choices();
  return llvm::join(choices, " ");
}

std::string functionName(const ToolInfo& info) {
  std::string name = "_" + info.name.str();
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

std::string bash(const ToolInfo& info, llvm::ArrayRef<Flag> flags) {
  std::string words, cases;
  for (const Flag& f : flags) {
    if (!visible(f)) continue;
    words += (words.empty() ? "" : " ") + f.spelling();
    if (f.letter) words += std::string(" -") + f.letter;
    std::string values = valueWords(info, f);
    if (!values.empty())
      cases += "    " + f.spelling() + ") COMPREPLY=($(compgen -W '" + values + "' -- \"$cur\")); return ;;\n";
  }
  std::string name = functionName(info);
  return name + "() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
         "  case $prev in\n" + cases + "  esac\n"
         "  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W '" + words + "' -- \"$cur\"))\n"
         "  else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n}\n"
         "complete -o filenames -F " + name + " " + info.name.str() + "\n";
}

/// Text within single quotes of a shell.
std::string quoted(llvm::StringRef text) {
  std::string out;
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

std::string zshText(llvm::StringRef text) {
  std::string out;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return quoted(out);
}

std::string zsh(const ToolInfo& info, llvm::ArrayRef<Flag> flags) {
  std::string out = "#compdef " + info.name.str() + "\n_arguments \\\n";
  for (const Flag& f : flags) {
    if (!visible(f)) continue;
    std::string values = valueWords(info, f);
    std::string action = !values.empty() ? "(" + values + ")" : isFile(f) ? "_files" : "";
    std::string tail = "[" + zshText(f.help) + "]";
    if (takesValue(f)) tail = (f.spelling()[1] == '-' ? "=" : "") + tail + ":" + zshText(f.value) + ":" + action;
    if (f.kind == FlagKind::kOptional) tail = "=-" + tail + "::" + zshText(f.value) + ":" + action;
    out += "  '" + std::string(f.kind == FlagKind::kList ? "*" : "") + f.spelling() + tail + "' \\\n";
    if (f.letter) out += std::string("  '-") + f.letter + "[" + zshText(f.help) + "]" + (takesValue(f) ? ":" + zshText(f.value) + ":" + action : "") + "' \\\n";
  }
  return out + "  '*:file:_files'\n";
}

std::string fish(const ToolInfo& info, llvm::ArrayRef<Flag> flags) {
  std::string out;
  for (const Flag& f : flags) {
    if (!visible(f)) continue;
    out += "complete -c " + info.name.str() + (f.spelling()[1] == '-' ? " -l " : " -o ") + f.name.str();
    if (f.letter) out += std::string(" -s ") + f.letter;
    if (takesValue(f)) out += isFile(f) ? " -r" : " -x";
    std::string values = valueWords(info, f);
    if (!values.empty()) out += " -a '" + values + "'";
    out += " -d '" + quoted(f.help) + "'\n";
  }
  return out;
}

}  // namespace

std::string completionScript(const ToolInfo& info, llvm::ArrayRef<Flag> flags, llvm::StringRef shell) {
  if (shell == "bash") return bash(info, flags);
  if (shell == "zsh") return zsh(info, flags);
  return fish(info, flags);
}

}  // namespace tpu
