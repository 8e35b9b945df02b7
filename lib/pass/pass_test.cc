// Pass lists: order, stopping, selection, blame.
#include "tpu/pass/pass.h"

#include "gtest/gtest.h"
#include "tpu/support/diagnostics.h"

namespace tpu {
namespace {

struct State {
  std::string ran;
  bool broken = false;
};
llvm::Error runImport(State& s) {
  s.ran += 'i';
  return llvm::Error::success();
}
llvm::Error runA(State& s) {
  s.ran += 'a';
  return llvm::Error::success();
}
llvm::Error runB(State& s) {
  s.ran += 'b';
  s.broken = true;
  return llvm::Error::success();
}
constexpr Pass<State> kPasses[] = {{"import", "read", runImport}, {"alpha", "first", runA}, {"beta", "second", runB}};

class Hooks : public PassHooks {
 public:
  explicit Hooks(State& s) : s_(s) {}
  llvm::Error verify() override { return s_.broken ? fail(Code::kBadField, "m.py:1:2", "no operand") : llvm::Error::success(); }
  void printText(llvm::raw_ostream& os) override { os << s_.ran << '\n'; }
  void writeDocument(llvm::raw_ostream& os) override { os << "{}"; }
  State& s_;
};

std::string run(PassOptions o, Diagnostic* problem = nullptr) {
  std::string text;
  llvm::raw_string_ostream log(text);
  o.log = &log;
  State s;
  Hooks hooks(s);
  llvm::Expected<bool> done = runPasses<State>(kPasses, s, hooks, o);
  if (!done) {
    Diagnostic d = takeDiagnostics(done.takeError()).at(0);
    if (problem) *problem = d;
    return "error";
  }
  return s.ran + (*done ? "." : "") + text;
}

TEST(Pass, StopsPrintsAndSelects) {
  PassOptions o;
  o.stop_after = "alpha";
  o.print_after = {"all"};
  EXPECT_EQ(run(o), "ia// after import\ni\n// after alpha\nia\n");
  o = {};
  o.only = {"beta"};
  o.verify = false;
  EXPECT_EQ(run(o), "ib.");
}

TEST(Pass, AFailedCheckNamesThePassAndIsOurs) {
  Diagnostic d;
  EXPECT_EQ(run({}, &d), "error");
  EXPECT_EQ(d.text, "after pass 'beta': no operand");
  EXPECT_EQ(d.exit, ExitStatus::kInternal);
  EXPECT_EQ(d.loc, "m.py:1:2");
}

TEST(Pass, UnknownNamesAreRefusedWithTheNearest) {
  PassOptions o;
  o.stop_after = "alpah";
  Diagnostic d;
  run(o, &d);
  EXPECT_EQ(d.text, "--stop-after: no pass 'alpah'; did you mean 'alpha'?");
  EXPECT_EQ(d.exit, ExitStatus::kUsage);
}

}  // namespace
}  // namespace tpu
