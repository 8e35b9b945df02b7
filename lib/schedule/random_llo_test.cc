// The scheduler against the llo interpreter on random modules: kernels that cover grids, edges, loops,
// branches, FIFOs and spills, and drivers of calls, transfers, loops and branches.
#include <random>

#include "gtest/gtest.h"
#include "scheduled_test_util.h"
#include "tpu/llo/builder.h"

namespace tpu::llo {
namespace {

using isa::Opcode;
using namespace scheduled;

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

}  // namespace
}  // namespace tpu::llo
