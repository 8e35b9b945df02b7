// The rewritten module gives the same values bit for bit - sums are not reordered - and stands in the order asked for.
#include "fold_transposes.h"

#include <gtest/gtest.h>

#include "tpu/eval/evaluate.h"
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/verify.h"

namespace tpu::lower {
namespace {

using hlo::Opcode;
using Ints = std::vector<int64_t>;

struct IgnoringSink : DiagnosticSink {
  void report(const Diagnostic&) override {}
};

HostTensor drawn(const hlo::Type& type, uint32_t seed) {
  HostTensor x(type.element, type.dims);
  uint32_t state = seed;
  for (int64_t i = 0; i < x.numElements(); ++i) {
    state = state * 1664525u + 1013904223u;
    x.data<float>()[i] = static_cast<float>(static_cast<int32_t>(state) >> 16) / 4096.0f;
  }
  return x;
}

int count(const hlo::Module& m, Opcode opcode) {
  int n = 0;
  hlo::walk(m, [&](hlo::OpId id) { n += m.op(id).opcode == opcode; });
  return n;
}

// Folds, compares values, and gives the module.
hlo::Module folded(const std::string& dot, const std::string& a, const std::string& b, const std::string& product,
                   const std::string& perm, const std::string& result) {
  const std::string text = "func.func @main(%a: tensor<" + a + "xf32>, %b: tensor<" + b + "xf32>) -> tensor<" + result +
                           "xf32> {\n  %0 = stablehlo.dot_general %a, %b, " + dot + " : (tensor<" + a + "xf32>, tensor<" + b +
                           "xf32>) -> tensor<" + product + "xf32>\n  %1 = stablehlo.transpose %0, dims = " + perm + " : (tensor<" +
                           product + "xf32>) -> tensor<" + result + "xf32>\n  return %1 : tensor<" + result + "xf32>\n}\n";
  IgnoringSink sink;
  hlo::Module m = llvm::cantFail(frontend::readProgram(text, "test.mlir", sink));
  std::vector<HostTensor> args;
  for (hlo::ValueId v : m.region(m.func(m.entry).body).args) args.push_back(drawn(m.typeOf(v), v.v + 1));
  const std::vector<HostTensor> want = llvm::cantFail(eval::evaluate(m, args));
  foldTransposes(m);
  llvm::cantFail(hlo::verify(m));
  const std::vector<HostTensor> got = llvm::cantFail(eval::evaluate(m, args));
  EXPECT_EQ(got[0].bytes, want[0].bytes);
  return m;
}

TEST(FoldTransposes, AMatrixProductTurnedRoundSwapsItsOperands) {
  hlo::Module m = folded("contracting_dims = [1] x [0]", "40x24", "24x72", "40x72", "[1, 0]", "72x40");
  EXPECT_EQ(count(m, Opcode::transpose), 0);
  hlo::walk(m, [&](hlo::OpId id) {
    if (m.op(id).opcode != Opcode::dot_general) return;
    EXPECT_EQ(Ints(m.getInts(id, hlo::AttrKey::lhs_contracting_dimensions)), Ints{0});
    EXPECT_EQ(Ints(m.getInts(id, hlo::AttrKey::rhs_contracting_dimensions)), Ints{1});
  });
}

TEST(FoldTransposes, GroupsLeaveTheLanes) {
  // Scores of grouped-query attention: batch, key head, query, key, group -> groups before positions.
  hlo::Module m = folded("batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4]", "2x32x1x16", "2x32x1x2x16",
                         "2x1x32x32x2", "[0, 1, 4, 3, 2]", "2x1x2x32x32");
  hlo::walk(m, [&](hlo::OpId id) {
    if (m.op(id).opcode != Opcode::dot_general) return;
    EXPECT_EQ(m.typeOf(m.op(id).results[0]).dims.back(), 32);
  });
}

TEST(FoldTransposes, AProductThatStandsWellIsLeftAlone) {
  // Heads come out of the way of a transpose that moves no lanes: nothing to gain.
  hlo::Module m = folded("batching_dims = [0] x [0], contracting_dims = [2] x [1]", "4x16x24", "4x24x128", "4x16x128",
                         "[1, 0, 2]", "16x4x128");
  EXPECT_EQ(count(m, Opcode::transpose), 1);
  EXPECT_EQ(count(m, Opcode::dot_general), 1);
}

TEST(FoldTransposes, AProductUsedTwiceIsLeftAlone) {
  IgnoringSink sink;
  const char* text =
      "func.func @main(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {\n"
      "  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n"
      "  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>\n"
      "  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>\n}\n";
  hlo::Module m = llvm::cantFail(frontend::readProgram(text, "test.mlir", sink));
  foldTransposes(m);
  EXPECT_EQ(count(m, Opcode::transpose), 1);
}

}  // namespace
}  // namespace tpu::lower
