// Locations: what of them is kept, and what stands in where there is none.
#include "testing.h"

namespace tpu::frontend {
namespace {

std::string locOf(llvm::StringRef loc, llvm::StringRef before = "", llvm::StringRef after = "") {
  std::string text = (before +
                      "\nmodule @m {\n  func.func @main(%a: tensor<f32>) -> tensor<f32> {\n    %0 = "
                      "stablehlo.abs %a : tensor<f32> " +
                      loc + "\n    return %0 : tensor<f32> loc(\"x.py\":1:1)\n  }\n}\n" + after)
                         .str();
  hlo::Module m = accept(text);
  return m.loc(m.op(m.region(m.func(m.entry).body).ops[0]).loc).str();
}

TEST(Locs, AreTheInnermostFilePosition) {
  EXPECT_EQ(locOf("loc(\"a.py\":3:7)"), "a.py:3:7");
  EXPECT_EQ(locOf("loc(\"a.py\":3:7 to :9)"), "a.py:3:7");
  EXPECT_EQ(locOf("loc(\"a.py\":3:7 to 4:9)"), "a.py:3:7");
  EXPECT_EQ(locOf("loc(\"jit(f)/dot\"(\"a.py\":3:7))"), "a.py:3:7");
  EXPECT_EQ(locOf("loc(callsite(\"in.py\":1:2 at \"out.py\":3:4))"), "in.py:1:2");
  EXPECT_EQ(locOf("loc(callsite(\"f\"(\"in.py\":1:2) at callsite(\"mid.py\":5:6 at \"out.py\":3:4)))"),
            "in.py:1:2");
  EXPECT_EQ(locOf("loc(callsite(unknown at \"out.py\":3:4))"), "out.py:3:4");
  EXPECT_EQ(locOf("loc(fused[\"name\", \"a.py\":3:7, \"b.py\":1:1])"), "a.py:3:7");
  EXPECT_EQ(locOf("loc(fused<{x = 1}>[\"a.py\":3:7])"), "a.py:3:7");
}

TEST(Locs, AliasesMayStandBeforeAndAfter) {
  EXPECT_EQ(locOf("loc(#loc2)", "#loc1 = loc(\"a.py\":3:7)\n#loc2 = loc(\"f\"(#loc1))"), "a.py:3:7");
  EXPECT_EQ(locOf("loc(#loc)", "",
                  "#loc = loc(callsite(#loc9 at #loc8))\n#loc8 = loc(unknown)\n#loc9 = loc(\"a.py\":3:7)\n"),
            "a.py:3:7");
  EXPECT_EQ(locOf("loc(#where)", "#where = loc(\"a.py\":3:7)"), "a.py:3:7");
}

TEST(Locs, ThePositionInTheTextStandsInForNone) {
  EXPECT_EQ(locOf(""), "t.mlir:4:10");
  EXPECT_EQ(locOf("loc(unknown)"), "t.mlir:4:10");
  EXPECT_EQ(locOf("loc(\"add\")"), "t.mlir:4:10");
  EXPECT_EQ(locOf("loc(\"\")"), "");
  EXPECT_EQ(locOf("loc(\"a.py\":3:0)"), "a.py:3");
}

TEST(Locs, OneWarningSaysHowToPrintThem) {
  Collect sink;
  llvm::cantFail(readProgram("func.func @main() {\n  return\n}\n", "t.mlir", sink).takeError());
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].code, Code::kNoLocations);
  EXPECT_NE(sink.all[0].text.find("debug_info=True"), std::string::npos);
}

TEST(Locs, CyclesAndUnknownAliasesAreRefused) {
  EXPECT_EQ(refusal("#loc = loc(#loc1)\n#loc1 = loc(#loc)\nmodule {}"),
            "2:17: location refers to itself, found ')'");
  EXPECT_EQ(refusal("func.func @main() {\n  return loc(#loc7)\n}"), "2:19: unknown location '#loc7'");
}

}  // namespace
}  // namespace tpu::frontend
