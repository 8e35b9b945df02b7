// Reduction kernels: the producer's expression is evaluated unit by unit and folded into accumulator registers; lanes and
// sublanes are folded at the end.
//
// An accumulator register collects along every reduced axis: where columns are reduced all column tiles of a row fall
// into one register, where rows are reduced all row tiles of a column do. Between grid steps accumulators stand in scratch.
// A combiner that does not commute (a composition, argmax where elements are NaN) sees its elements in their order: each
// register is folded before it meets the accumulator, and only one axis is reduced. Where the elements carry their position,
// it is enough to look at it in the last folds: until then an accumulator's elements meet in their order anyway.
#include <algorithm>
#include <bit>
#include <cassert>
#include <optional>

#include "kernel_body.h"
#include "tpu/isa/layout.h"
#include "tpu/support/diagnostics.h"

namespace tpu::lower {
namespace emit {
namespace {

using Values = llvm::SmallVector<Val, 2>;  // one per reduced value

// The value that changes nothing, for a result that one known op folds; none otherwise: there init counts as such, which
// programs choose so.
std::optional<uint64_t> identityBits(const ReduceSpec& spec, size_t value, ElementType type) {
  const ExprNode& n = spec.combiner[spec.combined[value]];
  const int values = static_cast<int>(spec.combined.size()), own = static_cast<int>(value);
  if (n.kind != ExprNode::kOp || n.args.size() != 2) return std::nullopt;
  const ExprNode &a = spec.combiner[n.args[0]], &b = spec.combiner[n.args[1]];
  if (a.kind != ExprNode::kInput || b.kind != ExprNode::kInput || std::min(a.index, b.index) != own ||
      std::max(a.index, b.index) != own + values)
    return std::nullopt;
  const int bits = type == ElementType::kPred ? 8 : elementBits(type);
  const uint64_t ones = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  const uint64_t top = 1ull << (bits - 1);
  const bool pred = type == ElementType::kPred;
  using hlo::Opcode;
  switch (n.op) {
    case Opcode::add: case Opcode::or_: case Opcode::xor_: return 0;
    case Opcode::multiply: return type == ElementType::kF32 ? 0x3f800000u : type == ElementType::kBF16 ? 0x3f80u : 1;
    case Opcode::and_: return pred ? 1 : ones;
    case Opcode::maximum:
      if (pred || isUnsigned(type)) return 0;
      return type == ElementType::kF32 ? 0xff800000u : type == ElementType::kBF16 ? 0xff80u : top;
    case Opcode::minimum:
      if (pred) return 1;
      if (isUnsigned(type)) return ones;
      return type == ElementType::kF32 ? 0x7f800000u : type == ElementType::kBF16 ? 0x7f80u : top - 1;
    default: return std::nullopt;
  }
}

class Reducer {
 public:
  Reducer(const ReduceSpec& spec, const target::Chip& chip, const std::string& name) : spec_(spec), chip_(chip), name_(name) {}
  llvm::Expected<llo::Kernel> emit();

 private:
  ElementType typeOf(size_t v) const { return spec_.producer.nodes[spec_.producer.outputs[v]].type; }
  size_t values() const { return spec_.producer.outputs.size(); }
  llvm::Error plan();
  void addOutputs();
  bool crossesBlocks() const;
  int accRegisters() const;
  int accOf(int j) const;
  void body();
  Values combine(const Values& a, const Values& b);
  Values combineApart(const Values& a, const Values& b);
  Values identities();
  Val init(size_t v);
  bool constantInit(size_t v) const;
  bool initCounts() const;
  void foldGroup(std::vector<Values>& acc, llvm::ArrayRef<UnitAt> units);
  void finish(std::vector<Values>& acc, const UnitAt& at);
  Values foldLanes(Values x);
  Values foldSublanes(Values x, int from, int to);
  Values foldRegister(Values x);
  Values foldInOrder(Values x);
  template <class F>
  Values moveBy(const Values& x, F move);
  void storeRows(size_t v, const TiledArray& out, Spot spot, llvm::ArrayRef<V> acc);
  void storeRow(size_t v, const TiledArray& out, Spot spot, llvm::ArrayRef<V> acc);
  Spot accSpot(const UnitAt& at, int reg, size_t v);
  void loadAcc(std::vector<Values>& acc, const UnitAt& at);
  void storeAcc(const std::vector<Values>& acc, const UnitAt& at);
  void resetScratch();
  P stepIs(bool last);

