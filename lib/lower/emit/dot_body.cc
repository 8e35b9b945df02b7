// Streams blocks through the matrix units.
#include <functional>

#include "dot_body.h"

namespace tpu::lower::emit {
namespace {

class Streamer {
 public:
  Streamer(Vec& e, const DotPlan& plan, const DotAreas& areas, llo::Scalar k_block)
      : e_(e), b_(e.code()), p_(plan), areas_(areas), k_block_(k_block) {
    const int physical = p_.side == 64 ? 4 * p_.units : p_.units;
    for (int i = 0; i < physical; ++i) units_.push_back(b_.newMxu());
    adds_ = p_.kGroups() * static_cast<int64_t>(p_.passes.size()) > 1 || p_.gk > 1;
  }
  void run();

 private:
  // What an iteration works on, in scalar registers.
  struct State {
    S kk, pass, j, chunk;  // counters
    S lhs, acc, first;     // addresses; 1 where acc is to be set
  };
  State newState();
  void advance(State& next);
  S weightBase(const State& s);
  void setBases(State& s);
  void iteration(const State& now, const State& before, const State& next, bool has_before, bool has_next);
  llvm::SmallVector<std::function<void()>, 32> weightPushes(S base);
  void multiplyGroup(const State& s, int g);
  void popGroup(const State& s, int g, M first);
  llvm::SmallVector<V, 4> popUnit(int unit, int g);
  V add(V a, V b) { return e_.binary(p_.integer ? Opcode::vadd_s32 : Opcode::vadd_f32, a, b); }
  V asAccumulated(V v) {
    return p_.integer && !p_.mode.integer_results ? e_.unary(Opcode::vcvt_f32_s32, v) : v;
  }
  S scaled(S index, int64_t bytes) { return b_.s(Opcode::smul, {index, bytes}); }
  S plus(S a, S c) { return b_.s(Opcode::sadd, {a, c}); }
  int64_t accColumns() const { return p_.bn / kLanes; }

