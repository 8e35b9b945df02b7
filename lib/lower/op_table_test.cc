// man/tpu-ops.7 is what tpu-lower --list-ops prints; after a change of the tables write it anew with
// build/bin/tpu-lower --list-ops -o man/tpu-ops.7
#include "tpu/lower/op_table.h"

#include <gtest/gtest.h>

#include "llvm/Support/MemoryBuffer.h"
#include "tpu/frontend/frontend.h"
#include "tpu/lower/lower.h"

namespace tpu::lower {
namespace {

TEST(OpTable, ManPageIsFresh) {
  auto file = llvm::MemoryBuffer::getFile(TPU_SOURCE_DIR "/man/tpu-ops.7");
  ASSERT_TRUE(static_cast<bool>(file));
  EXPECT_TRUE((*file)->getBuffer() == describeOps(OpTableForm::kMan)) << "man/tpu-ops.7 is stale";
}

struct Ignored : DiagnosticSink {
  void report(const Diagnostic&) override {}
};

// "" where the one-device program lowers, else why not.
std::string refusal(const std::string& text) {
  Ignored sink;
  auto module = frontend::readProgram(text, "p.mlir", sink);
  if (!module) {
    llvm::consumeError(module.takeError());
    return "not a program";
  }
  auto target = target::parseTarget("v5e:1x1");
  EXPECT_TRUE(static_cast<bool>(target));
  auto out = lower(std::move(*module), *target, {}, sink);
  std::string why;
  if (!out)
    for (const Diagnostic& d : takeDiagnostics(out.takeError())) why += d.text;
  return why;
}

// The types that the table gives for unary and binary elementwise ops are those that lower.
TEST(OpTable, ElementTypesAreThoseThatLower) {
  const std::string table = describeOps(OpTableForm::kMan);
  int tried = 0;
  for (const char* op : {"add", "abs", "and", "divide", "exponential", "maximum", "negate", "not", "popcnt", "power", "sign",
                         "shift_left", "sine", "subtract", "tanh", "logistic", "remainder", "cbrt"}) {
    const size_t at = table.find(std::string(".B stablehlo.") + op + "\n");
    ASSERT_NE(at, std::string::npos) << op;
    const size_t types = table.find("lower: ", at);
    const std::string line = " " + table.substr(types + 7, table.find('\n', types) - types - 7) + " ";
    const bool binary = hlo::opInfo(*hlo::findOpcode(std::string("stablehlo.") + op)).min_operands == 2;
    for (auto [name, mlir] : {std::pair("f32", "f32"), std::pair("bf16", "bf16"), std::pair("s32", "i32"),
                              std::pair("u32", "ui32"), std::pair("s8", "i8"), std::pair("u8", "ui8")}) {
      const std::string t = std::string("tensor<8x128x") + mlir + ">";
      const std::string text = "func.func @main(%a: " + t + ") -> " + t + " {\n  %0 = stablehlo." + op +
                               (binary ? " %a, %a : " : " %a : ") + t + "\n  return %0 : " + t + "\n}\n";
      const std::string why = refusal(text);
      if (why == "not a program") continue;  // there is no such op
      const bool listed = line.find(std::string(" ") + name + " ") != std::string::npos;
      EXPECT_EQ(why.empty(), listed) << op << " " << name << ": " << why;
      ++tried;
    }
  }
  EXPECT_GT(tried, 60);
}

}  // namespace
}  // namespace tpu::lower
