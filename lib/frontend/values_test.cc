// Literals by value, and shardings by structure.
#include "testing.h"
#include "tpu/hlo/literal.h"

namespace tpu::frontend {
namespace {

std::string literalOf(llvm::StringRef data, llvm::StringRef type) {
  hlo::Module m =
      accept(mainOf(("() -> " + type).str(),
                    ("%0 = stablehlo.constant " + data + " : " + type + "\n return %0 : " + type).str()));
  if (m.funcs.empty()) return "refused";
  hlo::OpId op = m.region(m.func(m.entry).body).ops[0];
  const hlo::Literal& l = m.literal(m.findAttr(op, hlo::AttrKey::value)->literal);
  const hlo::Type& t = m.type(l.type);
  std::string text = l.splat ? "splat" : "";
  int64_t count = l.splat ? 1 : t.numElements();
  for (int64_t i = 0; i < count; ++i)
    text += (text.empty() ? "" : " ") + hlo::elementText(t.element, hlo::literalElement(m, l, i));
  return text;
}

TEST(Literals, AreReadByValue) {
  EXPECT_EQ(literalOf("dense<1.5>", "tensor<4xf32>"), "splat 1.5");
  EXPECT_EQ(literalOf("dense<[[1, -2], [3, 4]]>", "tensor<2x2xi32>"), "1 -2 3 4");
  EXPECT_EQ(literalOf("dense<[1.0e-3, -0.0, 0xFF800000]>", "tensor<3xf32>"), "0.001 -0 0xff800000");
  EXPECT_EQ(literalOf("dense<0x7FC0>", "tensor<bf16>"), "splat 0x7fc0");
  EXPECT_EQ(literalOf("dense<[1.0, 3.3895314E+38]>", "tensor<2xbf16>"), "1 3.3895314e+38");
  EXPECT_EQ(literalOf("dense<[true, false]>", "tensor<2xi1>"), "true false");
  EXPECT_EQ(literalOf("dense<[-8, 7]>", "tensor<2xi4>"), "-8 7");
  EXPECT_EQ(literalOf("dense<[0, 255]>", "tensor<2xui8>"), "0 255");
  EXPECT_EQ(literalOf("dense<18446744073709551615>", "tensor<ui64>"), "splat 18446744073709551615");
  EXPECT_EQ(literalOf("dense<-9223372036854775808>", "tensor<i64>"), "splat -9223372036854775808");
  EXPECT_EQ(literalOf("dense<[(1.0, -2.0), (0.5, 0x7F800000)]>", "tensor<2xcomplex<f32>>"),
            "(1,-2) (0.5,0x7f800000)");
  EXPECT_EQ(literalOf("dense<(1.0, 2.0)>", "tensor<3xcomplex<f64>>"), "splat (1,2)");
  EXPECT_EQ(literalOf("dense<[4.480000e+02, 0x7F]>", "tensor<2xf8E4M3FN>"), "448 0x7f");
  EXPECT_EQ(literalOf("dense<>", "tensor<0xf32>"), "");
  EXPECT_EQ(literalOf("dense<\"0x0000803F00000040\">", "tensor<2xf32>"), "1 2");
  EXPECT_EQ(literalOf("dense<\"0x0000803F\">", "tensor<2xf32>"), "splat 1");
  EXPECT_EQ(literalOf("dense<\"0x0501\">", "tensor<9xi1>"),
            "true false true false false false false false true");
  EXPECT_EQ(literalOf("dense<\"0xFF01\">", "tensor<2xi4>"), "-1 1");
}

TEST(Literals, ThatDoNotFitAreRefused) {
  auto refused = [](llvm::StringRef data, llvm::StringRef type) {
    return refusal(
        ("func.func @main() {\n%0 = stablehlo.constant " + data + " : " + type + "\nreturn\n}").str());
  };
  EXPECT_EQ(refused("dense<[1, 2]>", "tensor<3xi32>"), "2:37: list of 2 entries where the type has 3");
  EXPECT_EQ(refused("dense<256>", "tensor<ui8>"), "2:31: integer does not fit u8");
  EXPECT_EQ(refused("dense<-1>", "tensor<ui8>"), "2:31: integer does not fit u8");
  EXPECT_EQ(refused("dense<1.5>", "tensor<i32>"), "2:31: fraction in an integer literal");
  EXPECT_EQ(refused("dense<[[1]]>", "tensor<1xi32>"),
            "2:32: expected a number, found '[1]]> : tensor<1xi32'");
  EXPECT_EQ(refused("dense<\"0x00\">", "tensor<2xf32>"),
            "2:25: literal has another number of elements than its type");
  EXPECT_EQ(refused("dense_resource<__elided__>", "tensor<2xf32>"),
            "2:25: the data of this constant is not in the text; print the program with all constants");
  EXPECT_EQ(refused("dense<__elided__>", "tensor<2xf32>"),
            "2:25: the data of this constant was elided; print the program with all constants");
}

TEST(Literals, ResourcesStandBehindTheModule) {
  const auto program = [](const char* name, const char* type, const char* data) {
    return "func.func @main() {\n%0 = stablehlo.constant dense_resource<" + std::string(name) + "> : tensor<" + type +
           ">\nreturn\n}\n{-#\n  dialect_resources: {\n    builtin: {\n      a: \"" + data +
           "\",\n      \"b c\": \"0x010000000FF1\"\n    }\n  },\n  external_resources: {\n    mlir_reproducer: {\n"
           "      verify_each: true\n    }\n  }\n#-}\n";
  };
  const auto value = [&](const char* name, const char* type, const char* data) {
    const hlo::Module m = accept(program(name, type, data));
    return opsText(m);
  };
  EXPECT_EQ(value("a", "2xf32", "0x040000000000803F00000040"), "%0 = constant {value=[1,2]} : f32[2]\nreturn\n");
  EXPECT_EQ(value("a", "3xi1", "0x01000000010001"),
            "%0 = constant {value=[true,false,true]} : pred[3]\nreturn\n");
  EXPECT_EQ(value("\"b c\"", "2xi4", ""), "%0 = constant {value=[-1,1]} : s4[2]\nreturn\n");
  EXPECT_EQ(refusal(program("a", "2xf32", "0x040000000000803F")),
            "2:25: resource 'a' has 8 bytes, 12 with its alignment were expected");
  EXPECT_EQ(refusal(program("a", "2xf32", "0x0400000z")), "2:25: bad hexadecimal digit");
  EXPECT_EQ(refusal(program("d", "2xf32", "0x04000000")),
            "2:25: the data of this constant is not in the text; print the program with all constants");
  EXPECT_EQ(refusal(program("a", "?xf32", "0x04000000")), "2:25: a literal needs a tensor type of static shape");
}

TEST(Shardings, AreReadWithSubAxesOpenDimsAndPriorities) {
  hlo::Module m = accept(R"(module @m {
  sdy.mesh @mesh = <["x"=4, "y"=2, "z"=3], device_ids=[23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @one = <[], device_ids=[5]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, "y", ?}p1, {"x":(2)2}], replicated={"z"}>}, %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["q"=2]>, [{?}, {"q"}]>}) -> tensor<8x8xf32> {
    %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}], unreduced={"y"}>]>} : tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{}, {?}]> : tensor<8x8xf32>
    %2 = sdy.reshard %1 <@one, []> : tensor<8x8xf32>
    sdy.sharding_group %2 group_id=4 : tensor<8x8xf32>
    %3 = sdy.propagation_barrier %2 allowed_direction=FORWARD : tensor<8x8xf32>
    %4 = sdy.all_gather [{"x"}, {}] %3 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
    return %4 : tensor<8x8xf32>
  }
})");
  ASSERT_EQ(m.meshes.size(), 3u);
  EXPECT_EQ(m.meshes[0].device_ids.front(), 23);
  EXPECT_EQ(m.meshes[1].maximal_device, 5);
  EXPECT_EQ(m.meshes[2].axes[0].name, "q");
  EXPECT_EQ(opsText(m),
            "%0 = add %a0, %a1 : f32[8,8] @mesh [{x}, {}] unreduced={y}\n"
            "%1 = sdy.sharding_constraint %0 {sharding=@mesh [{}, {?}]} : f32[8,8]\n"
            "%2 = sdy.reshard %1 {sharding=@one []} : f32[8,8]\n"
            "sdy.sharding_group %2 {group_id=4}\n"
            "%3 = sdy.propagation_barrier %2 {allowed_direction=FORWARD} : f32[8,8]\n"
            "%4 = sdy.all_gather %3 {sharding=@mesh [{}, {}], dim_axes=[{\"x\"}, {}]} : f32[8,8]\n"
            "return %4\n");
  EXPECT_EQ(hlo::shardingText(m, m.func(m.entry).arg_ports[0].sharding),
            "@mesh [{x:(1)2,y,?}p1, {x:(2)2}] replicated={z}");
  EXPECT_EQ(hlo::shardingText(m, m.func(m.entry).arg_ports[1].sharding), "@ [{?}, {q}]");
}

