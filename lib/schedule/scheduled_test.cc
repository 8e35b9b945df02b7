// The scheduler against the llo interpreter: what a module computes as written, its bundles must compute on
// the machine, bit for bit; here for the shapes that compilers write.
#include <random>

#include "gtest/gtest.h"
#include "scheduled_test_util.h"
#include "tpu/emulate/emulate.h"
#include "tpu/emulate/llo_interpreter.h"
#include "tpu/llo/builder.h"
#include "tpu/llo/verify.h"
#include "tpu/schedule/schedule.h"

namespace tpu::llo {
namespace scheduled {
namespace {

constexpr uint32_t kGarbage = 0xffa5ffa5u;  // memory that nobody wrote, as the interpreter fills it

std::string problem(llvm::Error e) {
  if (!e) return "";
  const Diagnostic d = takeDiagnostics(std::move(e))[0];
  return d.loc + ": " + d.text;
}

}  // namespace

target::Chip chipOf(const std::string& name) {
  return llvm::cantFail(target::loadChip(name == "tiny" ? TPU_SOURCE_DIR "/testdata/chips/tiny.json" : name));
}

Module emptyModule(const target::Chip& chip) {
  Module m;
  m.target = chip.name + ":1";
  m.chip_json = chip.json;
  m.locs = {"", "kernel.py:1:1"};
  m.driver.op_locs = {1};
  return m;
}

int32_t addArray(Module& m, const std::string& name, Role role, int64_t rows) {
  Buffer b;
  b.name = name;
  b.role = role;
  b.dims = {rows, 128};
  b.layout = isa::defaultLayout(b.element, b.dims);
  b.bytes = b.real_bytes = rows * 512;
  m.buffers.push_back(b);
  Port p;
  p.name = p.signature.name = name;
  p.buffer = static_cast<int32_t>(m.buffers.size()) - 1;
  p.signature.global_dims = p.signature.local_dims = {rows, 128};
  p.signature.layout = b.layout;
  (role == Role::kArgument ? m.args : m.results).push_back(p);
  return p.buffer;
}

PipelineBlock wholeBlock(const std::string& name, int param, Direction direction, int64_t bytes) {
  PipelineBlock b;
  b.name = name;
  b.param = param;
  b.direction = direction;
  b.bytes = bytes;
  Transfer t;
  t.run = bytes;
  b.transfers = {t};
  return b;
}

std::string difference(const Module& m, const target::Chip& chip, bool modulo, schedule::Stats* stats) {
  if (std::string text = problem(verify(m, chip)); !text.empty()) return "verify: " + text;
  std::vector<HostTensor> args;
  std::mt19937 random(1);
  for (const Port& p : m.args) {
    HostTensor t(p.signature.element, p.signature.global_dims);
    for (int64_t i = 0; i < t.numElements(); ++i)
      t.data<float>()[i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 64.0f;
    args.push_back(std::move(t));
  }
  llvm::Expected<std::vector<HostTensor>> want = emulate::interpret(m, chip, args);
  if (!want) return "interpret: " + problem(want.takeError());
  schedule::Options options;
  options.modulo = modulo;
  llvm::Expected<isa::Program> program = schedule::schedule(m, chip, options, stats);
  if (!program) return "schedule: " + problem(program.takeError());
  llvm::Expected<emulate::RunResult> got = emulate::run(*program, args, {});
  if (!got) return "run: " + problem(got.takeError());
  for (size_t i = 0; i < want->size(); ++i)
    for (size_t k = 0; k < (*want)[i].bytes.size(); k += 4) {
      uint32_t a, b;
      std::memcpy(&a, &(*want)[i].bytes[k], 4);
      std::memcpy(&b, &got->results[i].bytes[k], 4);
      if (a != b && a != kGarbage)
        return "result " + std::to_string(i) + " differs at byte " + std::to_string(k);
    }
  return "";
}

}  // namespace scheduled

namespace {

using isa::Opcode;
using namespace scheduled;

// A kernel whose steps end on any of its slots is called twice: the second call starts from the first slot
// again, though the descriptors are as the first call left them.
TEST(Scheduled, KernelsCanBeCalledAgain) {
  const target::Chip chip = chipOf("v5e");
  for (const int64_t steps : {3, 4, 5}) {
    Module m = emptyModule(chip);
    const int32_t in = addArray(m, "in", Role::kArgument, 40), out = addArray(m, "out", Role::kResult, 40);
    const int32_t in2 = addArray(m, "in2", Role::kArgument, 40),
                  out2 = addArray(m, "out2", Role::kResult, 40);
    Kernel k;
    k.name = "twice";
    k.params = {{KernelParam::kHbm, "in"}, {KernelParam::kHbm, "out"}};
    k.grid = {steps};
    k.blocks = {wholeBlock("in", 0, Direction::kIn, 4096), wholeBlock("out", 1, Direction::kOut, 4096)};
    for (llo::PipelineBlock& b : k.blocks) b.step = {4096};
    CodeBuilder b(k.code);
    const V x = b.v(Opcode::vld, {Addr{b.block(0), 0}});
    b.emit(Opcode::vst, {Addr{b.block(1), 0}, b.v(Opcode::vadd_f32, {x, x})});
    m.kernels.push_back(std::move(k));
    CodeBuilder d(m.driver);
    d.call(0, {{true, in, {}}, {true, out, {}}});
    d.call(0, {{true, in2, {}}, {true, out2, {}}});
    EXPECT_EQ(difference(m, chip, true), "") << steps;
  }
}

// Inputs that move with some dimensions of the grid only and are shorter at its edge, whether one step is
// fetched ahead or two; called twice.
TEST(Scheduled, InputsMoveWithPartsOfTheGrid) {
  for (const char* name : {"v5e", "tiny"})
    for (const std::vector<int64_t>& grid : {std::vector<int64_t>{2, 2}, {5, 1}, {1, 4}, {3, 4}, {2, 3}}) {
      const target::Chip chip = chipOf(name);
      Module m = emptyModule(chip);
      const int64_t rows = 8 * grid[0] * grid[1];
      std::vector<llo::CallArg> args;
      Kernel k;
      k.name = "parts";
      for (const char* in : {"every", "outer", "inner"}) {
        args.push_back({true, addArray(m, in, Role::kArgument, rows), {}});
        k.params.push_back({KernelParam::kHbm, in});
        k.blocks.push_back(wholeBlock(in, static_cast<int>(k.blocks.size()), Direction::kIn, 4096));
      }
      k.params.push_back({KernelParam::kHbm, "out"});
      k.blocks.push_back(wholeBlock("out", 3, Direction::kOut, 4096));
      k.grid = grid;
      for (size_t b = 0; b < 4; ++b)
        k.blocks[b].step = {b == 1 ? 4096 : b == 2 ? 0 : 4096 * grid[1], b == 1 ? 0 : 4096};
      k.blocks[2].transfers[0].run_edge_grid = 1;  // rows of what was there before stay unused
      k.blocks[2].transfers[0].run_edge = 2048;
      CodeBuilder b(k.code);
      const V x = b.v(Opcode::vld, {Addr{b.block(0), 0}}), y = b.v(Opcode::vld, {Addr{b.block(1), 0}});
      const V z = b.v(Opcode::vld_strided, {Addr{b.block(2), 0}, 1, 0x0f});
      const V sum = b.v(Opcode::vadd_f32, {b.v(Opcode::vadd_f32, {x, y}), z});
      b.emit(Opcode::vst, {Addr{b.block(3), 0}, sum});
      m.kernels.push_back(std::move(k));
      CodeBuilder d(m.driver);
      for (const char* out : {"first", "second"}) {
        std::vector<llo::CallArg> with = args;
        with.push_back({true, addArray(m, out, Role::kResult, rows), {}});
        d.call(0, with);
        std::swap(args[0].buffer, args[1].buffer);
      }
      EXPECT_EQ(difference(m, chip, true), "") << name << " " << grid[0] << " x " << grid[1];
    }
}

// out = lhs @ rhs + 1.5 on all matrix units at once, rows dealt out to them.
Module matrixProduct(const target::Chip& chip, int64_t rows) {
  Module m = emptyModule(chip);
  const int32_t lhs = addArray(m, "lhs", Role::kArgument, rows),
                rhs = addArray(m, "rhs", Role::kArgument, 128);
  const int32_t out = addArray(m, "out", Role::kResult, rows);
  Kernel k;
  k.name = "dot";
  for (const char* name : {"lhs", "rhs", "out"}) k.params.push_back({KernelParam::kHbm, name});
  k.blocks = {wholeBlock("lhs", 0, Direction::kIn, rows * 512),
              wholeBlock("rhs", 1, Direction::kIn, 128 * 512),
              wholeBlock("out", 2, Direction::kOut, rows * 512)};
  CodeBuilder b(k.code);
  const S l = b.block(0), r = b.block(1), o = b.block(2);
  std::vector<MxuUnit> units;
  for (int i = 0; i < chip.mxus; ++i) units.push_back(b.newMxu());
  const int64_t n = chip.mxus;
  for (MxuUnit u : units) {
    for (int g = 0; g < 16; ++g)
      b.emit(Opcode::vmatpush_f32, {u, b.v(Opcode::vld, {Addr{r, g * 4096}}), 0, g, 0});
    b.emit(Opcode::vlatch, {u, 0});
  }
  b.loop(rows / 8 / n, [&](S i) {
    const S offset = b.s(Opcode::smul, {i, n * 4096});
    const S from = b.s(Opcode::sadd, {l, offset}), to = b.s(Opcode::sadd, {o, offset});
    for (int64_t j = 0; j < n; ++j)
      b.emit(Opcode::vmatmul_f32, {units[j], b.v(Opcode::vld, {Addr{from, j * 4096}}), 0});
    for (int64_t j = 0; j < n; ++j)
      b.emit(Opcode::vst, {Addr{to, j * 4096},
                           b.v(Opcode::vadd_f32, {b.v(Opcode::vpop_mrf, {units[j]}), b.vimmF32(1.5f)})});
  });
  m.kernels.push_back(std::move(k));
  CodeBuilder d(m.driver);
  d.call(0, {{true, lhs, {}}, {true, rhs, {}}, {true, out, {}}});
  return m;
}

TEST(Scheduled, MatrixLoopIsPipelined) {
  const target::Chip chip = chipOf("v5e");
  const Module m = matrixProduct(chip, 4096);
  schedule::Stats stats;
  EXPECT_EQ(difference(m, chip, true, &stats), "");
  EXPECT_EQ(stats.functions[1].loops_pipelined, 1);
  EXPECT_EQ(difference(m, chip, false), "");
}

TEST(Scheduled, PipeliningHidesTheMatrixUnitsLatency) {
  const target::Chip chip = chipOf("v5e");
  const Module m = matrixProduct(chip, 4096);
  auto cycles = [&](bool modulo) {
    schedule::Options options;
    options.modulo = modulo;
    const isa::Program p = llvm::cantFail(schedule::schedule(m, chip, options));
    const std::vector<HostTensor> args = {HostTensor(ElementType::kF32, {4096, 128}),
                                          HostTensor(ElementType::kF32, {128, 128})};
    return llvm::cantFail(emulate::run(p, args, {})).stats.cycles;
  };
  EXPECT_GT(cycles(false) - cycles(true),
            100 * 140);  // 128 iterations, nearly all without their 160 cycles of latency
}

// Three times sixteen sums of which each sixteen are live together: the spilled ones share places where VMEM has no
// room for one each, and are refused where it has none for one sixteen.
TEST(Scheduled, SpilledVectorsShareVmem) {
  target::Chip chip = chipOf("tiny");
  Module m = emptyModule(chip);
  const int32_t in = addArray(m, "in", Role::kArgument, 8), out = addArray(m, "out", Role::kResult, 8);
  Kernel k;
  k.name = "sums";
  k.params = {{KernelParam::kHbm, "in"}, {KernelParam::kHbm, "out"}};
  k.blocks = {wholeBlock("in", 0, Direction::kIn, 4096), wholeBlock("out", 1, Direction::kOut, 4096)};
  CodeBuilder b(k.code);
  V x = b.v(Opcode::vld, {Addr{b.block(0), 0}});
  for (int phase = 0; phase < 3; ++phase) {
    std::vector<V> sums;
    for (uint32_t i = 0; i < 16; ++i) sums.push_back(b.v(Opcode::vadd_f32, {i ? sums.back() : x, x}));
    V product = x;
    for (const V& sum : sums) product = b.v(Opcode::vsub_f32, {sum, product});
    x = product;
  }
  b.emit(Opcode::vst, {Addr{b.block(1), 0}, x});
  m.kernels.push_back(std::move(k));
  CodeBuilder d(m.driver);
  d.call(0, {{true, in, {}}, {true, out, {}}});
  schedule::Stats stats;
  EXPECT_EQ(difference(m, chip, true, &stats), "");
  const int64_t apart = stats.functions[1].vmem_bytes;
  stats = {};
  chip.vmem_bytes = apart / 2;
  EXPECT_EQ(difference(m, chip, true, &stats), "");
  EXPECT_LE(stats.functions[1].vmem_bytes, apart / 2);
  chip.vmem_bytes = 5 * 4096;
  EXPECT_EQ(difference(m, chip, true), "schedule: : kernel sums has no VMEM left for spilled vector registers");
}

// Two devices swap an array piece by piece from the tile loop of a kernel that works on something else.
TEST(Scheduled, CompanionsRunBesideTheGrid) {
  const target::Chip chip = chipOf("v5e");
  constexpr int64_t kPieces = 4, kRows = 8 * kPieces;
  Module m = emptyModule(chip);
  m.target = "v5e:2x1";
  m.devices = 2;
  m.device_table_words = 1;
  m.device_table = {1, 0};  // the other device
  m.num_sems = 3;           // ready, sent, received
  const int32_t mine = addArray(m, "mine", Role::kArgument, kRows),
                x = addArray(m, "x", Role::kArgument, kRows);
  const int32_t theirs = addArray(m, "theirs", Role::kResult, kRows),
                y = addArray(m, "y", Role::kResult, kRows);
  for (auto* ports : {&m.args, &m.results})
    for (Port& p : *ports) p.signature.global_dims[0] *= 2, p.signature.shards = {{{1, 2}}, {}};
  Buffer word;
  word.name = "next";
  word.space = isa::Space::kSmem;
  word.element = ElementType::kS32;
  word.bytes = word.real_bytes = 4;
  word.role = Role::kConstant;
  word.data = {0, 0, 0, 0};
  m.buffers.push_back(word);
  const auto state = static_cast<int32_t>(m.buffers.size()) - 1;

  Companion c;
  c.name = "swap";
  CodeBuilder step(c.step);
  const S at = step.pseudo(PseudoKind::kSmem, state);
  const S next = step.s(Opcode::sld, {Addr{at, 0}});
  step.ifThen(step.p(Opcode::scmp_lt, {next, kPieces}), [&] {
    Dma d;
    d.src.index = mine;
    d.dst.index = theirs;
    d.src.regs = d.dst.regs = {step.s(Opcode::sshl, {next, 12}).id};
    d.run = 4096;
    d.remote = true;
    d.device = {true, step.pseudo(PseudoKind::kDeviceWord, 0).id, 0};
    d.src_sem = 1;
    d.dst_sem = 2;
    step.dma(d);
    step.emit(Opcode::sst, {Addr{at, 0}, step.s(Opcode::sadd, {next, 1})});
  });
  c.done = step.p(Opcode::scmp_ge, {next, kPieces - 1}).id;
  m.companions.push_back(std::move(c));

  Kernel k;
  k.name = "twice";
  k.params = {{KernelParam::kHbm, "x"}, {KernelParam::kHbm, "y"}};
  k.grid = {kPieces};
  for (int i = 0; i < 2; ++i) {
    k.blocks.push_back(wholeBlock(k.params[i].name, i, i ? Direction::kOut : Direction::kIn, 4096));
    k.blocks.back().step = {4096};
  }
  CodeBuilder b(k.code);
  const V v = b.v(Opcode::vld, {Addr{b.block(0), 0}});
  b.emit(Opcode::vst, {Addr{b.block(1), 0}, b.v(Opcode::vadd_f32, {v, v})});
  m.kernels.push_back(std::move(k));

  CodeBuilder d(m.driver);
  const S other = d.pseudo(PseudoKind::kDeviceWord, 0);
  d.semSignal({true, other.id, 0}, 0, {false, 0, 1});
  d.semWait(0, {false, 0, 1});
  d.call(0, {{true, x, {}}, {true, y, {}}});
  m.driver.body.back().companions = {0};
  d.semWait(1, {false, 0, kPieces * 4096});
  d.semWait(2, {false, 0, kPieces * 4096});
  EXPECT_EQ(difference(m, chip, true), "");
}

}  // namespace
}  // namespace tpu::llo
