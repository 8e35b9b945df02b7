// The flag table drives parser, help, completions and man pages; diagnostics and exit statuses of a whole run.
#include <cstdlib>

#include "common/crash.h"
#include "common/help.h"
#include "common/parse.h"
#include "gtest/gtest.h"

namespace tpu {
namespace {

constexpr Flag kOwn[] = {
    {"mesh", 0, FlagKind::kValue, "x=4,y=2", "", FlagLevel::kBrief, "Replace the mesh. More words."},
    {"sharding", 0, FlagKind::kList, "I=SPEC", "", FlagLevel::kMore, "Shard argument I."},
    {"inputs", 0, FlagKind::kValue, "seed:N|@FILE", "", FlagLevel::kMore, "Fill."},
    {"explain", 0, FlagKind::kOptional, "text|json", "text", FlagLevel::kMore, "Say why."},
};
constexpr Example kExamples[] = {{"tpu-x a.mlir -o b.json", "does it"}};

ToolInfo info() {
  return {"tpu-x", "does x", "a program", kOutputFlags | kEmitFlags | kPassFlags, kOwn, kExamples,
          {{"import", "read"}, {"alpha", "first"}}};
}

llvm::Expected<FlagValues> parse(std::vector<std::string> args) {
  std::vector<char*> argv = {const_cast<char*>("tpu-x")};
  for (std::string& a : args) argv.push_back(a.data());
  ToolInfo i = info();
  return parseCommandLine(i, allFlags(i.flags, i.groups), static_cast<int>(argv.size()), argv.data());
}

std::string refusal(std::vector<std::string> args) {
  llvm::Expected<FlagValues> v = parse(std::move(args));
  if (v) return "accepted";
  Diagnostic d = takeDiagnostics(v.takeError()).at(0);
  EXPECT_EQ(d.exit, ExitStatus::kUsage);
  return d.text;
}

TEST(Flags, AllForms) {
  FlagValues v = llvm::cantFail(parse({"--mesh=x=1", "in.mlir", "--mesh", "y=2", "--sharding", "0={\"x\",?}", "--sharding=1=[-1,2]",
                                       "--explain", "-o", "out", "-q", "-MD", "-MF", "dep", "-Werror=TP0101", "-Wno-TP0102"}));
  EXPECT_EQ(v.input, "in.mlir");
  EXPECT_EQ(v.given["mesh"], (std::vector<std::string>{"x=1", "y=2"}));
  EXPECT_EQ(v.given["sharding"], (std::vector<std::string>{"0={\"x\",?}", "1=[-1,2]"}));
  EXPECT_EQ(v.given["explain"], std::vector<std::string>{""});
  EXPECT_EQ(v.given["out"], std::vector<std::string>{"out"});
  EXPECT_EQ(v.given["MF"], std::vector<std::string>{"dep"});
  EXPECT_EQ(v.given["Werror"], std::vector<std::string>{"TP0101"});
  EXPECT_EQ(v.given["Wno"], std::vector<std::string>{"TP0102"});
  EXPECT_EQ(v.given.count("quiet"), 1u);
  EXPECT_EQ(v.given.count("MD"), 1u);
  v = llvm::cantFail(parse({"-", "--explain=json", "--inputs=seed:7"}));
  EXPECT_EQ(v.input, "-");
  EXPECT_EQ(v.given["explain"], std::vector<std::string>{"json"});
}

TEST(Flags, RefusalsNameWhatIsWrong) {
  EXPECT_EQ(refusal({"--mehs=x"}), "unknown flag '--mehs'; did you mean '--mesh'?");
  EXPECT_EQ(refusal({"--zzzzzzzz"}), "unknown flag '--zzzzzzzz'; --help-all lists the flags");
  EXPECT_EQ(refusal({"--mesh"}), "flag --mesh needs a value");
  EXPECT_EQ(refusal({"--emit=xml"}), "--emit: 'xml' is none of json, text");
  EXPECT_EQ(refusal({"a", "b"}), "one input at most, found 'a' and 'b'");
}

TEST(Flags, DefaultsAndLists) {
  ToolInfo i = info();
  Tool tool(i, llvm::cantFail(parse({"--print-after=a,b", "--print-after", "c", "--explain"})));
  EXPECT_EQ(tool.list("print-after"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(tool.get("explain"), "text");
  EXPECT_EQ(tool.get("emit"), "json");
  EXPECT_EQ(tool.get("out"), "-");
  EXPECT_FALSE(tool.has("mesh"));
  EXPECT_EQ(llvm::cantFail(tool.getInt("threads", 0, 9)), 0);
}

TEST(Help, FitsAScreenAndNamesEveryFlag) {
  ToolInfo i = info();
  std::vector<Flag> flags = allFlags(i.flags, i.groups);
  std::string brief = helpText(i, flags, false), all = helpText(i, flags, true);
  EXPECT_NE(brief.find("--mesh=x=4,y=2"), std::string::npos);
  EXPECT_EQ(brief.find("More words"), std::string::npos);
  EXPECT_EQ(brief.find("--sharding"), std::string::npos);
  for (const Flag& f : flags)
    EXPECT_EQ(all.find("  " + f.spelling()) != std::string::npos || all.find(", " + f.spelling()) != std::string::npos,
              f.level != FlagLevel::kHidden) << f.spelling();
}

TEST(Man, SectionsAreFilledIn) {
  ToolInfo i = info();
  std::string page = manPage(i, allFlags(i.flags, i.groups), "@NAME@\ntext\n@OPTIONS@\n@PASSES@\n@EXIT@\n");
  EXPECT_NE(page.find("toolchain\"\n.SH NAME\ntpu\\-x \\- does x\ntext\n.SH OPTIONS\n"), std::string::npos) << page;
  EXPECT_NE(page.find(".B \\-\\-mesh=x=4,y=2\n"), std::string::npos);
  EXPECT_NE(page.find(".B alpha\nfirst\n"), std::string::npos);
  EXPECT_NE(page.find(".B 70\n"), std::string::npos);
}

TEST(Completion, ListsFlagsAndValues) {
  ToolInfo i = info();
  std::vector<Flag> flags = allFlags(i.flags, i.groups);
  EXPECT_NE(completionScript(i, flags, "bash").find("--emit) COMPREPLY=($(compgen -W 'json text'"), std::string::npos);
  EXPECT_NE(completionScript(i, flags, "bash").find("--stop-after) COMPREPLY=($(compgen -W 'import alpha'"), std::string::npos);
  EXPECT_NE(completionScript(i, flags, "zsh").find("'--emit="), std::string::npos);
  EXPECT_NE(completionScript(i, flags, "fish").find("-l emit -x -a 'json text'"), std::string::npos);
}

TEST(Diagnostics, CodesHaveOneSpelling) {
  EXPECT_EQ(codeName(Code::kIoError), "TP0002");
  EXPECT_EQ(parseCode("TP0002"), 2);
  EXPECT_EQ(parseCode("17"), 17);
  EXPECT_FALSE(parseCode("TPx"));
}

TEST(Crash, OurBugsEndWithSeventy) {
#if !defined(__SANITIZE_ADDRESS__)
  auto die = [] {
    installCrashHandler("tpu-x");
    std::abort();
  };
  EXPECT_EXIT(die(), ::testing::ExitedWithCode(70), "tpu-x: error.TP0001.: internal error .aborted.");
#endif
}

}  // namespace
}  // namespace tpu
