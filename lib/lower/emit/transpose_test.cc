// Transpositions by value.
#include "emit_test_util.h"

namespace tpu::lower {
namespace {

TEST(EmitTranspose, AllTypesAndShapes) {
  for (const target::Chip& chip : {chipNamed("v5e"), tinyChip()})
    for (ElementType type : {ElementType::kF32, ElementType::kBF16, ElementType::kS32, ElementType::kS8, ElementType::kPred})
      for (auto [batch, rows, cols] : {std::array<int64_t, 3>{1, 1, 1}, {1, 1, 300}, {1, 300, 1}, {2, 3, 5}, {1, 8, 128}, {3, 2, 130},
                                       {1, 128, 128}, {1, 100, 257}, {2, 130, 40}, {1, 9, 17}, {1, 400, 600}, {7, 4, 4}, {1, 33, 1000}}) {
        const TransposeSpec spec{batch, rows, cols, type};
        const HostTensor in = randomTensor(type, {batch, rows, cols}, 9);
        auto out = runKernel(emitTranspose(spec, chip, "t"), chip, {in}, {{type, {batch, cols, rows}}});
        ASSERT_EQ(out.size(), 1u) << specKey(spec);
        int bad = 0;
        for (int64_t b = 0; b < batch; ++b)
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < cols; ++c)
              bad += elementAt(in, (b * rows + r) * cols + c) != elementAt(out[0], (b * cols + c) * rows + r);
        ASSERT_EQ(bad, 0) << specKey(spec) << " on " << chip.name;
      }
}

}  // namespace
}  // namespace tpu::lower