  Vec& e_;
  llo::CodeBuilder& b_;
  const DotPlan& p_;
  const DotAreas& areas_;
  llo::Scalar k_block_;
  std::vector<llo::MxuUnit> units_;
  bool adds_ = false;
};

Streamer::State Streamer::newState() {
  State s;
  for (S* r : {&s.kk, &s.pass, &s.j, &s.chunk, &s.lhs, &s.acc, &s.first}) *r = b_.imm(0);
  return s;
}

// The next iteration: K groups fastest, then passes, columns, row chunks.
void Streamer::advance(State& s) {
  const std::pair<S, int64_t> counters[] = {{s.kk, p_.kGroups()}, {s.pass, static_cast<int64_t>(p_.passes.size())}, {s.j, p_.nGroups()}};
  S carry = b_.imm(1);
  for (const auto& [counter, limit] : counters) {
    if (limit == 1) continue;
    const S up = plus(counter, carry);
    const P wraps = b_.p(Opcode::scmp_ge, {up, limit});
    const S zero = b_.imm(0), one = b_.imm(1);
    b_.emit(Opcode::ssel, {counter, wraps, zero, up});
    carry = b_.s(Opcode::ssel, {wraps, one, 0});
  }
  if (p_.rowChunks() > 1) b_.emit(Opcode::sadd, {s.chunk, s.chunk, carry});
}

// Part numbers of the passes, two bits each.
static int64_t partTable(const DotPlan& p, bool lhs) {
  int64_t table = 0;
  for (size_t i = 0; i < p.passes.size(); ++i) table |= int64_t{lhs ? p.passes[i].first : p.passes[i].second} << (2 * i);
  return table;
}

S Streamer::weightBase(const State& s) {
  const int64_t tiles = p_.rhs.col_tiles(), groups = p_.groupsPerTile();
  const int64_t k_step = p_.mk * p_.tile_k * (p_.rhs_transposed ? 1 : groups * tiles) * kRegisterBytes;
  const int64_t n_step = p_.mn * p_.tile_n * (p_.rhs_transposed ? groups * tiles : 1) * kRegisterBytes;
  S base = plus(areas_.rhs, scaled(s.kk, k_step));
  base = plus(base, scaled(s.j, n_step));
  if (p_.passes.size() == 1) return base;
  const S shift = b_.s(Opcode::sshl, {s.pass, 1});
  const S part = b_.s(Opcode::sand, {b_.s(Opcode::sshr, {b_.imm(partTable(p_, false)), shift}), 3});
  return plus(base, scaled(part, partBytes(p_, p_.rhs)));
}

void Streamer::setBases(State& s) {
  S lhs = plus(areas_.lhs, scaled(s.kk, p_.mk * p_.tile_k * kRegisterBytes));
  lhs = plus(lhs, scaled(s.chunk, p_.chunk * p_.lhs.col_tiles() * kRegisterBytes));
  S sum = s.kk;
  if (p_.passes.size() > 1) {
    const S shift = b_.s(Opcode::sshl, {s.pass, 1});
    const S part = b_.s(Opcode::sand, {b_.s(Opcode::sshr, {b_.imm(partTable(p_, true)), shift}), 3});
    lhs = plus(lhs, scaled(part, partBytes(p_, p_.lhs)));
    sum = plus(sum, s.pass);
  }
  b_.emit(Opcode::smov, {s.lhs, lhs});
  S acc = plus(areas_.acc, scaled(s.j, p_.mn * p_.tile_n * kRegisterBytes));
  acc = plus(acc, scaled(s.chunk, p_.chunk * (p_.mode.rows / 8) * accColumns() * kRegisterBytes));
  b_.emit(Opcode::smov, {s.acc, acc});
  if (k_block_.is_reg) sum = plus(sum, S{k_block_.reg});
  const P is_first = b_.p(Opcode::scmp_eq, {sum, 0});
  const S one = b_.imm(1);
  b_.emit(Opcode::ssel, {s.first, is_first, one, 0});
}

llvm::SmallVector<std::function<void()>, 32> Streamer::weightPushes(S base) {
  // Registers of the weight set of every unit, in order of need; each push is one entry of the list.
  llvm::SmallVector<std::function<void()>, 32> list;
  const int groups = p_.groupsPerTile();
  const int64_t tiles = p_.rhs.col_tiles();
  const auto address = [=, this](int k_tile, int n_tile, int group) {
    const int64_t row = (p_.rhs_transposed ? n_tile : k_tile) * groups + group;
    return Addr{base, (row * tiles + (p_.rhs_transposed ? k_tile : n_tile)) * kRegisterBytes};
  };
  const Opcode op = p_.rhs_transposed ? p_.mode.push_t : p_.mode.push;
  for (int ik = 0; ik < p_.mk; ++ik)
    for (int in = 0; in < p_.mn; ++in) {
      const int unit = ik * p_.mn + in;
      // Major tiles go with the rows of registers, minor ones with their lanes.
      const int major_tiles = p_.rhs_transposed ? p_.tile_n : p_.tile_k, minor_tiles = p_.rhs_transposed ? p_.tile_k : p_.tile_n;
      for (int major = 0; major < major_tiles; ++major)
        for (int g = 0; g < groups; ++g)
          for (int minor = 0; minor < minor_tiles; ++minor) {
            const int k_tile = ik * p_.tile_k + (p_.rhs_transposed ? minor : major);
            const int n_tile = in * p_.tile_n + (p_.rhs_transposed ? major : minor);
            list.push_back([=, this] {
              const V w = b_.v(Opcode::vld, {address(k_tile, n_tile, g)});
              if (p_.side >= 128) {
                b_.emit(op, {units_[unit], w, 0, major * groups + g, minor});
                return;
              }
              // Quarters: rows above or below the middle, and either half of the lanes.
              const int half = g / (groups / 2), row = g % (groups / 2);
              for (int lanes = 0; lanes < 2; ++lanes) {
                const int k_half = p_.rhs_transposed ? lanes : half, n_half = p_.rhs_transposed ? half : lanes;
                b_.emit(op, {units_[unit * 4 + k_half * 2 + n_half], w, 0, row, lanes});
              }
            });
          }
    }
  return list;
}

void Streamer::multiplyGroup(const State& s, int g) {
  for (int ik = 0; ik < p_.mk; ++ik) {
    llvm::SmallVector<V, 2> rows;
    for (int t = 0; t < p_.tile_k; ++t)
      rows.push_back(b_.v(Opcode::vld, {Addr{s.lhs, (g * p_.lhs.col_tiles() + ik * p_.tile_k + t) * kRegisterBytes}}));
    for (int in = 0; in < p_.mn; ++in) {
      const int unit = ik * p_.mn + in;
      for (int part = 0; part < (p_.side == 64 ? 4 : p_.panels()); ++part) {
        const llo::MxuUnit u = units_[p_.side == 64 ? unit * 4 + part : unit];
        const int panel = p_.side == 64 ? part / 2 : part;
        const V row = p_.side == 64 ? rows[0] : rows[part];
        if (p_.addressed) b_.emit(p_.mode.accumulate, {u, row, panel, g * p_.entries()});
        else b_.emit(p_.mode.multiply, {u, row, panel});
      }
    }
  }
}

// The results of one row group from one virtual unit: by 8 rows, then by column tiles.
llvm::SmallVector<V, 4> Streamer::popUnit(int unit, int g) {
  llvm::SmallVector<V, 4> out;
  for (int i = 0; i < p_.entries(); ++i) {
    if (p_.side >= 128) {
      out.push_back(asAccumulated(p_.addressed ? b_.v(Opcode::vpop_mrb, {units_[unit], g * p_.entries() + i})
                                               : b_.v(Opcode::vpop_mrf, {units_[unit]})));
      continue;
    }
    V half[2];
    for (int k = 0; k < 2; ++k) {
      if (p_.addressed) {  // each half of the columns in the low lanes of an entry of its own
        const V low = b_.v(Opcode::vpop_mrb, {units_[unit * 4 + k * 2], g * p_.entries() + i});
        const V high = b_.v(Opcode::vpop_mrb, {units_[unit * 4 + k * 2 + 1], g * p_.entries() + i});
        const V moved = e_.xlu(Opcode::vrot_lane, high, 64);
        half[k] = select(lt(I{&e_, e_.lane()}, 64u), I{&e_, low}, I{&e_, moved}).v;
      } else {
        half[k] = b_.vimm(0);  // each pop leaves the other half as it is
        for (int n = 0; n < 2; ++n) b_.emit(Opcode::vpop_mrf_half, {half[k], units_[unit * 4 + k * 2 + n], n});
      }
      half[k] = asAccumulated(half[k]);
    }
    out.push_back(add(half[0], half[1]));
  }
  return out;
}

void Streamer::popGroup(const State& s, int g, M first) {
  const int subs = p_.mode.rows / 8;
  for (int in = 0; in < p_.mn; ++in) {
    llvm::SmallVector<llvm::SmallVector<V, 4>, 4> parts;
    for (int ik = 0; ik < p_.mk; ++ik) parts.push_back(popUnit(ik * p_.mn + in, g));
    for (size_t i = 0; i < parts[0].size(); ++i) {
      // Neighbours first: (p0 + p1) + (p2 + p3).
      llvm::SmallVector<V, 4> sum;
      for (auto& part : parts) sum.push_back(part[i]);
      while (sum.size() > 1) {
        llvm::SmallVector<V, 4> next;
        for (size_t k = 0; k + 1 < sum.size(); k += 2) next.push_back(add(sum[k], sum[k + 1]));
        if (sum.size() % 2) next.push_back(sum.back());
        sum = next;
      }
      const int64_t row = g * subs + static_cast<int64_t>(i) / p_.tile_n, col = in * p_.tile_n + static_cast<int64_t>(i) % p_.tile_n;
      const Addr at{s.acc, (row * accColumns() + col) * kRegisterBytes};
      V v = sum[0];
      if (adds_) v = add(e_.select(first, e_.bits(0), b_.v(Opcode::vld, {at})), v);
      b_.emit(Opcode::vst, {at, v});
    }
  }
}

void Streamer::iteration(const State& now, const State& before, const State& next, bool has_before, bool has_next) {
  for (llo::MxuUnit u : units_) b_.emit(Opcode::vlatch, {u, 0});
  const auto pushes = has_next ? weightPushes(weightBase(next)) : llvm::SmallVector<std::function<void()>, 32>();
  const auto firstMask = [&](const State& s) { return adds_ ? ne(I{&e_, e_.splat(s.first)}, 0u).m : M{}; };
  const M first_now = firstMask(now), first_before = has_before ? firstMask(before) : M{};
  const int total = static_cast<int>(pushes.size());
  for (int g = 0; g < p_.chunk; ++g) {
    const int due = g - p_.lag;
    if (due >= 0) popGroup(now, due, first_now);
    else if (has_before) popGroup(before, p_.chunk + due, first_before);
    multiplyGroup(now, g);
    for (int i = g * total / p_.chunk; i < (g + 1) * total / p_.chunk; ++i) pushes[i]();
  }
}

void Streamer::run() {
  const int64_t total = p_.rowChunks() * p_.nGroups() * p_.kGroups() * static_cast<int64_t>(p_.passes.size());
  State now = newState(), before = newState(), next = newState();
  for (const auto& push : weightPushes(weightBase(now))) push();
  setBases(now);
  if (total > 1) advance(next);
  iteration(now, before, next, false, total > 1);
  const auto step = [&](S) {
    for (auto [to, from] : {std::pair{before.acc, now.acc}, {before.first, now.first}, {now.kk, next.kk}, {now.pass, next.pass},
                            {now.j, next.j}, {now.chunk, next.chunk}})
      b_.emit(Opcode::smov, {to, from});
    setBases(now);
    advance(next);
    iteration(now, before, next, true, true);
  };
  if (total > 1) b_.loop(total - 1, step);
  const M first = adds_ ? ne(I{&e_, e_.splat(now.first)}, 0u).m : M{};
  for (int g = p_.chunk - p_.lag; g < p_.chunk; ++g) popGroup(now, g, first);
}

}  // namespace

void emitDotBlock(Vec& e, const DotPlan& plan, const DotAreas& areas, llo::Scalar k_block) {
  Streamer(e, plan, areas, k_block).run();
}

}  // namespace tpu::lower::emit