TEST(Shardings, ManualComputationsNest) {
  hlo::Module m = accept(R"(module @m {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {?}]>] out_shardings=[<@mesh, [{"x"}, {?}]>] manual_axes={"x"} (%b: tensor<2x8xf32>) {
      %1 = sdy.manual_computation(%b) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"y"} (%c: tensor<2x4xf32>) {
        sdy.return %c : tensor<2x4xf32>
      } : (tensor<2x8xf32>) -> tensor<2x8xf32>
      sdy.return %1 : tensor<2x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
})");
  EXPECT_NE(opsText(m).find("manual_axes={y}"), std::string::npos);
}

TEST(Shardings, MistakesAreRefused) {
  auto refused = [](llvm::StringRef sharding) {
    return refusal(("module {\nsdy.mesh @mesh = <[\"x\"=4]>\nfunc.func @main(%a: tensor<8xf32> {sdy.sharding "
                    "= #sdy.sharding<" +
                    sharding + ">}) {\nreturn\n}\n}")
                       .str());
  };
  EXPECT_EQ(refused("@mesh, [{\"q\"}]"), "3:74: mesh 'mesh' has no axis 'q'; known are x");
  EXPECT_EQ(refused("@other, [{}]"), "3:65: unknown mesh '@other'; known are mesh");
  EXPECT_EQ(refused("@mesh, [{\"x\":(3)2}]"), "3:74: sub-axis \"x\":(3)2 does not divide axis 'x' of size 4; \"x\":(2)2 does");
  EXPECT_EQ(refused("@mesh, [{}, {}]"), "3:17: sharding of 2 dimensions on f32[8]; write [{}]");
}

}  // namespace
}  // namespace tpu::frontend
