// The text form of golden tests and their comparison.
#include "tpu/testing/golden.h"

#include "llvm/ADT/SmallVector.h"

namespace tpu {
namespace {

bool isIgnored(const GoldenTest& t, llvm::StringRef stream) {
  for (const std::string& s : t.ignored)
    if (s == stream) return true;
  return false;
}

llvm::Error headerLine(llvm::StringRef line, GoldenTest* t) {
  auto [key, value] = line.split(':');
  value = value.trim();
  if (key == "TOOL") t->tool = value.str();
  else if (key == "ARGS") t->args = value.str();
  else if (key == "SH") t->script.push_back(value.str());
  else if (key == "ABSENT") t->absent.push_back(value.str());
  else if (key == "IGNORE") t->ignored.push_back(value.str());
  else if (key != "EXIT" || value.getAsInteger(10, t->exit))
    return llvm::createStringError("bad header line: " + line);
  return llvm::Error::success();
}

std::string diffText(llvm::StringRef what, llvm::StringRef expected, llvm::StringRef seen) {
  if (expected == seen) return "";
  int line = 1;
  while (true) {
    auto [e, e_rest] = expected.split('\n');
    auto [s, s_rest] = seen.split('\n');
    if (e != s || expected.empty() || seen.empty())
      return (what + " differs at line " + llvm::Twine(line) + "\n  expected: " + (expected.empty() ? "(end)" : e) +
              "\n  found:    " + (seen.empty() ? "(end)" : s) + "\n").str();
    expected = e_rest;
    seen = s_rest;
    ++line;
  }
}

std::string textOf(const GoldenTest& t, llvm::StringRef kind) {
  const GoldenSection* s = t.find(kind);
  return s ? s->text : "";
}

}  // namespace

const GoldenSection* GoldenTest::find(llvm::StringRef kind) const {
  for (const GoldenSection& s : sections)
    if (s.kind == kind) return &s;
  return nullptr;
}

llvm::Expected<GoldenTest> parseGolden(llvm::StringRef text) {
  GoldenTest t;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    if (line.starts_with("%% ")) {
      auto [kind, name] = line.drop_front(3).trim().split(' ');
      t.sections.push_back({kind.str(), name.trim().str(), ""});
    } else if (!t.sections.empty()) {
      t.sections.back().text += line.str() + "\n";
    } else if (line.starts_with("#") || line.empty()) {
      t.comment += line.str() + "\n";
    } else if (llvm::Error e = headerLine(line, &t)) {
      return e;
    }
  }
  if (t.tool.empty() == t.script.empty()) return llvm::createStringError("a test has either TOOL or SH");
  return t;
}

std::string printGolden(const GoldenTest& t) {
  std::string out = t.comment;
  if (!t.tool.empty()) out += "TOOL: " + t.tool + "\n";
  if (!t.args.empty()) out += "ARGS: " + t.args + "\n";
  for (const std::string& s : t.script) out += "SH: " + s + "\n";
  for (const std::string& s : t.absent) out += "ABSENT: " + s + "\n";
  for (const std::string& s : t.ignored) out += "IGNORE: " + s + "\n";
  if (t.exit != 0) out += "EXIT: " + std::to_string(t.exit) + "\n";
  for (const GoldenSection& s : t.sections) {
    bool stream = s.kind == "STDOUT" || s.kind == "STDERR";
    if (stream && s.text.empty()) continue;
    out += "%% " + s.kind + (s.name.empty() ? "" : " " + s.name) + "\n" + s.text;
  }
  return out;
}

std::string diffGolden(const GoldenTest& expected, const GoldenTest& seen) {
  std::string out;
  if (expected.exit != seen.exit)
    out += "exit status " + std::to_string(seen.exit) + ", expected " + std::to_string(expected.exit) + "\n";
  if (!isIgnored(expected, "stdout")) out += diffText("stdout", textOf(expected, "STDOUT"), textOf(seen, "STDOUT"));
  if (!isIgnored(expected, "stderr")) out += diffText("stderr", textOf(expected, "STDERR"), textOf(seen, "STDERR"));
  for (const GoldenSection& e : expected.sections) {
    if (e.kind != "OUTPUT") continue;
    for (const GoldenSection& s : seen.sections)
      if (s.kind == "OUTPUT" && s.name == e.name) out += diffText(e.name, e.text, s.text);
  }
  return out;
}

}  // namespace tpu
