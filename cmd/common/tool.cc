// Values with defaults, outputs that are committed last, and the life of one run.
#include "common/tool.h"

#include <cassert>
#include <csignal>

#include "common/builtin.h"
#include "common/crash.h"
#include "common/parse.h"
#include "llvm/ADT/StringExtras.h"
#include "tpu/support/host_memory.h"
#include "tpu/support/parallel.h"

namespace tpu {

Tool::Tool(const ToolInfo& info, FlagValues values)
    : info_(info), values_(std::move(values)), flags_(allFlags(info.flags, info.groups)), printer_(info.name, values_.input) {}

const Flag& Tool::flag(llvm::StringRef name) const {
  for (const Flag& f : flags_)
    if (f.name == name) return f;
  assert(false && "a flag that is not in the tool's table");
  std::abort();
}

bool Tool::has(llvm::StringRef name) const { return values_.given.count(flag(name).name.str()) != 0; }

llvm::StringRef Tool::get(llvm::StringRef name) const {
  const Flag& f = flag(name);
  auto it = values_.given.find(name.str());
  if (it == values_.given.end()) return f.kind == FlagKind::kOptional ? llvm::StringRef() : llvm::StringRef(f.otherwise);
  if (f.kind == FlagKind::kOptional && it->second.back().empty()) return f.otherwise;
  return it->second.back();
}

std::vector<std::string> Tool::all(llvm::StringRef name) const {
  auto it = values_.given.find(flag(name).name.str());
  return it == values_.given.end() ? std::vector<std::string>() : it->second;
}

std::vector<std::string> Tool::list(llvm::StringRef name) const {
  std::vector<std::string> out;
  for (const std::string& v : all(name)) {
    llvm::SmallVector<llvm::StringRef, 8> parts;
    llvm::StringRef(v).split(parts, ',', -1, false);
    out.insert(out.end(), parts.begin(), parts.end());
  }
  return out;
}

llvm::Error Tool::badFlag(llvm::StringRef name, const llvm::Twine& text) const {
  return fail(Code::kUsageError, "", flag(name).spelling() + ": " + text, ExitStatus::kUsage);
}

llvm::Expected<int64_t> Tool::getInt(llvm::StringRef name, int64_t min, int64_t max) const {
  int64_t v;
  if (get(name).getAsInteger(10, v)) return badFlag(name, "expected an integer, found '" + get(name) + "'");
  if (v < min || v > max) return badFlag(name, llvm::Twine(v) + " is not in " + llvm::Twine(min) + ".." + llvm::Twine(max));
  return v;
}

llvm::Expected<double> Tool::getNonNegative(llvm::StringRef name) const {
  double v;
  if (get(name).getAsDouble(v) || !(v >= 0)) return badFlag(name, "expected a number from 0, found '" + get(name) + "'");
  return v;
}

llvm::Error Tool::openOutput() {
  bool text = (info_.groups & kEmitFlags) && (get("emit") != "json" || has("only"));
  return openOutput(text ? OutputKind::kText : OutputKind::kDocument);
}

llvm::Error Tool::openOutput(OutputKind kind) {
  llvm::Expected<OutputFile> file = OutputFile::open(get("out"), kind, has("compress"));
  if (!file) return file.takeError();
  output_ = std::move(*file);
  return llvm::Error::success();
}

PassOptions Tool::passOptions() const {
  PassOptions o;
  o.stop_after = get("stop-after").str();
  o.print_after = list("print-after");
  o.only = list("passes");
  o.time = has("time-passes");
  o.dump_dir = get("dump-stages").str();
  return o;
}

llvm::Error Tool::checkOutputFlags() const {
  const unsigned groups = info_.groups;
  if ((groups & kEmitFlags) && has("only") && get("emit") != "json")
    return badFlag("only", "tables are those of the document, --emit=" + get("emit") + " writes none");
  if (!(groups & kOutputFlags)) return llvm::Error::success();
  const bool to_stdout = get("out") == "-";
  if (has("MD") && !has("MF") && to_stdout)
    return badFlag("MD", "needs -o FILE, or -MF FILE, to name the rule's file");
  if (has("MT") && !has("MD") && !has("MF")) return badFlag("MT", "it goes with -MD or -MF");
  if ((groups & kReportFlags) && to_stdout && get("report") == "-")
    return badFlag("report", "the output goes to stdout already; name a file for one of them with -o or --report");
  return llvm::Error::success();
}

llvm::Error Tool::prepare() {
  printer_.setJson(get("diag-format") == "json");
  for (const char* name : {"Werror", "Wno"}) {
    for (const std::string& text : list(name)) {
      bool error = llvm::StringRef(name) == "Werror";
      std::optional<uint16_t> number = parseCode(text);
      if (error && text == "all") printer_.treatAllAsErrors();
      else if (error && text == "sharding") {  // any request that is not honoured as it stands
        for (Code c : {Code::kGathered, Code::kPadded, Code::kDroppedAlias, Code::kNotHonoured}) printer_.treatAsError(c);
      }
      else if (!number || !findCode(*number)) return badFlag(name, "no diagnostic code '" + text + "'");
      else if (error) printer_.treatAsError(static_cast<Code>(*number));
      else printer_.suppress(static_cast<Code>(*number));
    }
  }
  llvm::Expected<int64_t> threads = getInt("threads", 0, 4096);
  if (!threads) return threads.takeError();
  setThreads(static_cast<unsigned>(*threads));
  if (llvm::Error e = checkOutputFlags()) return e;
  if (!(info_.groups & kReportFlags) || !has("report")) return llvm::Error::success();
  llvm::Expected<Report> report = Report::open(get("report"));
  if (!report) return report.takeError();
  report_ = std::move(*report);
  return llvm::Error::success();
}

llvm::Error Tool::writeDepfile() {
  if (!(info_.groups & kOutputFlags) || !(has("MD") || has("MF"))) return llvm::Error::success();
  std::string out = get("out").str();
  std::string path = has("MF") ? get("MF").str() : out + ".d";
  std::string rule = (has("MT") ? get("MT").str() : out) + ":";
  if (values_.input != "-") rule += " " + values_.input;
  for (const std::string& d : dependencies_) rule += " " + d;
  return writeOutput(path, rule + "\n", OutputKind::kText);
}

llvm::Error Tool::commit() {
  if (output_)
    if (llvm::Error e = output_->commit()) return e;
  if (report_)
    if (llvm::Error e = report_->commit()) return e;
  return writeDepfile();
}

int runTool(const ToolInfo& info, int argc, char** argv, llvm::function_ref<llvm::Error(Tool&)> run) {
  useHugePages();
  std::signal(SIGPIPE, SIG_IGN);
  installCrashHandler(info.name.data());
  DiagnosticPrinter early(info.name, "");
  std::vector<Flag> flags = allFlags(info.flags, info.groups);
  llvm::Expected<FlagValues> values = parseCommandLine(info, flags, argc, argv);
  if (!values) return static_cast<int>(early.reportError(values.takeError()));
  Tool tool(info, std::move(*values));
  llvm::Expected<bool> answered = answerBuiltinFlags(tool, flags);
  if (!answered) return static_cast<int>(early.reportError(answered.takeError()));
  if (*answered) return 0;
  if (llvm::Error e = tool.prepare()) return static_cast<int>(early.reportError(std::move(e)));

  ExitStatus status = ExitStatus::kOk;
  if (llvm::Error e = run(tool)) status = tool.printer_.reportError(std::move(e));
  if (status == ExitStatus::kOk && tool.printer_.hasPromoted()) status = ExitStatus::kRefused;
  // Results that differ are results; after any other failure nothing is written.
  if (status != ExitStatus::kOk && status != ExitStatus::kDiffers) return static_cast<int>(status);
  if (llvm::Error e = tool.commit()) {
    ExitStatus failed = tool.printer_.reportError(std::move(e));
    return static_cast<int>(failed == ExitStatus::kOk ? status : failed);
  }
  if (!tool.has("quiet")) llvm::errs() << tool.summary_;
  return static_cast<int>(status);
}

}  // namespace tpu
