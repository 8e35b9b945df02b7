// Elementwise kernels by value: shapes with remainders, mixed types, broadcasts, iota, scalars.
#include "emit_test_util.h"

namespace tpu::lower {
namespace {

using hlo::Opcode;

// The element of an operand that index `at` of the shape reads.
double readBroadcast(const HostTensor& t, llvm::ArrayRef<int64_t> at) {
  int64_t i = 0;
  for (size_t d = 0; d < t.dims.size(); ++d) i = i * t.dims[d] + (t.dims[d] == 1 ? 0 : at[d]);
  return elementAt(t, i);
}
template <class F>
void forEachIndex(llvm::ArrayRef<int64_t> dims, F f) {
  llvm::SmallVector<int64_t, 6> at(dims.size(), 0);
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i;
    for (size_t d = dims.size(); d-- > 0;) {
      at[d] = rest % dims[d];
      rest /= dims[d];
    }
    f(i, at);
  }
}

struct Case {
  std::vector<int64_t> shape;
  std::vector<std::pair<ElementType, std::vector<int64_t>>> inputs;
  ElementType out;
};

// out = convert(sum of the inputs as f32)
void checkSum(const Case& c, const target::Chip& chip) {
  LoopSpec spec;
  spec.shape.assign(c.shape.begin(), c.shape.end());
  std::vector<HostTensor> inputs;
  int sum = -1;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const auto& [type, dims] = c.inputs[i];
    const bool scalar = dims.empty() && !c.shape.empty();
    spec.inputs.push_back({type, Dims(dims.begin(), dims.end()), scalar || dims.empty()});
    inputs.push_back(randomTensor(type, dims, static_cast<uint32_t>(i + 1)));
    spec.nodes.push_back(inputNode(static_cast<int>(i), type));
    spec.nodes.push_back(opNode(Opcode::convert, ElementType::kF32, {static_cast<int>(spec.nodes.size()) - 1}));
    const int x = static_cast<int>(spec.nodes.size()) - 1;
    if (sum < 0) {
      sum = x;
    } else {
      spec.nodes.push_back(opNode(Opcode::add, ElementType::kF32, {sum, x}));
      sum = static_cast<int>(spec.nodes.size()) - 1;
    }
  }
  if (c.out != ElementType::kF32) {
    spec.nodes.push_back(opNode(Opcode::convert, c.out, {sum}));
    sum = static_cast<int>(spec.nodes.size()) - 1;
  }
  spec.outputs.push_back(sum);
  auto out = runKernel(emitLoop(spec, chip, "k"), chip, inputs, {{c.out, c.shape}});
  ASSERT_EQ(out.size(), 1u);
  int bad = 0;
  forEachIndex(c.shape, [&](int64_t i, llvm::ArrayRef<int64_t> at) {
    double want = 0;
    for (const HostTensor& t : inputs) want += t.dims.empty() ? elementAt(t, 0) : readBroadcast(t, at);
    if (c.out == ElementType::kS8 || c.out == ElementType::kS32) want = std::trunc(want);
    if (c.out == ElementType::kU8 || c.out == ElementType::kU32) want = std::max(0.0, std::trunc(want));
    if (c.out == ElementType::kPred) want = want != 0;
    if (elementAt(out[0], i) != want && bad++ < 3)
      ADD_FAILURE() << "element " << i << " is " << elementAt(out[0], i) << ", wanted " << want;
  });
  ASSERT_EQ(bad, 0) << specKey(spec);
}

const std::vector<std::vector<int64_t>> kShapes = {
    {1}, {7}, {128}, {129}, {1000}, {3000}, {1, 1}, {1, 300}, {2, 5}, {2, 300}, {3, 129}, {4, 513}, {5, 7}, {7, 300}, {8, 128},
    {9, 200}, {12, 257}, {16, 128}, {17, 1}, {33, 40}, {40, 300}, {100, 130}, {3, 1, 5}, {2, 3, 4, 5}, {5, 17, 33}, {2, 2, 40, 129},
    {3, 2, 2, 10}, {6, 1, 1}, {2, 3, 1, 200}, {1, 9, 1, 7}};
const std::vector<ElementType> kTypes = {ElementType::kF32, ElementType::kBF16, ElementType::kS32, ElementType::kU32,
                                         ElementType::kS8, ElementType::kU8, ElementType::kPred};

TEST(EmitLoop, SameType) {
  const target::Chip v5e = chipNamed("v5e"), tiny = tinyChip();
  for (const auto& shape : kShapes)
    for (ElementType t : kTypes) checkSum({shape, {{t, shape}, {t, shape}}, t == ElementType::kS32 ? t : ElementType::kF32}, shape.size() % 2 ? v5e : tiny);
}

