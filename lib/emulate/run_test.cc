// Whole small programs: values, order inside a bundle, transfers, faults.
#include <cmath>

#include "testing.h"

namespace tpu::emulate {
namespace {

using namespace testing;
using isa::Space;

// Loads an array, runs `body` on v1 (words of the array) with the result in v2, stores it.
isa::Program unaryProgram(const std::string& body, int64_t rows = 8) {
  isa::Program p = programOf("v5e:1x1",
                             "dma.start 1024\n"
                             "sem.wait 0, " +
                                 std::to_string(rows * 512) +
                                 "\n"
                                 "smov s1, 0\n"
                                 "vld v1, [s1]\n" +
                                 body +
                                 "\nvst [s1+65536], v2\n"
                                 "dma.start 1104\n"
                                 "sem.wait 1, 4096\n"
                                 "halt\n");
  addDescriptor(p, 1024, {.source = 0, .dest = 0, .dest_sem = 0, .run = rows * 512});
  addDescriptor(p, 1104,
                {.from = Space::kVmem,
                 .to = Space::kHbm,
                 .source = 65536,
                 .dest = 1 << 20,
                 .dest_sem = 1,
                 .run = 4096});
  p.args = {port("x", ElementType::kF32, {8, 128}, 0)};
  p.results = {port("y", ElementType::kF32, {8, 128}, 1 << 20)};
  return p;
}

TEST(Run, AddsTwoVectors) {
  const isa::Program p = unaryProgram("vadd.f32 v2, v1, v1");
  const HostTensor x =
      filled(ElementType::kF32, {8, 128}, [](int64_t i) { return static_cast<float>(i) * 0.5f; });
  for (const bool strict : {false, true}) {
    const RunResult r = mustRun(p, {x}, {.strict = strict});
    ASSERT_EQ(r.results.size(), 1u);
    for (int i = 0; i < 1024; ++i) ASSERT_EQ(r.results[0].data<float>()[i], static_cast<float>(i));
  }
}

TEST(Run, ReadsBeforeWritesInABundle) {
  const isa::Program p = unaryProgram(
      "vimm v3, 0x3f800000; vimm v4, 0x40000000\n"  // 1, 2
      "vmov v3, v4; vmov v4, v3\n"                  // exchanged
      "vsub.f32 v2, v3, v4");
  const HostTensor x = filled(ElementType::kF32, {8, 128}, [](int64_t) { return 0.0f; });
  const RunResult r = mustRun(p, {x}, {.strict = true});
  EXPECT_EQ(r.results[0].data<float>()[5], 1.0f);
}

TEST(Run, PredicatesLoopsAndCalls) {
  const isa::Program p = programOf("v5e:1x1", R"(
    smov s1, 0; smov s2, 10
    smov s3, 0
    loop:
    sadd s1, s1, s2
    ssub s2, s2, 1
    scmp.gt p0, s2, 0
    @p0 br loop
    nop
    nop
    nop
    sadd s3, s3, 1
    call s10, f
    nop
    nop
    nop
    nop
    scmp.ne p1, s1, 55
    @p1 trap 1
    scmp.ne p1, s3, 10
    @p1 trap 2
    scmp.ne p1, s4, 77
    @p1 trap 3
    @!p1 smov s4, 1
    scmp.ne p1, s4, 1
    @p1 trap 4
    halt
    f:
    ret s10
    smov s4, 77
    nop
    nop
    nop
  )");
  mustRun(p, {}, {.strict = true});
}

TEST(Run, TranscendentalsAndLaneSums) {
  const isa::Program p = unaryProgram(
      "vrcp.f32 v1\n"
      "vpop.eup v3\n"
      "vadd.xlane.f32 xlu0, v3\n"
      "vpop.xlu v2, xlu0");
  const HostTensor x = filled(ElementType::kF32, {8, 128}, [](int64_t) { return 4.0f; });
  EXPECT_EQ(mustRun(p, {x}, {.strict = true}).results[0].data<float>()[77], 32.0f);
}

TEST(Run, Transposes) {
  std::string body;
  // Rows 0..7 of the buffer are v1; columns 0..7 of it come out as entry 0: e(s, l) = row l, column s.
  body = "vxpose xlu1, v1, 0\n";
  for (int i = 1; i < 16; ++i) body += "vxpose xlu1, v1, " + std::to_string(i) + "\n";
  body += "vxpose.go xlu1, 8, 8\nvpop.trf v2, xlu1";
  const HostTensor x = filled(ElementType::kF32, {8, 128}, [](int64_t i) { return static_cast<float>(i); });
  const RunResult r = mustRun(unaryProgram(body), {x}, {.strict = true});
  for (int s = 0; s < 8; ++s)
    for (int l = 0; l < 128; ++l)
      ASSERT_EQ(r.results[0].data<float>()[s * 128 + l], static_cast<float>(l % 8 * 128 + 8 + s));
}

TEST(Run, MatrixUnit) {
  // Weights: the identity times 2 (row k of group n), f32 pushed; rows of v1 come back doubled.
  std::string body = "vlane v10; vsublane v11; vimm v12, 0x40000000; vimm v13, 0\n";
  for (int n = 0; n < 16; ++n)
    body += "vimm v14, " + std::to_string(8 * n) +
            "\nvadd.s32 v15, v11, v14\nvcmp.eq.s32 m1, v10, v15\nvsel v16, m1, v12, v13\n"
            "vmatpush.f32 mxu2, v16, 0, " +
            std::to_string(n) + ", 0\n";
  body += "vlatch mxu2, 0\nvmatmul.f32 mxu2, v1, 0\nvpop.mrf v2, mxu2";
  const HostTensor x =
      filled(ElementType::kF32, {8, 128}, [](int64_t i) { return static_cast<float>(i % 128); });
  const RunResult r = mustRun(unaryProgram(body), {x}, {.strict = true});
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(r.results[0].data<float>()[i], static_cast<float>(i % 128 * 2));
  EXPECT_EQ(r.stats.device[0].mxu_busy[2], 8);
}

// ---- timing only

TEST(TimingOnly, CountsTheSameCycles) {
  const isa::Program p = unaryProgram(
      "vrcp.f32 v1\nvpop.eup v3\nvadd.xlane.f32 xlu0, v3\nvpop.xlu v2, xlu0\nvmatpush.bf16 mxu0, v1, 0, 0, "
      "0\nvlatch mxu0, 0\n"
      "vmatmul.bf16 mxu0, v1, 0\nvpop.mrf v4, mxu0\nvpop.mrf v4, mxu0");
  const HostTensor x = filled(ElementType::kF32, {8, 128}, [](int64_t) { return 4.0f; });
  const RunResult timed = mustRun(p, {}, {.timing_only = true});
  EXPECT_EQ(timed.stats.cycles, mustRun(p, {x}).stats.cycles);
  EXPECT_TRUE(timed.results.empty());
}

TEST(TimingOnly, RefusesBranchesOnVectorData) {
  const isa::Program p =
      programOf("v5e:1x1", "vimm v1, 1\nvtos v1\nspop s1\nscmp.eq p0, s1, 1\n@p0 halt\nhalt");
  mustRun(p);
  EXPECT_TRUE(llvm::StringRef(failure(p, {}, {.timing_only = true})).contains("depends on vector data"));
}

// ---- faults

std::string faultOf(const std::string& text, bool strict = false) {
  return failure(programOf("v5e:1x1", text), {}, {.strict = strict});
}

TEST(Faults, AreNamed) {
  EXPECT_EQ(faultOf("smov s1, 100\nvld v1, [s1]\nhalt"),
            "1 TP0802 device 0, bundle 1 of (other), cycle 301: VMEM address 100, rows up to 4196 of "
            "134217728 bytes, not a multiple of 512");
  EXPECT_TRUE(llvm::StringRef(faultOf("vpop.eup v1\nhalt")).contains("TP0803"));
  EXPECT_TRUE(llvm::StringRef(faultOf("trap 7\nhalt"))
                  .contains("TP0807 device 0, bundle 0 of (other), cycle 300: trap 7"));
  EXPECT_TRUE(llvm::StringRef(faultOf("smov s1, 5")).contains("TP0808"));
  EXPECT_TRUE(llvm::StringRef(faultOf("vimm v1, 0\nvmatmul.bf16 mxu0, v1, 0\nhalt")).contains("TP0809"));
  std::string many;
  for (int i = 0; i < 9; ++i) many += "vrcp.f32 v1\n";
  EXPECT_TRUE(
      llvm::StringRef(faultOf(many + "halt")).contains("1 entries pushed into a FIFO that holds 8 of 8"));
}

TEST(Faults, UndefinedValuesInStrictRuns) {
  EXPECT_TRUE(llvm::StringRef(faultOf("sld s1, [2048]\nvld v1, [s1]\nhalt", true)).contains("TP0810"));
  EXPECT_TRUE(llvm::StringRef(faultOf("sld s1, [2048]\nscmp.eq p0, s1, 0\n@p0 smov s2, 0\nhalt", true))
                  .contains("TP0810"));
  isa::Program p = unaryProgram("vadd.f32 v2, v1, v9");
  const HostTensor x = filled(ElementType::kF32, {8, 128}, [](int64_t) { return 1.0f; });
  EXPECT_TRUE(llvm::StringRef(failure(p, {x}, {.strict = true}))
                  .contains("element [0,0] of result 'y' on device 0 is undefined"));
  mustRun(p, {x});
}

TEST(Faults, OwnershipByTransfers) {
  isa::Program p = programOf("v5e:1x1", "smov s1, 0\ndma.start 1024\nvld v1, [s1]\nhalt");
  addDescriptor(p, 1024, {.run = 4096});
  EXPECT_TRUE(llvm::StringRef(failure(p)).contains("TP0806"));
  // Reading the source of a transfer is allowed, writing it is not.
  p = programOf("v5e:1x1", "smov s1, 0\ndma.start 1024\nvld v1, [s1]\nvst [s1], v1\nsem.wait 0, 4096\nhalt");
  addDescriptor(p, 1024, {.from = Space::kVmem, .to = Space::kHbm, .run = 4096});
  EXPECT_TRUE(llvm::StringRef(failure(p)).contains("bundle 3"));
  // A wait on a part does not free anything.
  p = programOf("v5e:1x1", "smov s1, 0\ndma.start 1024\nsem.wait 0, 4092\nvld v1, [s1]\nhalt");
  addDescriptor(p, 1024, {.run = 4096});
  EXPECT_TRUE(llvm::StringRef(failure(p)).contains("TP0806"));
  // Interleaved rows of one row block do not collide; the same rows do.
  p = programOf("v5e:1x1", "dma.start 1024\ndma.start 1104\nsem.wait 0, 8192\nhalt");
  addDescriptor(p, 1024,
                {.source = 0,
                 .dest = 0,
                 .run = 512,
                 .n = {8, 1, 1},
                 .from_stride = {512, 0, 0},
                 .to_stride = {1024, 0, 0}});
  addDescriptor(p, 1104,
                {.source = 8192,
                 .dest = 512,
                 .run = 512,
                 .n = {8, 1, 1},
                 .from_stride = {512, 0, 0},
                 .to_stride = {1024, 0, 0}});
  mustRun(p, {}, {.strict = true});
  p.constants.pop_back();
  addDescriptor(p, 1104,
                {.source = 8192,
                 .dest = 1024,
                 .run = 512,
                 .n = {8, 1, 1},
                 .from_stride = {512, 0, 0},
                 .to_stride = {1024, 0, 0}});
  EXPECT_TRUE(llvm::StringRef(failure(p)).contains("overlaps"));
}

TEST(Faults, HangsSayWhatIsMissing) {
  EXPECT_EQ(faultOf("sem.add 3, 5\nsem.wait 3, 7\nhalt"),
            "5 TP0812 1 of 1 devices wait for ever: device 0 at bundle 1 of (other) waits for semaphore 3 to "
            "reach 7; it has 5, 2 are missing");
  EXPECT_TRUE(llvm::StringRef(faultOf("sem.add 3, 5\nhalt", true)).contains("semaphore 3 is 5 at the end"));
}

}  // namespace
}  // namespace tpu::emulate
