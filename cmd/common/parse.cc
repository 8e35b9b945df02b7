// CLI11 driven by the flag table.
#include "common/parse.h"

#include <CLI/CLI.hpp>

#include "llvm/ADT/StringExtras.h"
#include "tpu/support/nearest.h"

namespace tpu {
namespace {

llvm::Error usage(const llvm::Twine& text) { return fail(Code::kUsageError, "", text, ExitStatus::kUsage); }

/// -MD, -MF, -Werror=CODE and -Wno-CODE are spelled as compilers spell them; CLI11 wants two dashes.
std::string normalise(llvm::StringRef arg, llvm::ArrayRef<Flag> flags) {
  if (arg.starts_with("-Wno-")) return ("--Wno=" + arg.drop_front(5)).str();
  if (arg == "-Werror") return "--Werror=all";
  for (const Flag& f : flags) {
    llvm::StringRef head = arg.split('=').first;
    if (head == f.spelling() && !head.starts_with("--")) return ("-" + arg).str();
  }
  return arg.str();
}

std::string cliName(const Flag& f) {
  std::string names = "--" + f.name.str();
  if (f.letter) names = std::string("-") + f.letter + "," + names;
  return names;
}

bool isBare(FlagKind kind) { return kind == FlagKind::kSwitch || kind == FlagKind::kOptional; }

llvm::Error unknownFlag(llvm::StringRef arg, llvm::ArrayRef<Flag> flags) {
  llvm::StringRef name = arg.split('=').first;
  std::vector<std::string> spellings;
  for (const Flag& f : flags)
    if (f.level != FlagLevel::kHidden) spellings.push_back(f.spelling());
  std::vector<llvm::StringRef> known(spellings.begin(), spellings.end());
  llvm::StringRef best = nearestName(name, known);
  return usage("unknown flag '" + name + "'" + (best.empty() ? "; --help-all lists the flags" : "; did you mean '" + best + "'?"));
}

llvm::Error checkChoices(const FlagValues& values, llvm::ArrayRef<Flag> flags) {
  for (const Flag& f : flags) {
    auto it = values.given.find(f.name.str());
    std::vector<llvm::StringRef> choices = f.choices();
    if (it == values.given.end() || choices.empty()) continue;
    for (const std::string& v : it->second)
      if (!llvm::is_contained(choices, v) && !(v.empty() && f.kind == FlagKind::kOptional))
        return usage(f.spelling() + ": '" + v + "' is " +
                     (choices.size() == 1 ? "not " : "none of ") + llvm::join(choices, ", "));
  }
  return llvm::Error::success();
}

}  // namespace

llvm::Expected<FlagValues> parseCommandLine(const ToolInfo& info, llvm::ArrayRef<Flag> flags, int argc, char** argv) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<std::vector<std::string>> slots(flags.size());
  std::vector<std::string> inputs;
  std::vector<CLI::Option*> options;
  for (size_t i = 0; i < flags.size(); ++i) {
    CLI::Option* o;
    if (isBare(flags[i].kind))
      o = app.add_flag(cliName(flags[i]), slots[i]);
    else
      o = app.add_option(cliName(flags[i]), slots[i])->allow_extra_args(false);
    options.push_back(o);
  }
  app.add_option("input", inputs)->allow_extra_args(false);
  std::vector<std::string> args;  // CLI11 takes them in reverse
  for (int i = argc - 1; i > 0; --i) args.push_back(normalise(argv[i], flags));
  try {
    app.parse(args);
  } catch (const CLI::ArgumentMismatch& e) {
    llvm::StringRef what = e.what();
    return usage("flag " + what.split(':').first + " needs a value");
  } catch (const CLI::Error& e) {
    return usage(llvm::StringRef(e.what()));
  }
  FlagValues values;
  for (const std::string& extra : app.remaining()) {
    if (llvm::StringRef(extra).starts_with("-") && extra != "-") return unknownFlag(extra, flags);
    inputs.push_back(extra);
  }
  if (inputs.size() > 1) return usage("one input at most, found '" + inputs[0] + "' and '" + inputs[1] + "'");
  if (!inputs.empty()) values.input = inputs[0];
  for (size_t i = 0; i < flags.size(); ++i) {
    if (options[i]->count() == 0) continue;
    std::vector<std::string> got = options[i]->results();
    if (isBare(flags[i].kind))
      for (std::string& v : got)
        if (v == "true") v.clear();
    values.given[flags[i].name.str()] = std::move(got);
  }
  if (llvm::Error e = checkChoices(values, flags)) return e;
  return values;
}

}  // namespace tpu