TEST(EmitLoop, MixedTypes) {
  const target::Chip v5e = chipNamed("v5e"), tiny = tinyChip();
  for (const auto& shape : kShapes)
    for (size_t t = 0; t < kTypes.size(); ++t) {
      checkSum({shape, {{kTypes[t], shape}, {kTypes[(t + 1) % kTypes.size()], shape}}, kTypes[(t + 4) % kTypes.size()]}, v5e);
      if (t < 2) checkSum({shape, {{kTypes[t], shape}, {ElementType::kS8, shape}, {ElementType::kBF16, shape}}, ElementType::kBF16}, tiny);
    }
}

TEST(EmitLoop, BroadcastsAlongEveryDimension) {
  const target::Chip v5e = chipNamed("v5e"), tiny = tinyChip();
  for (const auto& shape : kShapes) {
    const size_t rank = shape.size();
    for (unsigned mask = 1; mask < (1u << rank); ++mask) {
      std::vector<int64_t> dims = shape;
      for (size_t d = 0; d < rank; ++d)
        if (mask >> d & 1) dims[d] = 1;
      const ElementType t = kTypes[mask % kTypes.size()];
      checkSum({shape, {{t, dims}, {ElementType::kF32, shape}}, ElementType::kF32}, v5e);
      checkSum({shape, {{t, dims}, {ElementType::kBF16, shape}, {ElementType::kS32, {}}}, ElementType::kBF16}, tiny);
      checkSum({shape, {{t, dims}, {ElementType::kS8, {}}}, ElementType::kS8}, mask % 2 ? v5e : tiny);
    }
  }
}

TEST(EmitLoop, Scalars) {
  const target::Chip v5e = chipNamed("v5e");
  for (ElementType t : kTypes)
    for (ElementType u : kTypes) checkSum({{}, {{t, {}}, {u, {}}}, u}, v5e);
}

TEST(EmitLoop, Iota) {
  const target::Chip v5e = chipNamed("v5e"), tiny = tinyChip();
  for (const auto& shape : kShapes)
    for (size_t d = 0; d < shape.size(); ++d)
      for (ElementType t : {ElementType::kS32, ElementType::kF32, ElementType::kU8}) {
        LoopSpec spec;
        spec.shape.assign(shape.begin(), shape.end());
        spec.nodes = {iotaNode(static_cast<int>(d), t)};
        spec.outputs = {0};
        const target::Chip& chip = d % 2 ? tiny : v5e;
        auto out = runKernel(emitLoop(spec, chip, "iota"), chip, {}, {{t, shape}});
        ASSERT_EQ(out.size(), 1u);
        int bad = 0;
        forEachIndex(shape, [&](int64_t i, llvm::ArrayRef<int64_t> at) {
          const double want = t == ElementType::kU8 ? at[d] & 255 : at[d];
          if (elementAt(out[0], i) != want && bad++ < 3) ADD_FAILURE() << i << ": " << elementAt(out[0], i) << " wanted " << want;
        });
        ASSERT_EQ(bad, 0) << specKey(spec);
      }
}

TEST(EmitLoop, ManyOutputsAndLargeArrays) {
  for (const target::Chip& chip : {chipNamed("v5e"), tinyChip()})
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 130, 700}, {1001, 257}, {70000}}) {
      LoopSpec spec;
      spec.shape.assign(shape.begin(), shape.end());
      std::vector<int64_t> row(shape.size(), 1);
      row.back() = shape.back();
      spec.inputs = {{ElementType::kF32, spec.shape, false}, {ElementType::kF32, Dims(row.begin(), row.end()), false}};
      spec.nodes = {inputNode(0, ElementType::kF32), inputNode(1, ElementType::kF32), opNode(Opcode::add, ElementType::kF32, {0, 1}),
                    opNode(Opcode::multiply, ElementType::kF32, {2, 1}), opNode(Opcode::compare, ElementType::kPred, {0, 1}, "LT")};
      spec.outputs = {2, 3, 4};
      const HostTensor a = randomTensor(ElementType::kF32, shape, 1), b = randomTensor(ElementType::kF32, row, 2);
      auto out = runKernel(emitLoop(spec, chip, "k"), chip, {a, b},
                           {{ElementType::kF32, shape}, {ElementType::kF32, shape}, {ElementType::kPred, shape}});
      ASSERT_EQ(out.size(), 3u);
      int bad = 0;
      forEachIndex(shape, [&](int64_t i, llvm::ArrayRef<int64_t> at) {
        const double x = elementAt(a, i), y = readBroadcast(b, at);
        bad += elementAt(out[0], i) != x + y || elementAt(out[1], i) != (x + y) * y || elementAt(out[2], i) != (x < y);
      });
      ASSERT_EQ(bad, 0);
    }
}

}  // namespace
}  // namespace tpu::lower