  const ReduceSpec& spec_;
  const target::Chip& chip_;
  std::string name_;
  llo::Kernel kernel_;
  TileSpace space_;
  SpaceMap map_;
  int unroll_ = 1;
  size_t first_output_ = 0;           // arrays of results in space_.arrays
  bool rows_reduced_ = false, cols_reduced_ = false;
  bool wide_ = false;
  bool ordered_ = false;
  int position_ = -1;                 // the value that holds positions, where these decide
  std::vector<ExprNode> combiner_;
  Vec* e_ = nullptr;
  KernelBody* body_ = nullptr;
  llvm::SmallVector<int, 6> kept_axes_, reduced_axes_;
  int64_t acc_slots_ = 1;             // kept units of a block
};

// Results are arrays of the space whose reduced dimensions are broadcast ones.
void Reducer::addOutputs() {
  first_output_ = space_.arrays.size();
  int param = static_cast<int>(spec_.producer.inputs.size());
  for (size_t v = 0; v < values(); ++v) {
    TiledArray a;
    a.type = typeOf(v);
    a.param = param++;
    a.output = true;
    for (size_t i = 0; i < space_.leads.size(); ++i) a.lead_broadcast.push_back(space_.axes[i].reduced);
    a.row_broadcast = rows_reduced_;
    a.col_broadcast = cols_reduced_;
    space_.arrays.push_back(a);
  }
  space_.layOut();
}

llvm::Error Reducer::plan() {
  space_ = makeSpace(spec_.producer, spec_.reduced, &map_);
  // Folding one element is nothing.
  space_.axes[space_.rowAxis()].reduced &= space_.rows > 1;
  space_.axes[space_.colAxis()].reduced &= space_.cols > 1;
  rows_reduced_ = space_.axes[space_.rowAxis()].reduced;
  cols_reduced_ = space_.axes[space_.colAxis()].reduced;
  const bool any_order = commutes(spec_);
  if (!any_order) position_ = positionValue(spec_);
  ordered_ = !any_order && position_ < 0;
  assert(any_order || std::count_if(space_.axes.begin(), space_.axes.end(), [](const Axis& a) { return a.reduced; }) <= 1);
  addOutputs();
  unroll_ = unrollFor(spec_.producer, chip_, space_.registers());
  // Accumulators in scratch: at most a block of results in 32-bit registers per value, bounded by a share of VMEM.
  const int64_t share = std::min<int64_t>(chip_.vmem_bytes / 4, 8 << 20);
  if (llvm::Error e = fitBlocks(space_, chip_, unroll_, share, name_)) return e;
  const auto slots = [&] {
    int64_t n = 1;
    for (const Axis& a : space_.axes)
      if (!a.reduced) n *= a.block;
    return n;
  };
  const auto scratch = [&] { return slots() * accRegisters() * static_cast<int64_t>(values()) * kRegisterBytes; };
  // Halve kept axes until the accumulators fit.
  for (size_t i = 0; crossesBlocks() && scratch() > share && i < space_.axes.size();) {
    Axis& a = space_.axes[i];
    if (a.reduced || a.block == 1) ++i;
    else a.block = ceilDiv(a.block, 2);
  }
  space_.placeBlocks();
  acc_slots_ = slots();
  return llvm::Error::success();
}

bool Reducer::crossesBlocks() const {
  for (const Axis& a : space_.axes)
    if (a.reduced && a.blocks() > 1) return true;
  return false;
}

int Reducer::accRegisters() const {
  if (space_.word_tile_rows < 8) return cols_reduced_ ? 1 : space_.registers();
  return (rows_reduced_ ? 1 : space_.K) * (cols_reduced_ ? 1 : space_.H);
}
// The accumulator that register j of a unit goes to.
int Reducer::accOf(int j) const {
  if (space_.word_tile_rows < 8) return cols_reduced_ ? 0 : j;
  const int row = rows_reduced_ ? 0 : j / space_.H, col = cols_reduced_ ? 0 : j % space_.H;
  return row * (cols_reduced_ ? 1 : space_.H) + col;
}

Values Reducer::combine(const Values& a, const Values& b) {
  const size_t n = values();
  std::vector<Val> out = evaluate(*e_, combiner_, spec_.combined, wide_, [&](const ExprNode& node) {
    return static_cast<size_t>(node.index) < n ? a[node.index] : b[node.index - n];
  });
  return Values(out.begin(), out.end());
}

// Of elements that stand in any order.
Values Reducer::combineApart(const Values& a, const Values& b) {
  if (position_ < 0) return combine(a, b);
  const M swap = e_->compare(Opcode::vcmp_lt_s32, asVector(*e_, b[position_]), asVector(*e_, a[position_]));
  Values left, right;
  for (size_t v = 0; v < values(); ++v) {
    const V x = asVector(*e_, a[v]), y = asVector(*e_, b[v]);
    left.push_back(Val::of(e_->select(swap, y, x)));
    right.push_back(Val::of(e_->select(swap, x, y)));
  }
  return combine(left, right);
}

Values Reducer::identities() {
  Values out;
  for (size_t v = 0; v < values(); ++v) {
    const std::optional<uint64_t> bits = identityBits(spec_, v, typeOf(v));
    out.push_back(bits ? Val::of(e_->bits(registerBits(typeOf(v), *bits))) : init(v));
  }
  return out;
}

bool Reducer::constantInit(size_t v) const { return spec_.init_inputs.empty() || spec_.init_inputs[v] < 0; }

Val Reducer::init(size_t v) {
  if (constantInit(v)) return Val::of(e_->bits(registerBits(typeOf(v), spec_.init_bits[v])));
  return Val::of(extractLow(*e_, typeOf(v), e_->splatParam(paramWord(spec_.producer, spec_.init_inputs[v]))));
}

// Whether init is more than the value that the accumulators start from.
bool Reducer::initCounts() const {
  for (size_t v = 0; v < values(); ++v) {
    const std::optional<uint64_t> bits = identityBits(spec_, v, typeOf(v));
    if (bits && (!constantInit(v) || spec_.init_bits[v] != *bits)) return true;
  }
  return false;
}

// Evaluates unrolled units and folds them as a tree, then into the accumulators.
void Reducer::foldGroup(std::vector<Values>& acc, llvm::ArrayRef<UnitAt> units) {
  std::vector<std::vector<Values>> fresh(acc.size());
  for (const UnitAt& at : units) {
    UnitEvaluator unit(*e_, *body_, spec_.producer, map_, at);
    for (int j = 0; j < space_.registers(); ++j) {
      std::vector<Val> x = unit.evaluateRegister(j, false);
      Values value(x.begin(), x.end());
      if (const std::optional<M> valid = unit.inside(j, [](const Axis& a) { return a.reduced; })) {
        const Values none = identities();
        for (size_t v = 0; v < values(); ++v)
          value[v] = Val::of(e_->select(*valid, asVector(*e_, value[v]), asVector(*e_, none[v])));
      }
      fresh[accOf(j)].push_back(ordered_ ? foldInOrder(std::move(value)) : std::move(value));
    }
  }
  for (size_t r = 0; r < acc.size(); ++r) {
    std::vector<Values>& list = fresh[r];
    while (list.size() > 1) {
      std::vector<Values> next;
      for (size_t i = 0; i + 1 < list.size(); i += 2) next.push_back(combine(list[i], list[i + 1]));
      if (list.size() % 2) next.push_back(list.back());
      list = std::move(next);
    }
    const Values sum = combine(acc[r], list[0]);
    for (size_t v = 0; v < values(); ++v)
      e_->code().emit(Opcode::vmov, {V{acc[r][v].v}, asVector(*e_, sum[v])});
  }
}

template <class Move>
Values Reducer::moveBy(const Values& x, Move move) {
  Values out;
  for (const Val& v : x) out.push_back(Val::of(move(asVector(*e_, v))));
  return out;
}

Values Reducer::foldLanes(Values x) {
  const ExprNode& n = combiner_[spec_.combined[0]];
  const bool direct = values() == 1 && n.type == ElementType::kF32 && n.kind == ExprNode::kOp && n.args.size() == 2 &&
                      combiner_[n.args[0]].kind == ExprNode::kInput && combiner_[n.args[1]].kind == ExprNode::kInput &&
                      combiner_[n.args[0]].index != combiner_[n.args[1]].index;
  if (direct) {
    const V v = asVector(*e_, x[0]);
    if (n.op == hlo::Opcode::add) return {Val::of(e_->xlu(Opcode::vadd_xlane_f32, v))};
    if (n.op == hlo::Opcode::maximum) return {Val::of(e_->xlu(Opcode::vmax_xlane_f32, v))};
    if (n.op == hlo::Opcode::minimum) return {Val::of(e_->xlu(Opcode::vmin_xlane_f32, v))};
  }
  for (int shift = 64; shift >= 1; shift /= 2)
    x = combineApart(x, moveBy(x, [&](V v) { return e_->xlu(Opcode::vrot_lane, v, shift); }));
  return x;
}

// Folds sublanes that are a power of two apart, `from` down to (and including) `to`.
Values Reducer::foldSublanes(Values x, int from, int to) {
  for (int shift = from; shift >= to; shift /= 2)
    x = combineApart(x, moveBy(x, [&](V v) { return e_->withImm(Opcode::vrot_sublane, v, shift); }));
  return x;
}

// Folds a register along the reduced axis, neighbours first. The result stands where finish() leaves the one of a
// combiner that commutes: in lane 0 and the first group of sublanes, or in the last sublane of each group of rows.
Values Reducer::foldInOrder(Values x) {
  const int word_rows = space_.word_tile_rows;
  if (cols_reduced_) {
    for (int shift = 1; shift < kLanes && shift < space_.cols; shift *= 2)
      x = combine(x, moveBy(x, [&](V v) { return e_->xlu(Opcode::vrot_lane, v, kLanes - shift); }));
    for (int shift = word_rows; shift < 8; shift *= 2)
      x = combine(x, moveBy(x, [&](V v) { return e_->withImm(Opcode::vrot_sublane, v, 8 - shift); }));
  }
  if (rows_reduced_)
    for (int shift = 1; shift < word_rows; shift *= 2)
      x = combine(moveBy(x, [&](V v) { return e_->withImm(Opcode::vrot_sublane, v, shift); }), x);
  return x;
}

// Results with rows kept and columns reduced: the rows of one column tile.
void Reducer::storeRows(size_t v, const TiledArray& out, Spot spot, llvm::ArrayRef<V> acc) {
  const int per = std::max(1, out.tile_rows / 8);  // row tiles of a tile
  const int words = static_cast<int>(out.tile_bytes / kRowBytes);
  for (size_t i = 0; i < acc.size(); i += per) {
    const V packed = pack(*e_, out.type, out.packed, acc.slice(i, std::min<size_t>(per, acc.size() - i)));
    const Addr at = spot.at(static_cast<int64_t>(i) / per * out.tile_bytes);
    if (words == 8) e_->code().emit(Opcode::vst, {at, packed});
    else e_->code().emit(Opcode::vst_strided, {at, packed, 1, (1 << words) - 1});
  }
}

// Results with rows reduced: a word row per column tile, the value in its low bits.
void Reducer::storeRow(size_t v, const TiledArray& out, Spot spot, llvm::ArrayRef<V> acc) {
  const int per = space_.tilesPerRegister();
  for (size_t i = 0; i < acc.size(); ++i) {
    const V words = out.packing == 1 ? acc[i] : pack(*e_, out.type, Packed::kLow, acc[i]);
    const int tiles = cols_reduced_ ? 1 : per;
    for (int g = 0; g < tiles; ++g) {
      // The last sublane of a group of rows has all of them.
      const int sublane = cols_reduced_ ? 0 : (g + 1) * space_.word_tile_rows - 1;
      e_->code().emit(Opcode::vst_strided, {spot.at((static_cast<int64_t>(i) * tiles + g) * kRowBytes), words, 0, 1 << sublane});
    }
  }
}

Values Reducer::foldRegister(Values x) {
  const int word_rows = space_.word_tile_rows;
  if (cols_reduced_) x = foldLanes(x);
  if (word_rows == 8) return rows_reduced_ ? foldSublanes(x, 4, 1) : x;
  // Groups of rows of different column tiles, then the rows of each group.
  if (cols_reduced_) x = foldSublanes(x, 4, word_rows);
  return rows_reduced_ ? foldSublanes(x, word_rows / 2, 1) : x;
}

void Reducer::finish(std::vector<Values>& acc, const UnitAt& at) {
  for (Values& x : acc) {
    if (ordered_) {
      if (cols_reduced_) x = moveBy(x, [&](V v) { return e_->xlu(Opcode::vbcast_lane, v, 0); });
    } else {
      x = foldRegister(std::move(x));
    }
    if (initCounts()) {
      Values start;
      for (size_t v = 0; v < values(); ++v) start.push_back(init(v));
      x = combine(start, x);
    }
  }
  for (size_t v = 0; v < values(); ++v) {
    const size_t index = first_output_ + v;
    const TiledArray& out = space_.arrays[index];
    llvm::SmallVector<V, 8> registers;
    for (Values& x : acc) registers.push_back(asVector(*e_, x[v]));
    // Without rows to speak of, a row is as good as reduced.
    if (out.row_broadcast) storeRow(v, out, at.spots[index], registers);
    else if (out.col_broadcast) storeRows(v, out, at.spots[index], registers);
    else storeUnit(*e_, space_, out, at.spots[index], registers);
  }
}

Spot Reducer::accSpot(const UnitAt& at, int reg, size_t v) {
  llo::CodeBuilder& b = e_->code();
  // Linear index over the kept axes.
  S index = b.imm(0);
  for (int axis : kept_axes_) {
    if (space_.axes[axis].block == 1) continue;
    index = b.s(Opcode::smul, {index, space_.axes[axis].block});
    const auto& [r, constant] = at.index[axis];
    if (r.id >= 0) index = b.s(Opcode::sadd, {index, r});
    if (constant) index = b.s(Opcode::sadd, {index, constant});
  }
  const int64_t bytes = accRegisters() * static_cast<int64_t>(values()) * kRegisterBytes;
  const S base = b.s(Opcode::sadd, {b.scratch(0), b.s(Opcode::smul, {index, bytes})});
  return {base, (reg * static_cast<int64_t>(values()) + static_cast<int64_t>(v)) * kRegisterBytes};
}

void Reducer::loadAcc(std::vector<Values>& acc, const UnitAt& at) {
  const Spot spot = accSpot(at, 0, 0);
  for (size_t r = 0; r < acc.size(); ++r)
    for (size_t v = 0; v < values(); ++v)
      e_->code().emit(Opcode::vld, {V{acc[r][v].v}, spot.at(static_cast<int64_t>(r * values() + v) * kRegisterBytes)});
}
void Reducer::storeAcc(const std::vector<Values>& acc, const UnitAt& at) {
  const Spot spot = accSpot(at, 0, 0);
  for (size_t r = 0; r < acc.size(); ++r)
    for (size_t v = 0; v < values(); ++v)
      e_->code().emit(Opcode::vst, {spot.at(static_cast<int64_t>(r * values() + v) * kRegisterBytes), V{acc[r][v].v}});
}

// Whether this grid step is the first (or last) along all reduced axes.
P Reducer::stepIs(bool last) {
  llo::CodeBuilder& b = e_->code();
  P all;
  for (int axis : reduced_axes_) {
    const Axis& a = space_.axes[axis];
    if (a.grid < 0) continue;
    const P p = b.p(Opcode::scmp_eq, {b.grid(a.grid), last ? a.blocks() - 1 : 0});
    all = all.id < 0 ? p : b.p(Opcode::pand, {all, p});
  }
  return all;
}

void Reducer::resetScratch() {
  llo::CodeBuilder& b = e_->code();
  b.ifThen(stepIs(false), [&] {
    const Values none = identities();
    b.loop(acc_slots_ * accRegisters(), [&](S i) {
      const S at = b.s(Opcode::sadd, {b.scratch(0), b.s(Opcode::smul, {i, static_cast<int64_t>(values()) * kRegisterBytes})});
      for (size_t v = 0; v < values(); ++v)
        b.emit(Opcode::vst, {Addr{at, static_cast<int64_t>(v) * kRegisterBytes}, asVector(*e_, none[v])});
    });
  });
}

void Reducer::body() {
  llo::CodeBuilder& b = e_->code();
  const bool crosses = crossesBlocks();
  if (crosses) resetScratch();
  const auto newAcc = [&] {
    std::vector<Values> acc(accRegisters());
    for (Values& x : acc)
      for (size_t v = 0; v < values(); ++v) x.push_back(Val::of(b.newV()));
    return acc;
  };
  // Along kept axes one unit at a time, unless the reduced ones are too short to fill the machine.
  int64_t reduced_units = 1;
  for (int axis : reduced_axes_) reduced_units *= space_.axes[axis].block;
  const int kept_unroll = static_cast<int>(std::max<int64_t>(1, unroll_ / reduced_units));
  body_->nestFrom(body_->start(), kept_axes_, kept_unroll, [&](const UnitAt& kept) {
    std::vector<Values> acc = newAcc();
    if (crosses) {
      loadAcc(acc, kept);
    } else {
      const Values none = identities();
      for (Values& x : acc)
        for (size_t v = 0; v < values(); ++v) b.emit(Opcode::vmov, {V{x[v].v}, asVector(*e_, none[v])});
    }
    body_->nestGroups(kept, reduced_axes_, unroll_, [&](llvm::ArrayRef<UnitAt> units) { foldGroup(acc, units); });
    if (crosses) storeAcc(acc, kept);
    else finish(acc, kept);
  });
  if (!crosses) return;
  b.ifThen(stepIs(true), [&] {
    body_->nestFrom(body_->start(), kept_axes_, 1, [&](const UnitAt& kept) {
      std::vector<Values> acc = newAcc();
      loadAcc(acc, kept);
      finish(acc, kept);
    });
  });
}

llvm::Expected<llo::Kernel> Reducer::emit() {
  kernel_.name = name_;
  if (llvm::Error e = plan()) return e;
  addParams(kernel_, spec_.producer, /*outputs=*/false);
  for (size_t v = 0; v < values(); ++v) kernel_.params.push_back({llo::KernelParam::kHbm, "out" + std::to_string(v)});
  space_.buildPipeline(kernel_);
  if (crossesBlocks()) kernel_.scratch.push_back(acc_slots_ * accRegisters() * static_cast<int64_t>(values()) * kRegisterBytes);
  kernel_.vmem_budget = 2 * space_.placeBlocks();
  for (int64_t s : kernel_.scratch) kernel_.vmem_budget += s;
  for (size_t i = 0; i < space_.axes.size(); ++i)
    (space_.axes[i].reduced ? reduced_axes_ : kept_axes_).push_back(static_cast<int>(i));
  // 16-bit floats are accumulated as f32 and rounded by the store.
  combiner_ = spec_.combiner;
  for (size_t v = 0; v < values(); ++v) wide_ |= typeOf(v) == ElementType::kBF16;
  if (wide_)
    for (ExprNode& n : combiner_)
      if (n.type == ElementType::kBF16 && n.kind != ExprNode::kConstant) n.type = ElementType::kF32;
  Vec e(kernel_.code, chip_);
  KernelBody body(e, space_);
  e_ = &e;
  body_ = &body;
  this->body();
  e.finish();
  return std::move(kernel_);
}

}  // namespace
}  // namespace emit

llvm::Expected<llo::Kernel> emitReduce(const ReduceSpec& spec, const target::Chip& chip, const std::string& name) {
  return emit::Reducer(spec, chip, name).emit();
}

}  // namespace tpu::lower
