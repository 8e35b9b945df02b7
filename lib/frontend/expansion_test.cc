// Short programs that stand for ones without end: what is shared or called twice at each of 60 steps.
#include "testing.h"

namespace tpu::frontend {
namespace {

std::string steps(int first, int last, llvm::StringRef line) {  // N: the step's number, P: that of the one before
  std::string all;
  for (int i = first; i <= last; ++i)
    for (char ch : line) all += ch == 'N' ? std::to_string(i) : ch == 'P' ? std::to_string(i - 1) : std::string(1, ch);
  return all;
}

TEST(Expansion, TupleTypesAreCounted) {
  const std::string types = "!t0 = tensor<f32>\n" + steps(1, 60, "!tN = tuple<!tP, !tP>\n");
  EXPECT_EQ(refusal(types + "func.func @main(%a: !t60) {\nreturn\n}"), "17:8: tuple of too many parts");
  EXPECT_EQ(refusal(types + "func.func @main(%a: !t10) {\nreturn\n}"), "accepted");
}

TEST(Expansion, LocationsAndAttributesAreShared) {
  const std::string locs = "#loc = loc(\"a.py\":1:2)\n#loc1 = loc(fused[#loc, #loc])\n" +
                           steps(2, 60, "#locN = loc(fused[#locP, #locP])\n") + "#a0 = [1]\n" +
                           steps(1, 60, "#aN = [#aP, #aP]\n");
  EXPECT_EQ(refusal(locs + "func.func @main() attributes {x = #a60} {\nreturn loc(#loc60)\n}"), "accepted");
}

TEST(Expansion, ComputationsOfHloTextBecomePartOfTheirCallers) {
  const char* const kStart = "HloModule m\nc0 {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] abs(a)\n}\n";
  const std::string calls = steps(1, 60, "cN {\n  a = f32[4] parameter(0)\n  b = f32[4] call(a), to_apply=cP\n"
                                         "  ROOT d = f32[4] fusion(b), kind=kLoop, calls=cP\n}\n");
  EXPECT_NE(refusal(kStart + calls + "ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] call(a), to_apply=c60\n}\n")
                .find("the calls of this program unfold to too many instructions"),
            std::string::npos);
  EXPECT_EQ(refusal(kStart + calls + "ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] call(a), to_apply=c10\n}\n"),
            "accepted");
  EXPECT_EQ(refusal("HloModule m\nENTRY e {\n  t0 = f32[4] parameter(0)\n" + steps(1, 60, "  tN = (f32[4], f32[4]) tuple(tP, tP)\n") +
                    "  ROOT r = f32[4] get-tuple-element(t1), index=0\n}\n"),
            "5:3: 'tuple' does not give the tuple or array that is stated");
}

// A message quotes what it found.
TEST(Expansion, MessagesStayShort) {
  const std::string name(1 << 20, 'q');
  EXPECT_LT(refusal("func.func @main(%a: tensor<4x" + name + ">) {\nreturn\n}").size(), 1000u);
}

}  // namespace
}  // namespace tpu::frontend
