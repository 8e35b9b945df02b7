// Parts of the scheduler by themselves: placement, pipeline depth, pressure, loops, sizes.
#include "tpu/schedule/schedule.h"

#include "delay.h"
#include "deps.h"
#include "fresh.h"
#include "gtest/gtest.h"
#include "modulo.h"
#include "pipeline.h"
#include "place.h"
#include "tpu/llo/builder.h"
#include "tpu/schedule/report.h"

namespace tpu::schedule {
namespace {

using isa::Opcode;
using llo::Addr;
using llo::S;
using llo::V;

target::Chip v5e() { return llvm::cantFail(target::loadChip("v5e")); }

int32_t addBuffer(llo::Module& m, const std::string& name, llo::Role role, int64_t bytes) {
  llo::Buffer b;
  b.name = name;
  b.role = role;
  b.bytes = b.real_bytes = bytes;
  m.buffers.push_back(b);
  return static_cast<int32_t>(m.buffers.size()) - 1;
}

/// A kernel y = f(x) over whole buffers.
llo::Module withCopyKernel() {
  llo::Module m;
  m.locs = {""};
  llo::Kernel k;
  k.name = "copy";
  k.params = {{llo::KernelParam::kHbm, "x"}, {llo::KernelParam::kHbm, "y"}};
  for (int i = 0; i < 2; ++i) {
    llo::PipelineBlock b;
    b.name = i ? "y" : "x";
    b.param = i;
    b.direction = i ? llo::Direction::kOut : llo::Direction::kIn;
    b.bytes = 4096;
    llo::Transfer t;
    t.run = 4096;
    b.transfers = {t};
    k.blocks.push_back(b);
  }
  llo::CodeBuilder b(k.code);
  b.emit(Opcode::vst, {Addr{b.block(1), 0}, b.v(Opcode::vld, {Addr{b.block(0), 0}})});
  m.kernels.push_back(std::move(k));
  return m;
}

void call(llo::CodeBuilder& b, int32_t from, int32_t to) { b.call(0, {{true, from, {}}, {true, to, {}}}); }

// Writes under predicates begin new values where nothing else reads what they leave.
TEST(Fresh, WritesUnderPredicates) {
  Func func;
  func.blocks.emplace_back();
  func.num_regs[1] = 4;
  func.num_regs[3] = 1;
  auto add = [&](const char* text) {
    std::vector<std::string> labels;
    func.blocks[0].code.emplace_back().insn = llvm::cantFail(isa::parse(text, "test", &labels));
  };
  add("@%p0 vimm %v0, 0x0");           // completed by the next
  add("@!%p0 vimm %v0, 0x1");          // keeps what the first wrote
  add("@%p0 vimm %v1, 0x0");           // read under the same predicate
  add("@%p0 vadd.f32 %v2, %v0, %v1");  // read without one: the old value counts
  add("vadd.f32 %v3, %v2, %v0");
  findFreshWrites(func);
  const std::vector<Insn>& code = func.blocks[0].code;
  EXPECT_TRUE(code[0].fresh);
  EXPECT_FALSE(code[1].fresh);
  EXPECT_TRUE(code[2].fresh);
  EXPECT_FALSE(code[3].fresh);
}

// The branch takes the first bundles of its target along, as far as they have no predicate of their own.
TEST(Delay, BundlesOfTheTargetFillTheBranch) {
  const target::Chip chip = v5e();
  const Machine machine(chip);
  Scheduled s;
  s.func.blocks.resize(2);
  s.blocks.resize(2);
  auto add = [&](size_t block, const char* text) {
    std::vector<std::string> labels;
    s.blocks[block].emplace_back().emplace_back().insn = llvm::cantFail(isa::parse(text, "test", &labels));
  };
  add(0, "sadd s1, s1, 1");
  add(0, "sadd s2, s2, 1");
  add(0, "@p3 sadd s3, s3, 1");
  add(1, "@p1 br b0");
  s.blocks[1].back().back().insn.operands[0].imm = 0;
  s.blocks[1].resize(1 + static_cast<size_t>(machine.delay()));
  fillDelayBundles(s, machine);
  EXPECT_EQ(s.blocks[1][0][0].skip, 2);
  EXPECT_EQ(isa::print(s.blocks[1][1][0].insn), "@p1 sadd s1, s1, 1");
  EXPECT_EQ(isa::print(s.blocks[1][2][0].insn), "@p1 sadd s2, s2, 1");
  EXPECT_TRUE(s.blocks[1][3].empty());
}

TEST(Place, TemporariesShareMemoryWhenTheyDoNotMeet) {
  llo::Module m = withCopyKernel();
  const int32_t arg = addBuffer(m, "arg", llo::Role::kArgument, 1 << 20),
                out = addBuffer(m, "out", llo::Role::kResult, 1 << 20);
  int32_t t[4];
  for (int32_t& b : t) b = addBuffer(m, "t", llo::Role::kTemp, 1 << 20);
  llo::CodeBuilder b(m.driver);
  call(b, arg, t[0]);
  for (int i = 0; i < 3; ++i) call(b, t[i], t[i + 1]);
  call(b, t[3], out);
  const target::Chip chip = v5e();
  Context ctx(m, chip);
  ASSERT_FALSE(static_cast<bool>(placeBuffers(ctx, int64_t{1} << 30)));
  EXPECT_EQ(ctx.address[t[0]], ctx.address[t[2]]);
  EXPECT_NE(ctx.address[t[0]], ctx.address[t[1]]);
  EXPECT_EQ(ctx.hbm_end, 3 << 20);  // the result takes the place of a temporary that is dead by then
  EXPECT_EQ(hbmPeak(m).bytes, 3 << 20);
}

TEST(Place, WhatALoopReadsBeforeItWritesLivesOverTheLoop) {
  llo::Module m = withCopyKernel();
  const int32_t arg = addBuffer(m, "arg", llo::Role::kArgument, 4096);
  const int32_t carried = addBuffer(m, "carried", llo::Role::kTemp, 4096),
                local = addBuffer(m, "local", llo::Role::kTemp, 4096);
  const int32_t other = addBuffer(m, "other", llo::Role::kTemp, 4096);
  llo::CodeBuilder b(m.driver);
  call(b, arg, carried);
  b.loop(3, [&](S) {
    call(b, carried, local);
    call(b, local, carried);
    call(b, arg, other);
  });
  const std::vector<LiveRange> r = bufferRanges(m);
  EXPECT_TRUE(r[carried].overlaps(r[other]));
  EXPECT_FALSE(r[local].overlaps(r[other]));
}

TEST(Place, DonatedArgumentsGiveTheirStorage) {
  llo::Module m = withCopyKernel();
  const int32_t arg = addBuffer(m, "arg", llo::Role::kArgument, 4096),
                out = addBuffer(m, "out", llo::Role::kResult, 4096);
  m.buffers[out].alias = arg;
  llo::CodeBuilder b(m.driver);
  call(b, arg, out);
  const target::Chip chip = v5e();
  Context ctx(m, chip);
  ASSERT_FALSE(static_cast<bool>(placeBuffers(ctx, int64_t{1} << 30)));
  EXPECT_EQ(ctx.address[arg], ctx.address[out]);
  EXPECT_EQ(ctx.hbm_end, 4096);
}

TEST(Place, TooMuchNamesTheLargest) {
  llo::Module m = withCopyKernel();
  addBuffer(m, "small", llo::Role::kArgument, 1 << 20);
  addBuffer(m, "large", llo::Role::kArgument, 3 << 20);
  const target::Chip chip = v5e();
  Context ctx(m, chip);
  llvm::Error e = placeBuffers(ctx, 2 << 20);
  ASSERT_TRUE(static_cast<bool>(e));
  const Diagnostic d = takeDiagnostics(std::move(e))[0];
  EXPECT_EQ(d.exit, ExitStatus::kDoesNotFit);
  EXPECT_NE(d.text.find("2.00 MiB too much"), std::string::npos) << d.text;
  ASSERT_EQ(d.notes.size(), 2u);
  EXPECT_NE(d.notes[0].text.find("large takes 3.00 MiB"), std::string::npos) << d.notes[0].text;
}

TEST(Vmem, DepthGivesWayBeforeTheKernelIsRefused) {
  llo::Module m = withCopyKernel();
  llo::Kernel& k = m.kernels[0];
  k.grid = {4};
  for (llo::PipelineBlock& b : k.blocks) b.step = {4096};
  target::Chip chip = v5e();
  chip.vmem_bytes = 3 * 4096;
  Context ctx(m, chip);
  llvm::Expected<VmemPlan> plan = planVmem(ctx, k);
  ASSERT_TRUE(static_cast<bool>(plan));
  EXPECT_TRUE(plan->reduced);
  EXPECT_EQ(plan->slots[0].size() + plan->slots[1].size(), 3u);
  chip.vmem_bytes = 4096;
  plan = planVmem(ctx, k);
  ASSERT_FALSE(static_cast<bool>(plan));
  const Diagnostic d = takeDiagnostics(plan.takeError())[0];
  EXPECT_EQ(d.exit, ExitStatus::kDoesNotFit);
  EXPECT_NE(d.text.find("copy"), std::string::npos);
}

/// Straight code as the passes see it.
std::vector<Insn> body(llvm::function_ref<void(llo::CodeBuilder&)> write) {
  llo::Code code;
  llo::CodeBuilder b(code);
  write(b);
  std::vector<Insn> out;
  for (const llo::Stmt& s : code.body) {
    if (s.kind != llo::StmtKind::kInsn) continue;
    Insn i;
    i.insn = s.insn;
    for (isa::Operand& o : i.insn.operands)
      if (o.kind == isa::Operand::kUnit) o.virt = false;
    out.push_back(i);
  }
  return out;
}

// A modulo schedule must keep every edge, and no cycle of the kernel may hold more than the chip has.
TEST(Modulo, KeepsEdgesAndSlots) {
  const target::Chip chip = v5e();
  const Machine machine(chip);
  const std::vector<Insn> code = body([](llo::CodeBuilder& b) {
    const S p = b.newS(), q = b.newS();
    for (int u = 0; u < 4; ++u) {
      const V x = b.v(Opcode::vld, {Addr{p, u * 4096}});
      b.emit(Opcode::vtanh, {b.v(Opcode::vmul_f32, {x, x})});
      b.emit(Opcode::vst, {Addr{q, u * 4096}, b.v(Opcode::vpop_eup, {})});
    }
    b.emit(Opcode::sadd, {p, p, 16384});
    b.emit(Opcode::sadd, {q, q, 16384});
  });
  std::vector<Insn> regions = code;
  for (Insn& i : regions) i.object = isVmemStore(i.insn.op) ? 1 : isVmemLoad(i.insn.op) ? 0 : kAnyObject;
  ModuloSchedule s;
  ASSERT_TRUE(moduloSchedule(regions, machine, 100, &s));
  EXPECT_EQ(s.ii, 8);  // four pushes into the EUP, two cycles each
  DepGraph graph;
  ASSERT_TRUE(buildDeps(regions, nullptr, machine, true, &graph));
  for (const Edge& e : graph.edges) EXPECT_GE(s.time[e.to] + e.distance * s.ii, s.time[e.from] + e.latency);
  std::vector<std::array<int, isa::kNumSlots>> used(s.ii);
  for (size_t i = 0; i < regions.size(); ++i)
    ++used[s.time[i] % s.ii][static_cast<int>(isa::info(regions[i].insn.op).slot)];
  for (const auto& cycle : used)
    for (int k = 0; k < isa::kNumSlots; ++k) EXPECT_LE(cycle[k], chip.slots[k]);
}

TEST(Modulo, AShortFifoLengthensTheIteration) {
  target::Chip chip = v5e();
  const std::vector<Insn> code = body([](llo::CodeBuilder& b) {
    const V x = b.newV();
    for (int u = 0; u < 4; ++u) {
      b.emit(Opcode::vtanh, {x});
      b.v(Opcode::vpop_eup, {});
    }
  });
  ModuloSchedule s;
  ASSERT_TRUE(moduloSchedule(code, Machine(chip), 100, &s));
  EXPECT_EQ(s.ii, 8);
  chip.eup_depth = 1;  // one result in flight: each push waits for the pop before it
  ASSERT_TRUE(moduloSchedule(code, Machine(chip), 100, &s));
  EXPECT_EQ(s.ii, 4 * 6);
}

TEST(Report, Sizes) {
  EXPECT_EQ(parseSize("16GiB"), int64_t{16} << 30);
  EXPECT_EQ(parseSize("500MB"), 500000000);
  EXPECT_EQ(parseSize("4096"), 4096);
  EXPECT_EQ(parseSize("4x"), std::nullopt);
  EXPECT_EQ(parseSize("-1"), std::nullopt);
}

}  // namespace
}  // namespace tpu::schedule
