// The scheduler against the llo interpreter: what a module computes as written, its bundles must compute on
// the machine, bit for bit. Random kernels cover grids, edges, loops, branches, FIFOs, spills; the rest are
// the shapes that compilers write.
#include <random>

#include "gtest/gtest.h"
#include "tpu/emulate/emulate.h"
#include "tpu/emulate/llo_interpreter.h"
#include "tpu/llo/builder.h"
#include "tpu/llo/verify.h"
#include "tpu/schedule/schedule.h"

namespace tpu::llo {
namespace {

using isa::Opcode;

constexpr uint32_t kGarbage = 0xffa5ffa5u;  // memory that nobody wrote, as the interpreter fills it

std::string problem(llvm::Error e) {
  if (!e) return "";
  const Diagnostic d = takeDiagnostics(std::move(e))[0];
  return d.loc + ": " + d.text;
}

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

/// An f32 array of [rows, 128] that is an argument or result.
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

/// Empty where both stages agree, else what went wrong.
std::string difference(const Module& m, const target::Chip& chip, bool modulo,
                       schedule::Stats* stats = nullptr) {
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

/// A kernel of random instructions that is legal llo.
class RandomKernel {
 public:
  RandomKernel(uint32_t seed, const target::Chip& chip) : random_(seed), chip_(chip), m_(emptyModule(chip)) {}

  Module make() {
    kernel_.name = "random";
    const int dims = pick(3), inputs = 1 + pick(2);
    for (int d = 0; d < dims; ++d) kernel_.grid.push_back(1 + pick(4));
    kernel_.scratch = {kScratchTiles * 4096};
    const int64_t tiles = 1 + pick(3);
    std::vector<CallArg> args;
    for (int i = 0; i <= inputs; ++i) args.push_back({true, block(i, i == inputs, tiles), {}});
    CodeBuilder b(kernel_.code);
    b_ = &b;
    xlu_ = b.newXlu();
    for (int64_t t = 0; t < kScratchTiles; ++t)
      b.emit(Opcode::vst, {Addr{b.scratch(0), t * 4096}, b.vimm(0x3f800000u + t * 1000)});
    v_ = {b.vimm(0x40000000u), b.vimm(0x3f000000u)};
    s_ = {b.imm(5)};
    for (int d = 0; d < dims; ++d) s_.push_back(b.grid(d));
    for (budget_ = 10 + pick(60); budget_ > 0;) statement(0);
    for (int64_t t = 0; t < tiles; ++t) b.emit(Opcode::vst, {Addr{b.block(inputs), t * 4096}, v()});
    m_.kernels.push_back(std::move(kernel_));
    CodeBuilder d(m_.driver);
    d.call(0, args);
    return std::move(m_);
  }

 private:
  static constexpr int64_t kScratchTiles = 8;
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  V v() { return v_[pick(static_cast<int>(v_.size()))]; }
  S s() { return s_[pick(static_cast<int>(s_.size()))]; }

  // A block of `tiles` tiles that moves over a random set of grid dimensions, the last of them perhaps with
  // an edge.
  int32_t block(int param, bool out, int64_t tiles) {
    PipelineBlock b =
        wholeBlock("b" + std::to_string(param), param, out ? Direction::kOut : Direction::kIn, tiles * 4096);
    const int dims = static_cast<int>(kernel_.grid.size());
    int64_t extent = 1;
    b.step.assign(dims, 0);
    for (int d = dims; d-- > 0;) {
      if (pick(4) == 0) continue;
      b.step[d] = extent * tiles * 4096;
      extent *= kernel_.grid[d];
    }
    Transfer& t = b.transfers[0];
    t.run = 4096;
    t.dims[0] = {tiles, 4096, 4096, -1, 0};
    if (dims > 0 && b.step[dims - 1] == tiles * 4096 && pick(2) == 0)
      t.dims[0].edge_grid = dims - 1, t.dims[0].edge_count = 1;
    kernel_.blocks.push_back(std::move(b));
    kernel_.params.push_back({KernelParam::kHbm, kernel_.blocks.back().name});
    return addArray(m_, kernel_.blocks.back().name, out ? Role::kResult : Role::kArgument,
                    extent * tiles * 8);
  }

  void statement(int depth) {
    --budget_;
    CodeBuilder& b = *b_;
    switch (pick(10)) {
      case 0:
      case 1:
      case 2:
        return arithmetic();
      case 3:
        return memory();
      case 4: {
        const int n = 1 + pick(std::min(3, chip_.eup_depth));
        for (int i = 0; i < n; ++i) b.emit(Opcode::vtanh, {v()});
        for (int i = 0; i < n; ++i) v_.push_back(b.v(Opcode::vpop_eup, {}));
        return;
      }
      case 5: {
        const XluUnit unit = pick(2) ? b.newXlu() : xlu_;
        b.emit(Opcode::vrot_lane, {unit, v(), pick(128)});
        b.emit(Opcode::vmax_xlane_f32, {unit, v()});
        for (int i = 0; i < 2; ++i) v_.push_back(b.v(Opcode::vpop_xlu, {unit}));
        return;
      }
      case 6:
        m_regs_.push_back(b.m(Opcode::vcmp_lt_f32, {v(), v()}));
        return;
      case 7:
        if (!m_regs_.empty())
          v_.push_back(b.v(Opcode::vsel, {m_regs_[pick(static_cast<int>(m_regs_.size()))], v(), v()}));
        return;
      case 8:
        s_.push_back(b.s(pick(2) ? Opcode::sadd : Opcode::sxor, {s(), s()}));
        p_.push_back(b.p(Opcode::scmp_lt, {s(), s()}));
        v_.push_back(b.v(Opcode::vsplat, {s()}));
        return;
      default:
        if (depth < 2) nested(depth);
    }
  }

  void arithmetic() {
    constexpr Opcode kOps[] = {Opcode::vadd_f32, Opcode::vsub_f32, Opcode::vmul_f32,
                               Opcode::vmax_f32, Opcode::vadd_s32, Opcode::vxor};
    const Opcode op = kOps[pick(6)];
    const V a = v(), c = v();
    if (pick(4) == 0)
      b_->emit(op, {v(), a, c});  // a register written again
    else
      v_.push_back(b_->v(op, {a, c}));
  }

  void memory() {
    CodeBuilder& b = *b_;
    const int out = static_cast<int>(kernel_.blocks.size()) - 1, in = pick(out);
    const TransferDim& d = kernel_.blocks[in].transfers[0].dims[0];
    const int64_t tiles = kernel_.blocks[in].bytes / 4096;
    switch (pick(4)) {
      case 0:
        v_.push_back(b.v(Opcode::vld,
                         {Addr{b.block(in), 4096 * pick(static_cast<int>(d.edge_grid >= 0 ? 1 : tiles))}}));
        return;
      case 1:
        b.emit(Opcode::vst,
               {Addr{b.block(out), 4096 * pick(static_cast<int>(kernel_.blocks[out].bytes / 4096))}, v()});
        return;
      case 2:
        b.emit(Opcode::vst, {Addr{b.scratch(0), 4096 * pick(kScratchTiles)}, v()});
        return;
      default:
        v_.push_back(b.v(Opcode::vld, {Addr{b.scratch(0), 4096 * pick(kScratchTiles)}}));
        return;
    }
  }

  void nested(int depth) {
    CodeBuilder& b = *b_;
    const size_t nv = v_.size(), ns = s_.size(), nm = m_regs_.size(), np = p_.size();
    auto some = [&](int n) {
      for (int i = 0; i < n; ++i) statement(depth + 1);
      v_.resize(nv), s_.resize(ns), m_regs_.resize(nm), p_.resize(np);
    };
    if (!p_.empty() && pick(2) == 0) {
      b.ifElse(
          p_[pick(static_cast<int>(np))], [&] { some(4); }, [&] { some(pick(4)); });
      return;
    }
    const int64_t trips = 1 + pick(kScratchTiles);
    auto body = [&](S i) {
      s_.push_back(i);
      const S at = b.s(Opcode::sadd, {b.scratch(0), b.s(Opcode::sshl, {i, 12})});
      v_.push_back(b.v(Opcode::vadd_f32, {b.v(Opcode::vld, {Addr{at, 0}}), v()}));
      b.emit(Opcode::vst, {Addr{at, 0}, v_.back()});
      some(2 + pick(8));
    };
    if (pick(2) == 0)
      b.loop(trips, body);
    else
      b.loop(b.imm(trips), body);
  }

  std::mt19937 random_;
  const target::Chip& chip_;
  Module m_;
  Kernel kernel_;
  CodeBuilder* b_ = nullptr;
  XluUnit xlu_;
  std::vector<V> v_;
  std::vector<S> s_;
  std::vector<M> m_regs_;
  std::vector<P> p_;
  int budget_ = 0;
};

class RandomKernels : public testing::TestWithParam<std::string> {};

TEST_P(RandomKernels, BundlesComputeWhatLloSays) {
  const target::Chip chip = chipOf(GetParam());
  for (uint32_t seed = 0; seed < 60; ++seed)
    for (bool modulo : {false, true}) {
      const Module m = RandomKernel(seed, chip).make();
      ASSERT_EQ(difference(m, chip, modulo), "") << "seed " << seed << ", modulo " << modulo;
    }
}
INSTANTIATE_TEST_SUITE_P(Chips, RandomKernels, testing::Values("v5e", "v2", "v7x", "tiny"),
                         [](const auto& p) { return p.param; });

/// A driver of random calls, transfers, loops and branches over buffers that come and go.
class RandomDriver {
 public:
  RandomDriver(uint32_t seed, const target::Chip& chip) : random_(seed), m_(emptyModule(chip)) {}

  Module make() {
    m_.num_sems = 1;
    addKernel();
    for (int i = 0; i < 2; ++i)
      live_.push_back(addArray(m_, "arg" + std::to_string(i), Role::kArgument, kRows));
    word_ = scalar();
    CodeBuilder b(m_.driver);
    b_ = &b;
    b.emit(Opcode::sst, {Addr{b.pseudo(PseudoKind::kSmem, word_), 0}, b.imm(3)});
    kept_ = b.imm(2 + pick(5));  // a register that lives over calls
    for (int i = 0; i < 12; ++i) statement(0);
    const int32_t result = addArray(m_, "result", Role::kResult, kRows);
    add(some(), some(), result);
    return std::move(m_);
  }

 private:
  static constexpr int64_t kRows = 16;
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  int32_t some() { return live_[pick(static_cast<int>(live_.size()))]; }
  int32_t temporary() {
    Buffer b = m_.buffers[0];
    b.role = Role::kTemp;
    b.name = "temp" + std::to_string(m_.buffers.size());
    m_.buffers.push_back(b);
    return static_cast<int32_t>(m_.buffers.size()) - 1;
  }
  int32_t scalar() {
    Buffer b;
    b.name = "word";
    b.space = isa::Space::kSmem;
    b.element = ElementType::kS32;
    b.bytes = b.real_bytes = 4;
    m_.buffers.push_back(b);
    return static_cast<int32_t>(m_.buffers.size()) - 1;
  }

  // out[rows r..r+7] = x + n * y, r a byte offset of the parameters, n a word.
  void addKernel() {
    Kernel k;
    k.name = "add";
    for (const char* name : {"x", "y", "out"}) k.params.push_back({KernelParam::kHbm, name});
    k.params.push_back({KernelParam::kWord, "n"});
    k.params.push_back({KernelParam::kSmem, "scale"});
    for (int i = 0; i < 3; ++i)
      k.blocks.push_back(wholeBlock(k.params[i].name, i, i == 2 ? Direction::kOut : Direction::kIn, 4096));
    CodeBuilder b(k.code);
    const S scale = b.s(Opcode::sld, {Addr{b.param(7), 0}});
    const V n = b.v(Opcode::vcvt_s32_f32, {b.v(Opcode::vsplat, {b.s(Opcode::sadd, {b.param(6), scale})})});
    const V y = b.v(Opcode::vmul_f32, {b.v(Opcode::vld, {Addr{b.block(1), 0}}), n});
    b.emit(Opcode::vst,
           {Addr{b.block(2), 0}, b.v(Opcode::vadd_f32, {b.v(Opcode::vld, {Addr{b.block(0), 0}}), y})});
    m_.kernels.push_back(std::move(k));
  }

  void add(int32_t x, int32_t y, int32_t out) {
    CodeBuilder& b = *b_;
    if (pick(2) == 0) {
      for (int64_t half : {0, 4096}) call(x, y, out, {false, 0, half});
      return;
    }
    b.loop(2, [&](S i) { call(x, y, out, {true, b.s(Opcode::sshl, {i, 12}).id, 0}); });
  }
  void call(int32_t x, int32_t y, int32_t out, Scalar offset) {
    const Scalar n = pick(2) ? Scalar{false, 0, pick(4)} : Scalar{true, kept_.id, 0};
    b_->call(0,
             {{true, x, offset}, {true, y, offset}, {true, out, offset}, {false, -1, n}, {true, word_, {}}});
  }

  void copy(int32_t from, int32_t to) {
    Dma d;
    d.src.index = from;
    d.dst.index = to;
    d.run = 4096;
    d.dims[0] = {2, 4096, 4096};
    d.dst_sem = 0;
    b_->dma(d);
    b_->semWait(0, {false, 0, 8192});
  }

  void statement(int depth) {
    CodeBuilder& b = *b_;
    switch (pick(depth < 2 ? 7 : 4)) {
      case 0:
      case 1: {
        const int32_t x = some(), y = some(), out = temporary();
        add(x, y, out);
        live_.push_back(out);
        return;
      }
      case 2: {
        const int32_t from = some(), to = temporary();
        copy(from, to);
        live_.push_back(to);
        if (live_.size() > 5) live_.erase(live_.begin() + 2);  // its memory may be taken by others
        return;
      }
      case 3: {
        const S address = b.pseudo(PseudoKind::kSmem, word_);
        const S value = b.s(Opcode::sld, {Addr{address, 0}});
        b.emit(Opcode::sst, {Addr{address, 0}, b.s(Opcode::sand, {b.s(Opcode::sadd, {value, kept_}), 7})});
        return;
      }
      case 4: {
        const S value = b.s(Opcode::sld, {Addr{b.pseudo(PseudoKind::kSmem, word_), 0}});
        const P p = b.p(Opcode::scmp_lt, {value, 4});
        b.ifElse(
            p, [&] { inner(depth); },
            [&] {
              if (pick(2)) inner(depth);
            });
        return;
      }
      case 5:
        b.loop(1 + pick(3), [&](S i) {
          inner(depth);
          b.emit(Opcode::sadd, {kept_, kept_, i});
        });
        return;
      default: {
        const S left = b.imm(pick(3));
        b.whileLoop(
            [&] {
              return b.p(Opcode::scmp_gt, {left, 0});
            },
            [&] {
              inner(depth);
              b.emit(Opcode::ssub, {left, left, 1});
            });
      }
    }
  }
  // What is made inside is not used outside; what is outside may be overwritten.
  void inner(int depth) {
    const std::vector<int32_t> before = live_;
    for (int i = 0; i < 2; ++i) statement(depth + 1);
    const int32_t out = before[pick(static_cast<int>(before.size()))];
    if (out > 1) add(some(), some(), out);
    live_ = before;
  }

  std::mt19937 random_;
  Module m_;
  CodeBuilder* b_ = nullptr;
  std::vector<int32_t> live_;
  int32_t word_ = 0;
  S kept_;
};

TEST(Scheduled, RandomDriversComputeWhatLloSays) {
  for (const char* name : {"v5e", "tiny"}) {
    const target::Chip chip = chipOf(name);
    for (uint32_t seed = 0; seed < 100; ++seed) {
      const Module m = RandomDriver(seed, chip).make();
      ASSERT_EQ(difference(m, chip, true), "") << name << " seed " << seed;
    }
  }
}

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

// With little SMEM all transfers share descriptors, which are written before each use.
TEST(Scheduled, SharedDescriptors) {
  const target::Chip chip = chipOf("v5e");
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Module m = RandomDriver(seed, chip).make();
    llo::Buffer filler;
    filler.name = "filler";
    filler.space = isa::Space::kSmem;
    filler.bytes = filler.real_bytes = chip.smem_bytes - 2048;
    m.buffers.push_back(filler);
    ASSERT_EQ(difference(m, chip, true), "") << "seed " << seed;
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
