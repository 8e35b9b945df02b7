// The generic form of modules, functions and meshes: the same program as the pretty form.
#include "testing.h"

namespace tpu::frontend {
namespace {

const char kGeneric[] = R"("builtin.module"() <{sym_name = "jit_f"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, {}], function_type = (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>, res_attrs = [{jax.result_info = "y"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4xf32> loc("a"), %arg1: tensor<f32>):
    %0 = "func.call"(%arg0) <{callee = @g}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> () loc("f.py":3:4)
  "func.func"() ({
  ^bb0(%arg0: tensor<4xf32>):
    %0 = "stablehlo.abs"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) {function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "g", sym_visibility = "private"} : () -> ()
}) {mhlo.num_partitions = 2 : i32} : () -> ()
)";

TEST(Generic, IsTheSameProgram) {
  const hlo::Module m = accept(kGeneric);
  EXPECT_EQ(m.name, "jit_f");
  EXPECT_EQ(m.num_partitions, 2);
  EXPECT_EQ(opsText(m), "%0 = call %a0 {callee=g} : f32[4]\nreturn %0\n%0 = abs %a0 : f32[4]\nreturn %0\n");
  const hlo::Func& main = m.func(m.entry);
  EXPECT_EQ(m.string(main.arg_ports[0].name), "a");
  EXPECT_TRUE(main.arg_ports[0].sharding);
  EXPECT_EQ(m.string(main.result_ports[0].name), "y");
  EXPECT_EQ(m.loc(main.loc), "f.py:3:4");
  EXPECT_TRUE(m.funcs[1].is_private);
}

TEST(Generic, MistakesAreRefusedAtTheirPlace) {
  const auto with = [](const char* from, const char* to) {
    std::string text = kGeneric;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return refusal(text.replace(at, std::strlen(from), to));
  };
  EXPECT_EQ(with("(tensor<4xf32>, tensor<f32>) ->", "(tensor<4xf32>, tensor<f16>) ->"),
            "3:3: the body of '@main' takes other arguments than its type says");
  EXPECT_EQ(with("}, {}], function", "}], function"),
            "3:3: attributes for another number of arguments or results than there are");
  EXPECT_EQ(with("sym_name = \"g\", ", ""), "8:3: function without a name");
  EXPECT_EQ(with("sym_name = \"g\"", "sym_name = \"main\""), "8:3: function '@main' is defined twice");
  EXPECT_EQ(with("\"func.func\"() (", "\"func.gunc\"() ("), "8:3: unknown operation 'func.gunc' in a module");
  EXPECT_EQ(with("  \"func.func\"() (", "  \"builtin.module\"() ("), "8:21: a program is one module, found ' ({'");
  EXPECT_EQ(with("(tensor<4xf32>) -> tensor<4xf32>, sym_name = \"g\"", "tensor<4xf32>, sym_name = \"g\""),
            "12:23: expected a function's type, found 'tensor<4xf32>, sym_n'");
  EXPECT_EQ(with("mesh = #sdy.mesh<", "mesh = <"), "2:25: expected '#sdy.mesh', found '<[\"x\"=2]>, sym_name'");
}

TEST(Generic, EveryPrefixIsRefusedAtItsPlace) {
  const llvm::StringRef text = llvm::StringRef(kGeneric).rtrim();
  Collect sink;
  for (size_t n = 0; n < text.rfind(')'); ++n) {
    auto module = readProgram(text.take_front(n), "t.mlir", sink);
    ASSERT_FALSE(bool(module)) << n;
    EXPECT_TRUE(llvm::StringRef(takeDiagnostics(module.takeError()).front().loc).starts_with("t.mlir")) << n;
  }
}

}  // namespace
}  // namespace tpu::frontend
