// A tool's work as a list of passes: data from which --passes, --stop-after, --print-after, --time-passes, --dump-stages
// and the man page are driven. After each pass the program is verified; a program that fails is our bug and names the
// pass, except after "import", where it is the user's.
//
//   constexpr Pass<State> kPasses[] = {{"import", "read the program", importPass}, ...};
//   llvm::Expected<bool> finished = runPasses<State>(kPasses, state, hooks, options);
#pragma once
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/support/time_table.h"

namespace tpu {

struct PassInfo {
  llvm::StringLiteral name, summary;
};

template <class State>
struct Pass {
  llvm::StringLiteral name, summary;
  llvm::Error (*run)(State& state);
};

/// The rows without their functions, for the flag library.
template <class State>
std::vector<PassInfo> passInfos(llvm::ArrayRef<Pass<State>> passes) {
  std::vector<PassInfo> out;
  for (const Pass<State>& p : passes) out.push_back({p.name, p.summary});
  return out;
}

struct PassOptions {
  std::string stop_after;                 // empty: run to the end
  std::vector<std::string> print_after;   // names, or "all"
  std::vector<std::string> only;          // empty: all; "import" always runs
  bool time = false;
  bool verify = true;
  std::string dump_dir;                   // numbered documents after each pass, "03-reshard.json"
  llvm::raw_ostream* log = nullptr;       // null: stderr
};

/// How the pass list sees the program between passes.
class PassHooks {
 public:
  virtual ~PassHooks() = default;
  virtual llvm::Error verify() = 0;
  virtual void printText(llvm::raw_ostream& os) = 0;
  virtual void writeDocument(llvm::raw_ostream& os) = 0;
};

/// Fails with kUsageError where a name in `options` is no pass, naming the nearest one.
llvm::Error checkPassNames(const PassOptions& options, llvm::ArrayRef<PassInfo> passes);

class PassRunner {
 public:
  PassRunner(PassHooks& hooks, const PassOptions& options);
  ~PassRunner();  // prints the times
  bool wants(llvm::StringRef pass) const;
  void begin();
  llvm::Error end(llvm::StringRef pass, llvm::Error result);
  bool stopsAfter(llvm::StringRef pass) const { return options_.stop_after == pass; }

 private:
  llvm::Error dump(llvm::StringRef pass);
  llvm::raw_ostream& log() const;
  PassHooks& hooks_;
  const PassOptions& options_;
  int index_ = 0;
  TimeTable times_;
};

/// False where it stopped at options.stop_after before the last pass.
template <class State>
llvm::Expected<bool> runPasses(llvm::ArrayRef<Pass<State>> passes, State& state, PassHooks& hooks, const PassOptions& options) {
  std::vector<PassInfo> infos = passInfos(passes);
  if (llvm::Error e = checkPassNames(options, infos)) return e;
  PassRunner runner(hooks, options);
  for (const Pass<State>& pass : passes) {
    if (runner.wants(pass.name)) {
      runner.begin();
      if (llvm::Error e = runner.end(pass.name, pass.run(state))) return e;
    }
    if (runner.stopsAfter(pass.name)) return &pass == &passes.back();
  }
  return true;
}

}  // namespace tpu
