// Reductions by value: every set of dimensions, general combiners, several values, blocks along reduced dimensions.
#include "emit_test_util.h"

namespace tpu::lower {
namespace {

using hlo::Opcode;

struct Fold {
  const char* name;
  Opcode op;
  double init;
};
double apply(Opcode op, double a, double b) {
  switch (op) {
    case Opcode::add: return a + b;
    case Opcode::maximum: return std::max(a, b);
    case Opcode::minimum: return std::min(a, b);
    case Opcode::multiply: return a * b;
    case Opcode::or_: return a != 0 || b != 0;
    default: return a != 0 && b != 0;
  }
}
uint64_t hostBits(ElementType type, double x) {
  HostTensor t(type, {});
  setElement(t, 0, x);
  uint64_t bits = 0;
  std::memcpy(&bits, t.bytes.data(), t.bytes.size());
  return bits;
}

// Index of an element's result, and the result's dims.
std::vector<int64_t> keptDims(llvm::ArrayRef<int64_t> shape, unsigned mask) {
  std::vector<int64_t> out(shape.begin(), shape.end());
  for (size_t d = 0; d < out.size(); ++d)
    if (mask >> d & 1) out[d] = 1;
  return out;
}
int64_t resultIndex(llvm::ArrayRef<int64_t> shape, unsigned mask, int64_t i) {
  int64_t r = 0, stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const int64_t at = i % shape[d];
    i /= shape[d];
    if (!(mask >> d & 1)) {
      r += at * stride;
      stride *= shape[d];
    }
  }
  return r;
}

void check(const std::vector<int64_t>& shape, unsigned mask, ElementType type, Opcode op, double init, const target::Chip& chip) {
  ReduceSpec spec;
  spec.producer.shape.assign(shape.begin(), shape.end());
  spec.producer.inputs = {{type, spec.producer.shape, false}};
  spec.producer.nodes = {inputNode(0, type)};
  spec.producer.outputs = {0};
  for (size_t d = 0; d < shape.size(); ++d) spec.reduced.push_back(mask >> d & 1);
  spec.combiner = {inputNode(0, type), inputNode(1, type), opNode(op, type, {0, 1})};
  spec.combined = {2};
  spec.init_bits = {hostBits(type, init)};
  const HostTensor in = op == Opcode::multiply ? randomTensor(type, shape, 5, 1, 1) : randomTensor(type, shape, 5, -9, 9);
  const std::vector<int64_t> dims = keptDims(shape, mask);
  auto out = runKernel(emitReduce(spec, chip, "r"), chip, {in}, {{type, dims}});
  ASSERT_EQ(out.size(), 1u) << specKey(spec);
  std::vector<double> want(out[0].numElements(), init);
  for (int64_t i = 0; i < in.numElements(); ++i) {
    double& w = want[resultIndex(shape, mask, i)];
    w = apply(op, w, elementAt(in, i));
  }
  int bad = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    double w = want[i];
    if (type == ElementType::kBF16) w = roundToBf16(static_cast<float>(w));
    if (type == ElementType::kS8) w = static_cast<int8_t>(static_cast<int64_t>(w));
    if (type == ElementType::kU8) w = static_cast<uint8_t>(static_cast<int64_t>(w));
    if (elementAt(out[0], i) != w && bad++ < 3) ADD_FAILURE() << "element " << i << " is " << elementAt(out[0], i) << ", wanted " << w;
  }
  ASSERT_EQ(bad, 0) << specKey(spec) << " on " << chip.name;
}

const std::vector<std::vector<int64_t>> kShapes = {{1}, {5}, {128}, {1000}, {1, 300}, {2, 300}, {3, 5}, {4, 129}, {5, 7}, {8, 128}, {9, 200},
                                                   {16, 256}, {17, 1}, {40, 300}, {100, 130}, {3, 1, 5}, {2, 3, 4, 5}, {5, 17, 33}, {13, 40, 129},
                                                   {6, 1, 1}, {11, 3, 200}};

TEST(EmitReduce, EverySetOfDimensions) {
  const target::Chip v5e = chipNamed("v5e"), tiny = tinyChip();
  const ElementType types[] = {ElementType::kF32, ElementType::kBF16, ElementType::kS32, ElementType::kS8, ElementType::kU8};
  for (const auto& shape : kShapes)
    for (unsigned mask = 1; mask < (1u << shape.size()); ++mask)
      for (ElementType t : types) {
        check(shape, mask, t, Opcode::add, 0, v5e);
        check(shape, mask, t, Opcode::add, isUnsigned(t) ? 3 : -3, tiny);
        check(shape, mask, t, mask % 2 ? Opcode::maximum : Opcode::minimum, isUnsigned(t) ? 5 : 2, mask % 3 ? v5e : tiny);
      }
}

TEST(EmitReduce, Predicates) {
  for (const auto& shape : kShapes)
    for (unsigned mask = 1; mask < (1u << shape.size()); ++mask) {
      check(shape, mask, ElementType::kPred, Opcode::or_, 0, chipNamed("v5e"));
      check(shape, mask, ElementType::kPred, Opcode::and_, 1, chipNamed("v5e"));
    }
}

