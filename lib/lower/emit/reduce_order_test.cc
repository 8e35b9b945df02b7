// Combiners that do not commute see their elements in ascending order.
#include "emit_test_util.h"

#include <limits>

namespace tpu::lower {
namespace {

using hlo::Opcode;

constexpr ElementType kPred = ElementType::kPred, kF32 = ElementType::kF32, kS32 = ElementType::kS32;

const std::vector<std::vector<int64_t>> kShapes = {{5}, {1000}, {1, 300}, {2, 300}, {4, 129}, {5, 7}, {9, 200}, {40, 300}, {100, 130},
                                                   {2, 3, 4, 5}, {5, 17, 33}, {13, 40, 129}, {67, 9, 1100}, {3, 2, 40000}};

ReduceSpec over(const std::vector<int64_t>& shape, size_t dim) {
  ReduceSpec spec;
  spec.producer.shape.assign(shape.begin(), shape.end());
  spec.reduced.assign(shape.size(), false);
  spec.reduced[dim] = true;
  return spec;
}
std::vector<int64_t> without(std::vector<int64_t> shape, size_t dim) {
  shape[dim] = 1;
  return shape;
}

// The last element that is not zero: select(b != 0, b, a).
void checkLast(const std::vector<int64_t>& shape, size_t dim, ElementType type, const target::Chip& chip) {
  ReduceSpec spec = over(shape, dim);
  spec.producer.inputs = {{type, spec.producer.shape, false}};
  spec.producer.nodes = {inputNode(0, type)};
  spec.producer.outputs = {0};
  ExprNode zero;
  zero.kind = ExprNode::kConstant;
  zero.type = type;
  spec.combiner = {inputNode(0, type), inputNode(1, type), zero, opNode(Opcode::compare, kPred, {1, 2}, "NE"),
                   opNode(Opcode::select, type, {3, 1, 0})};
  spec.combined = {4};
  spec.init_bits = {0};
  EXPECT_FALSE(commutes(spec));
  HostTensor in = randomTensor(type, shape, 3, 1, 9);
  for (int64_t i = 0; i < in.numElements(); ++i)
    if (i * 7 % 11 > 1) setElement(in, i, 0);
  auto out = runKernel(emitReduce(spec, chip, "last"), chip, {in}, {{type, without(shape, dim)}});
  ASSERT_EQ(out.size(), 1u);
  int64_t inner = 1;
  for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
  int bad = 0;
  for (int64_t r = 0; r < out[0].numElements(); ++r) {
    double want = 0;
    for (int64_t k = 0; k < shape[dim]; ++k) {
      const double x = elementAt(in, (r / inner * shape[dim] + k) * inner + r % inner);
      if (x != 0) want = x;
    }
    bad += elementAt(out[0], r) != want;
  }
  ASSERT_EQ(bad, 0) << specKey(spec) << " on " << chip.name;
}

TEST(ReduceOrder, TheLastElementThatIsNotZero) {
  for (const target::Chip& chip : {chipNamed("v5e"), tinyChip()})
    for (const auto& shape : kShapes)
      for (size_t dim = 0; dim < shape.size(); ++dim)
        for (ElementType t : {kF32, ElementType::kBF16, kS32, ElementType::kU8}) checkLast(shape, dim, t, chip);
}

// As jnp.argmax is written: of several NaNs it takes the first, because that is its left operand.
ReduceSpec argmax(const std::vector<int64_t>& shape, size_t dim) {
  ReduceSpec spec = over(shape, dim);
  spec.producer.inputs = {{kF32, spec.producer.shape, false}};
  spec.producer.nodes = {inputNode(0, kF32), iotaNode(static_cast<int>(dim), kS32)};
  spec.producer.outputs = {0, 1};
  spec.combiner = {inputNode(0, kF32), inputNode(1, kS32), inputNode(2, kF32), inputNode(3, kS32),
                   opNode(Opcode::compare, kPred, {0, 2}, "GT"), opNode(Opcode::compare, kPred, {0, 0}, "NE"),
                   opNode(Opcode::or_, kPred, {4, 5}),
                   opNode(Opcode::compare, kPred, {0, 2}, "EQ"), opNode(Opcode::compare, kPred, {1, 3}, "LT"),
                   opNode(Opcode::and_, kPred, {7, 8}), opNode(Opcode::or_, kPred, {6, 9}),
                   opNode(Opcode::select, kF32, {6, 0, 2}), opNode(Opcode::select, kS32, {10, 1, 3})};
  spec.combined = {11, 12};
  spec.init_bits = {0xff800000u, 0};
  return spec;
}

TEST(ReduceOrder, ArgMaxTakesTheFirstNan) {
  for (const target::Chip& chip : {chipNamed("v5e"), tinyChip()})
    for (const auto& shape : kShapes)
      for (size_t dim = 0; dim < shape.size(); ++dim) {
        const ReduceSpec spec = argmax(shape, dim);
        HostTensor in = randomTensor(kF32, shape, 5, -9, 9);
        for (int64_t i = 0; i < in.numElements(); ++i)
          if (i * 5 % 37 < 2) setElement(in, i, std::numeric_limits<double>::quiet_NaN());
        const std::vector<int64_t> dims = without(shape, dim);
        auto out = runKernel(emitReduce(spec, chip, "argmax"), chip, {in}, {{kF32, dims}, {kS32, dims}});
        ASSERT_EQ(out.size(), 2u);
        int64_t inner = 1;
        for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
        int bad = 0;
        for (int64_t r = 0; r < out[0].numElements(); ++r) {
          int64_t best = 0;
          double most = -std::numeric_limits<double>::infinity();
          for (int64_t k = 0; k < shape[dim] && !std::isnan(most); ++k) {
            const double x = elementAt(in, (r / inner * shape[dim] + k) * inner + r % inner);
            if (x > most || std::isnan(x)) most = x, best = k;
          }
          bad += elementAt(out[1], r) != best;
        }
        ASSERT_EQ(bad, 0) << specKey(spec) << " on " << chip.name;
      }
}

TEST(ReduceOrder, WhatIsSeenOfACombiner) {
  ReduceSpec spec = argmax({4, 8}, 1);
  EXPECT_FALSE(commutes(spec));
  EXPECT_EQ(positionValue(spec), 1);
  spec.producer.nodes[1].index = 0;  // numbers along the other dimension
  EXPECT_EQ(positionValue(spec), -1);
  spec = argmax({4, 8}, 1);
  spec.reduced = {true, true};
  EXPECT_EQ(positionValue(spec), -1);
  spec = argmax({4, 8}, 1);
  spec.combiner[12].args = {8, 1, 3};  // the smallest number, of whichever value
  EXPECT_EQ(positionValue(spec), -1);

  // |a| + |b| commutes, a - b does not; (b > a) and (a < b) are the same condition.
  spec = over({8}, 0);
  spec.producer.nodes = {inputNode(0, kF32)};
  spec.producer.outputs = {0};
  spec.combiner = {inputNode(0, kF32), inputNode(1, kF32), opNode(Opcode::abs, kF32, {0}), opNode(Opcode::abs, kF32, {1}),
                   opNode(Opcode::add, kF32, {2, 3}), opNode(Opcode::subtract, kF32, {0, 1}),
                   opNode(Opcode::compare, kPred, {0, 1}, "LT"), opNode(Opcode::compare, kPred, {1, 0}, "LT"),
                   opNode(Opcode::or_, kPred, {6, 7}), opNode(Opcode::compare, kPred, {1, 0}, "GT")};
  for (const auto& [node, wanted] : std::vector<std::pair<int, bool>>{{4, true}, {5, false}, {6, false}, {8, true}, {9, false}}) {
    spec.combined = {node};
    EXPECT_EQ(commutes(spec), wanted) << node;
  }
}

}  // namespace
}  // namespace tpu::lower
