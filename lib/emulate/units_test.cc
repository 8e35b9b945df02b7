// Matrix units of every shape: sides of 64, 128 and 256, result FIFOs and addressed accumulators, all operand
// types, transposed pushes; against chains computed here.
#include <bit>
#include <cmath>

#include "testing.h"

namespace tpu::emulate {
namespace {

using namespace testing;
using isa::Space;

struct Case {
  const char* target;
  const char* type;
  int side;
  bool transposed = false;
};

uint32_t next(uint32_t& seed) { return seed = seed * 1664525 + 1013904223; }

// One element of an operand type as its bits, and the value the unit multiplies.
uint32_t drawBits(llvm::StringRef type, uint32_t& seed) {
  const uint32_t r = next(seed) >> 8;
  if (type == "f32")
    return std::bit_cast<uint32_t>(static_cast<float>(static_cast<int>(r % 4001) - 2000) * 0.01f);
  if (type == "bf16") return 0x3f00 | (r & 0x807f);
  if (type == "f8e5m2") return 0x38 | (r & 0x87);
  if (type == "f8e4m3fn") return 0x30 | (r & 0x8f);
  return r & 0xff;
}
float valueOf(llvm::StringRef type, uint32_t bits) {
  if (type == "f32") {
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    return std::bit_cast<float>(rounded);
  }
  if (type == "bf16") return std::bit_cast<float>(bits << 16);
  if (type == "s8") return static_cast<int8_t>(bits);
  if (type == "u8") return static_cast<float>(bits);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (type == "f8e5m2")
    return sign * std::ldexp(1.0f + static_cast<float>(bits & 3) / 4, static_cast<int>(bits >> 2 & 31) - 15);
  return sign * std::ldexp(1.0f + static_cast<float>(bits & 7) / 8, static_cast<int>(bits >> 3 & 15) - 7);
}

// Rows x 128 elements packed as registers hold them: 8, 16 or 32 rows to a register.
struct Matrix {
  int rows, cols, pack;
  std::string type;
  std::vector<uint32_t> bits;
  Matrix(int r, int c, llvm::StringRef t, uint32_t seed)
      : rows(r),
        cols(c),
        pack(t == "f32"    ? 1
             : t == "bf16" ? 2
                           : 4),
        type(t.str()) {
    for (int i = 0; i < r * c; ++i) bits.push_back(drawBits(t, seed));
  }
  float at(int r, int c) const { return valueOf(type, bits[static_cast<size_t>(r * cols + c)]); }
  // Register `group` of rows, lane panel `panel`; elements outside are zero.
  std::vector<uint32_t> words(int group, int panel) const {
    std::vector<uint32_t> w(1024, 0);
    for (int r = 0; r < 8 * pack; ++r)
      for (int l = 0; l < 128; ++l) {
        const int row = group * 8 * pack + r, col = panel * 128 + l;
        if (row >= rows || col >= cols) continue;
        w[static_cast<size_t>(r / pack * 128 + l)] |= bits[static_cast<size_t>(row * cols + col)]
                                                      << (r % pack * (32 / pack));
      }
    return w;
  }
};

void place(isa::Program& p, int64_t at, const std::vector<uint32_t>& words) {
  isa::Constant c;
  c.space = Space::kVmem;
  c.address = at;
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  c.bytes.assign(bytes, bytes + words.size() * 4);
  p.constants.push_back(std::move(c));
}

void check(const Case& c) {
  SCOPED_TRACE(std::string(c.target) + " " + c.type + (c.transposed ? " transposed" : ""));
  const llvm::StringRef type = c.type;
  const int rows = type == "f32" ? 8 : type == "bf16" ? 16 : 32, side = c.side, panels = side > 128 ? 2 : 1;
  const bool addressed = llvm::StringRef(c.target).starts_with("v7x"), integer = type == "s8" || type == "u8";
  const Matrix lhs(rows, side, type, 5);
  // Weights as pushed: rows are k, or columns where pushes are transposed.
  const Matrix w(side, side, type, 9);
  std::string text;
  std::vector<std::pair<int64_t, std::vector<uint32_t>>> data;
  int64_t at = 0;
  for (int group = 0; group < side / rows; ++group)
    for (int panel = 0; panel < panels; ++panel) {
      data.emplace_back(at, w.words(group, panel));
      text += "vld v1, [" + std::to_string(at) + "]\nvmatpush." + (c.transposed ? "t." : "") + c.type +
              " mxu1, v1, 1, " + std::to_string(group) + ", " + std::to_string(panel) + "\n";
      at += 4096;
    }
  text += "vlatch mxu1, 1\n";
  for (int panel = 0; panel < panels; ++panel) {
    data.emplace_back(at, lhs.words(0, panel));
    text += "vld v2, [" + std::to_string(at) + "]\nvmatmul." + (addressed ? "acc." : "") + c.type +
            " mxu1, v2, " + std::to_string(panel) + (addressed ? ", 10" : "") + "\n";
    at += 4096;
  }
  const int64_t out = at;
  const int entries = rows / 8 * panels;
  for (int e = 0; e < entries; ++e) {
    text += (addressed    ? "vpop.mrb v3, mxu1, " + std::to_string(10 + e)
             : side == 64 ? std::string("vpop.mrf.half v3, mxu1, 0")
                          : std::string("vpop.mrf v3, mxu1")) +
            "\nvst [" + std::to_string(at) + "], v3\n";
    at += 4096;
  }
  text += "dma.start 1024\nsem.wait 0, " + std::to_string(entries * 4096) + "\nhalt\n";
  isa::Program p = programOf(c.target, text);
  for (const auto& [where, words] : data) place(p, where, words);
  addDescriptor(p, 1024,
                {.from = Space::kVmem, .to = Space::kHbm, .source = out, .dest = 0, .run = entries * 4096});
  p.results = {port("y", integer ? ElementType::kS32 : ElementType::kF32, {entries * 8, 128}, 0)};
  const RunResult r = mustRun(p, {}, {});
  ASSERT_EQ(r.results.size(), 1u);
  for (int row = 0; row < rows; ++row)
    for (int col = 0; col < side; ++col) {
      float sum = 0;
      for (int k = 0; k < side; ++k)
        sum = std::fma(lhs.at(row, k), c.transposed ? w.at(col, k) : w.at(k, col), sum);
      const int entry = row / 8 * panels + col / 128;
      const auto index = static_cast<int64_t>(entry * 1024 + row % 8 * 128 + col % 128);
      if (integer) {
        ASSERT_EQ(r.results[0].data<int32_t>()[index], static_cast<int32_t>(sum)) << row << ", " << col;
      } else {
        ASSERT_EQ(r.results[0].data<float>()[index], sum) << row << ", " << col;
      }
    }
}

TEST(MatrixUnit, EverySideAndType) {
  const std::string tiny = std::string(TPU_SOURCE_DIR) + "/testdata/chips/tiny.json:1x1";
  for (const bool transposed : {false, true}) {
    for (const char* type : {"f32", "bf16", "s8", "u8", "f8e5m2"}) check({"v5e:1x1", type, 128, transposed});
    for (const char* type : {"f32", "bf16", "s8", "u8", "f8e5m2"}) check({"v6e:1x1", type, 256, transposed});
    for (const char* type : {"f32", "bf16", "f8e5m2", "f8e4m3fn"})
      check({"v7x:1x1x1", type, 256, transposed});
    for (const char* type : {"f32", "bf16", "s8"}) check({tiny.c_str(), type, 64, transposed});
    check({"v3:1x1", "f32", 128, transposed});
  }
}

TEST(MatrixUnit, AccumulatorsAddAndBecomeZero) {
  std::string text = "vimm v1, 0x3f800000\nvimm v4, 0x40000000\n";
  for (int n = 0; n < 32; ++n)
    for (int panel = 0; panel < 2; ++panel)
      text += "vmatpush.f32 mxu0, v1, 0, " + std::to_string(n) + ", " + std::to_string(panel) + "\n";
  text += "vlatch mxu0, 0\n";
  for (int i = 0; i < 3; ++i) text += "vmatmul.acc.f32 mxu0, v1, 0, 4\nvmatmul.acc.f32 mxu0, v1, 1, 4\n";
  // 3 x 256 in every place, then zero.
  text +=
      "vpop.mrb v2, mxu0, 5\nvpop.mrb v3, mxu0, 5\nvtos v2\nspop s1\nvtos v3\nspop s2\n"
      "scmp.ne p0, s1, 0x44400000\n@p0 trap 1\nscmp.ne p0, s2, 0\n@p0 trap 2\nvpop.mrb v2, mxu0, 4\nhalt\n";
  mustRun(programOf("v7x:1x1x1", text), {}, {.strict = true});
}

// A pop between the lane panels of a row set takes older results; the set goes on where it was.
TEST(MatrixUnit, PopsBetweenTheLanePanelsOfRows) {
  std::string weights = "vimm v1, 0x3f800000\nvimm v4, 0x40000000\n";
  for (int n = 0; n < 32; ++n)
    for (int panel = 0; panel < 2; ++panel)
      weights += "vmatpush.f32 mxu0, v1, 0, " + std::to_string(n) + ", " + std::to_string(panel) + "\n";
  weights += "vlatch mxu0, 0\n";
  // 256 ones, then 128 twos and 128 ones.
  const std::string check =
      "vtos v2\nspop s1\nvtos v3\nspop s2\n"
      "scmp.ne p0, s1, 0x43800000\n@p0 trap 1\nscmp.ne p0, s2, 0x43c00000\n@p0 trap 2\nhalt\n";
  mustRun(programOf("v7x:1x1x1", weights +
                                     "vmatmul.acc.f32 mxu0, v1, 0, 4\nvmatmul.acc.f32 mxu0, v1, 1, 4\n"
                                     "vmatmul.acc.f32 mxu0, v4, 0, 8\nvpop.mrb v2, mxu0, 4\n"
                                     "vmatmul.acc.f32 mxu0, v1, 1, 8\nvpop.mrb v3, mxu0, 8\n" + check),
          {}, {.strict = true});
  mustRun(programOf("v6e:1x1", weights +
                                   "vmatmul.f32 mxu0, v1, 0\nvmatmul.f32 mxu0, v1, 1\nvmatmul.f32 mxu0, v4, 0\n"
                                   "vpop.mrf v2, mxu0\nvpop.mrf v2, mxu0\n"
                                   "vmatmul.f32 mxu0, v1, 1\nvpop.mrf v3, mxu0\nvpop.mrf v3, mxu0\n" + check),
          {}, {.strict = true});
}

// A pop that needs results of older rows computes them; results and latching come in any mixture.
TEST(MatrixUnit, WeightsChangeWhileResultsWait) {
  std::string text = "vimm v1, 0x3f800000\nvimm v4, 0x40000000\n";
  for (int n = 0; n < 16; ++n)
    text += "vmatpush.f32 mxu0, v1, 0, " + std::to_string(n) + ", 0; vmatpush.f32 mxu1, v1, 0, " +
            std::to_string(n) + ", 0\n";
  for (int n = 0; n < 16; ++n) text += "vmatpush.f32 mxu0, v4, 1, " + std::to_string(n) + ", 0\n";
  text +=
      "vlatch mxu0, 0\nvmatmul.f32 mxu0, v1, 0\nvmatmul.f32 mxu0, v1, 0\nvlatch mxu0, 1\nvmatmul.f32 mxu0, "
      "v1, 0\n"
      "vpop.mrf v5, mxu0\nvpop.mrf v6, mxu0\nvpop.mrf v7, mxu0\n"
      "vsub.f32 v8, v7, v5\nvtos v8\nspop s1\nscmp.ne p0, s1, 0x43000000\n@p0 trap 1\nhalt\n";
  mustRun(programOf("v5e:1x1", text), {}, {.strict = true});
}

// What is pushed after a latch replaces a part of what the staging register holds; rows that wait keep the
// old weights.
TEST(MatrixUnit, PushesReplaceAPartOfLatchedWeights) {
  std::string text = "vimm v1, 0x3f800000\nvimm v2, 0x40000000\nvimm v3, 0x40004000\n";
  for (int n = 0; n < 16; ++n) text += "vmatpush.f32 mxu0, v1, 0, " + std::to_string(n) + ", 0\n";
  const auto latchAndMultiply = [&] { text += "vlatch mxu0, 0\nvmatmul.f32 mxu0, v1, 0\n"; };
  latchAndMultiply();
  text += "vmatpush.f32 mxu0, v2, 0, 0, 0\n";
  latchAndMultiply();
  text += "vmatpush.f32 mxu0, v2, 0, 15, 0\n";
  latchAndMultiply();
  text += "vmatpush.bf16 mxu0, v3, 0, 3, 0\n";  // rows 48 to 63
  latchAndMultiply();
  text += "vmatpush.bf16 mxu0, v3, 0, 3, 0\n";
  latchAndMultiply();
  int n = 0;
  for (const char* sum : {"0x43000000", "0x43080000", "0x43100000", "0x43200000", "0x43200000"})
    text += "vpop.mrf v4, mxu0\nvtos v4\nspop s1\nscmp.ne p0, s1, " + std::string(sum) + "\n@p0 trap " +
            std::to_string(++n) + "\n";
  mustRun(programOf("v5e:1x1", text + "halt\n"), {}, {.strict = true});
}

// Columns that hold zeros count where they meet an infinity, and only there.
TEST(MatrixUnit, ZerosTimesInfinityAreNotANumber) {
  std::string text =
      "vimm v0, 0\nvimm v1, 0x3f800000\nvimm v2, 0x7f800000\nvlane v5\nvimm v6, 20\nvcmp.lt.s32 m1, v5, v6\n"
      "vsel v7, m1, v1, v0\n";
  for (int n = 0; n < 16; ++n) text += "vmatpush.f32 mxu0, v1, 0, " + std::to_string(n) + ", 0\n";
  text +=
      "vlatch mxu0, 0\nvmatmul.f32 mxu0, v7, 0\nvmatpush.f32 mxu0, v2, 0, 15, 0\nvlatch mxu0, 0\n"
      "vmatmul.f32 mxu0, v7, 0\nvpop.mrf v4, mxu0\nvtos v4\nspop s1\nscmp.ne p0, s1, 0x41a00000\n@p0 trap 1\n"
      "vpop.mrf v4, mxu0\nvcmp.ne.f32 m2, v4, v4\nvsel v8, m2, v1, v0\nvtos v8\nspop s1\n"
      "scmp.ne p0, s1, 0x3f800000\n@p0 trap 2\nhalt\n";
  mustRun(programOf("v5e:1x1", text), {}, {.strict = true});
}

// Two cores of a chip: transfers and signals between them, and HBM shared.
TEST(Cores, OfOneChipTalkToEachOther) {
  isa::Program p = programOf("v3:1x1", R"(
    sld s1, [0]
    scmp.eq p0, s1, 0
    vimm v1, 7
    vimm v2, 0
    vst [0], v2
    @p0 vst [0], v1
    smov s2, 1
    smov s3, 9
    smov s4, 1
    @p0 dma.start 1024
    @p0 sem.wait 1, 4096
    @!p0 sem.wait 0, 4096
    @p0 sem.signal s2, s3, s4
    @!p0 sem.wait 9, 1
    @!p0 vld v3, [8192]
    @p0 vmov v3, v1
    vtos v3
    spop s5
    scmp.ne p1, s5, 7
    @p1 trap 1
    halt
  )",
                             2);
  addDescriptor(p, 1024,
                {.from = Space::kVmem,
                 .source = 0,
                 .dest = 8192,
                 .source_sem = 1,
                 .dest_sem = 0,
                 .device = 1,
                 .run = 4096});
  mustRun(p, {}, {.strict = true});
}

}  // namespace
}  // namespace tpu::emulate