TEST(EmitReduce, SeveralBlocks) {
  for (unsigned mask = 1; mask < 8; ++mask)
    for (const target::Chip& chip : {tinyChip(), chipNamed("v5e")})
      for (const std::vector<int64_t>& shape : {std::vector<int64_t>{7, 150, 900}, {67, 9, 1100}, {3, 2, 40000}}) {
        check(shape, mask, ElementType::kF32, Opcode::add, 0, chip);
        check(shape, mask, ElementType::kBF16, Opcode::maximum, -1000, chip);
      }
}

// argmax: two values, compared and selected together.
TEST(EmitReduce, ArgMax) {
  for (const target::Chip& chip : {chipNamed("v5e"), tinyChip()})
    for (const auto& shape : kShapes)
      for (unsigned mask = 1; mask < (1u << shape.size()); ++mask) {
        if (mask & (mask - 1)) continue;  // one dimension
        const int dim = __builtin_ctz(mask);
        ReduceSpec spec;
        spec.producer.shape.assign(shape.begin(), shape.end());
        spec.producer.inputs = {{ElementType::kF32, spec.producer.shape, false}};
        spec.producer.nodes = {inputNode(0, ElementType::kF32), iotaNode(dim, ElementType::kS32)};
        spec.producer.outputs = {0, 1};
        for (size_t d = 0; d < shape.size(); ++d) spec.reduced.push_back(mask >> d & 1);
        spec.combiner = {inputNode(0, ElementType::kF32), inputNode(1, ElementType::kS32), inputNode(2, ElementType::kF32), inputNode(3, ElementType::kS32),
                         opNode(Opcode::compare, ElementType::kPred, {0, 2}, "GT"), opNode(Opcode::compare, ElementType::kPred, {0, 2}, "EQ"),
                         opNode(Opcode::compare, ElementType::kPred, {1, 3}, "LT"), opNode(Opcode::and_, ElementType::kPred, {5, 6}),
                         opNode(Opcode::or_, ElementType::kPred, {4, 7}), opNode(Opcode::select, ElementType::kF32, {8, 0, 2}),
                         opNode(Opcode::select, ElementType::kS32, {8, 1, 3})};
        spec.combined = {9, 10};
        spec.init_bits = {0xff800000u, 0x7fffffffu};
        const HostTensor in = randomTensor(ElementType::kF32, shape, 5, -9, 9);
        const std::vector<int64_t> dims = keptDims(shape, mask);
        auto out = runKernel(emitReduce(spec, chip, "argmax"), chip, {in}, {{ElementType::kF32, dims}, {ElementType::kS32, dims}});
        ASSERT_EQ(out.size(), 2u);
        std::vector<std::pair<double, int64_t>> want(out[0].numElements(), {-1e30, -1});
        int64_t inner = 1;
        for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
        for (int64_t i = 0; i < in.numElements(); ++i) {
          auto& w = want[resultIndex(shape, mask, i)];
          if (elementAt(in, i) > w.first) w = {elementAt(in, i), i / inner % shape[dim]};
        }
        int bad = 0;
        for (size_t i = 0; i < want.size(); ++i) bad += elementAt(out[0], i) != want[i].first || elementAt(out[1], i) != want[i].second;
        ASSERT_EQ(bad, 0) << specKey(spec) << " on " << chip.name;
      }
}

// A fused producer: the sum of squares of differences from a row.
TEST(EmitReduce, Producer) {
  const target::Chip chip = chipNamed("v5e");
  ReduceSpec spec;
  spec.producer.shape = {30, 200};
  spec.producer.inputs = {{ElementType::kF32, {30, 200}, false}, {ElementType::kF32, {30, 1}, false}, {ElementType::kF32, {}, true}};
  spec.producer.nodes = {inputNode(0, ElementType::kF32), inputNode(1, ElementType::kF32), opNode(Opcode::subtract, ElementType::kF32, {0, 1}),
                         opNode(Opcode::multiply, ElementType::kF32, {2, 2}), inputNode(2, ElementType::kF32),
                         opNode(Opcode::multiply, ElementType::kF32, {3, 4})};
  spec.producer.outputs = {5};
  spec.reduced = {false, true};
  spec.combiner = {inputNode(0, ElementType::kF32), inputNode(1, ElementType::kF32), opNode(Opcode::add, ElementType::kF32, {0, 1})};
  spec.combined = {2};
  spec.init_bits = {0};
  const HostTensor a = randomTensor(ElementType::kF32, {30, 200}, 1), b = randomTensor(ElementType::kF32, {30, 1}, 2), c = randomTensor(ElementType::kF32, {}, 3);
  auto out = runKernel(emitReduce(spec, chip, "r"), chip, {a, b, c}, {{ElementType::kF32, {30, 1}}});
  ASSERT_EQ(out.size(), 1u);
  for (int64_t r = 0; r < 30; ++r) {
    double want = 0;
    for (int64_t i = 0; i < 200; ++i) {
      const double d = elementAt(a, r * 200 + i) - elementAt(b, r);
      want += d * d * elementAt(c, 0);
    }
    EXPECT_EQ(elementAt(out[0], r), want);
  }
}

}  // namespace
}  // namespace tpu::lower
