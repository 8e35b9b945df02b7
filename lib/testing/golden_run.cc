// Running one golden test in a folder of its own.
#include <cerrno>
#include <csignal>
#include <optional>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/testing/golden.h"

namespace tpu {
namespace {

constexpr int kSeconds = 60;

/// The text of a file, with a final line end; nothing where there is no such file.
std::optional<std::string> readText(const std::string& path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  if (!buffer) return std::nullopt;
  std::string text = (*buffer)->getBuffer().str();
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

void writeText(const std::string& path, llvm::StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error) os << text;
}

std::string shellScript(const GoldenTest& t, const GoldenEnvironment& env) {
  std::string out = "set -eo pipefail\nexport PATH='" + env.bin_dir + "':\"$PATH\" LC_ALL=C TESTDATA='" + env.testdata_dir +
                    "'\nunset NO_COLOR\n";
#if defined(__SANITIZE_ADDRESS__)
  out += "SANITIZED=1\n";
#else
  out += "SANITIZED=\n";
#endif
  for (const std::string& line : t.script) out += line + "\n";
  if (!t.tool.empty()) out += "exec " + t.tool + " " + t.args + "\n";
  return out;
}

/// Runs bash on `script` in `dir` with streams from and to files there; -1 after the time limit.
int runScript(const std::string& script, const std::string& dir, const std::string& streams) {
  std::string in = streams + "/stdin", out = streams + "/stdout", err = streams + "/stderr";
  pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::alarm(0);
    bool ok = ::chdir(dir.c_str()) == 0;
    ok = ok && ::dup2(::open(in.c_str(), O_RDONLY), 0) == 0;
    ok = ok && ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT, 0666), 1) == 1;
    ok = ok && ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT, 0666), 2) == 2;
    if (ok) ::execl("/bin/bash", "bash", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  for (int tick = 0; tick < kSeconds * 200; ++tick) {
    pid_t got = ::waitpid(child, &status, WNOHANG);
    if (got == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ::usleep(5000);
  }
  ::kill(-child, SIGKILL);
  ::waitpid(child, &status, 0);
  return -1;
}

void setSection(GoldenTest* t, llvm::StringRef kind, std::string text) {
  for (GoldenSection& s : t->sections) {
    if (s.kind != kind) continue;
    s.text = std::move(text);
    return;
  }
  t->sections.push_back({kind.str(), "", std::move(text)});
}

}  // namespace

GoldenTest runGolden(const GoldenTest& test, const GoldenEnvironment& env, std::string* problem) {
  GoldenTest seen = test;
  llvm::SmallString<128> root;
  if (llvm::sys::fs::createUniqueDirectory("golden", root)) {
    *problem = "cannot make a temporary folder";
    return seen;
  }
  std::string streams = root.str().str(), dir = streams + "/work";
  ::mkdir(dir.c_str(), 0777);
  writeText(streams + "/stdin", "");
  for (const GoldenSection& s : test.sections) {
    if (s.kind == "INPUT") writeText(dir + "/" + s.name, s.text);
    if (s.kind == "STDIN") writeText(streams + "/stdin", s.text);
  }
  seen.exit = runScript(shellScript(test, env), dir, streams);
  if (seen.exit == -1) *problem = "no end within " + std::to_string(kSeconds) + " s";
  auto ignored = [&](const char* stream) {
    for (const std::string& s : test.ignored)
      if (s == stream) return true;
    return false;
  };
  if (!ignored("stdout")) setSection(&seen, "STDOUT", readText(streams + "/stdout").value_or(""));
  if (!ignored("stderr")) setSection(&seen, "STDERR", readText(streams + "/stderr").value_or(""));
  for (GoldenSection& s : seen.sections) {
    if (s.kind != "OUTPUT") continue;
    std::optional<std::string> text = readText(dir + "/" + s.name);
    if (!text) *problem += "no file " + s.name + "\n";
    s.text = text.value_or("");
  }
  for (const std::string& name : test.absent)
    if (::access((dir + "/" + name).c_str(), F_OK) == 0) *problem += "the file " + name + " should not exist\n";
  llvm::sys::fs::remove_directories(root);
  return seen;
}

}  // namespace tpu
