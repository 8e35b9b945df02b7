// Running passes one by one: verify, print, dump, time.
#include "tpu/pass/pass.h"

#include <sys/stat.h>

#include "llvm/ADT/STLExtras.h"
#include "tpu/support/diagnostics.h"
#include "tpu/support/files.h"
#include "tpu/support/nearest.h"

namespace tpu {
namespace {

/// A program that a pass left broken is our bug, whatever the verifier calls it.
llvm::Error blame(llvm::StringRef pass, llvm::Error error) {
  llvm::Error out = llvm::Error::success();
  for (Diagnostic& d : takeDiagnostics(std::move(error))) {
    d.text = ("after pass '" + pass + "': " + d.text).str();
    d.exit = ExitStatus::kInternal;
    out = llvm::joinErrors(std::move(out), fail(std::move(d)));
  }
  return out;
}

}  // namespace

llvm::Error checkPassNames(const PassOptions& options, llvm::ArrayRef<PassInfo> passes) {
  std::vector<llvm::StringRef> known;
  for (const PassInfo& p : passes) known.push_back(p.name);
  auto check = [&](llvm::StringRef flag, llvm::StringRef name) -> llvm::Error {
    if (llvm::is_contained(known, name)) return llvm::Error::success();
    return fail(Code::kUsageError, "", "--" + flag + ": no pass '" + name + "'" + suggestName(name, known), ExitStatus::kUsage);
  };
  if (!options.stop_after.empty())
    if (llvm::Error e = check("stop-after", options.stop_after)) return e;
  for (const std::string& name : options.print_after)
    if (name != "all")
      if (llvm::Error e = check("print-after", name)) return e;
  for (const std::string& name : options.only)
    if (llvm::Error e = check("passes", name)) return e;
  return llvm::Error::success();
}

PassRunner::PassRunner(PassHooks& hooks, const PassOptions& options) : hooks_(hooks), options_(options) {}

PassRunner::~PassRunner() {
  if (options_.time) times_.print(log(), "all passes");
}

llvm::raw_ostream& PassRunner::log() const { return options_.log ? *options_.log : llvm::errs(); }

bool PassRunner::wants(llvm::StringRef pass) const {
  return options_.only.empty() || pass == "import" || llvm::is_contained(options_.only, pass);
}

void PassRunner::begin() { times_.begin(); }

llvm::Error PassRunner::end(llvm::StringRef pass, llvm::Error result) {
  times_.end(pass);
  ++index_;
  if (result) return result;
  if (options_.verify)
    if (llvm::Error e = hooks_.verify()) return pass == "import" ? std::move(e) : blame(pass, std::move(e));
  if (llvm::is_contained(options_.print_after, "all") || llvm::is_contained(options_.print_after, pass)) {
    log() << "// after " << pass << '\n';
    hooks_.printText(log());
  }
  return options_.dump_dir.empty() ? llvm::Error::success() : dump(pass);
}

llvm::Error PassRunner::dump(llvm::StringRef pass) {
  ::mkdir(options_.dump_dir.c_str(), 0777);  // where this fails, so does the file
  std::string number = (index_ < 10 ? "0" : "") + std::to_string(index_);
  std::string path = options_.dump_dir + "/" + number + "-" + pass.str() + ".json";
  llvm::Expected<OutputFile> out = OutputFile::open(path, OutputKind::kDocument);
  if (!out) return out.takeError();
  hooks_.writeDocument(out->os());
  return out->commit();
}

}  // namespace tpu
