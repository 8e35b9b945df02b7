// Loop nests over units with addresses kept in registers.
#include "kernel_body.h"

#include <algorithm>

#include "tpu/support/diagnostics.h"

namespace tpu::lower::emit {

KernelBody::KernelBody(Vec& e, const TileSpace& space) : e_(e), space_(space) {
  for (const TiledArray& a : space.arrays) block_base_.push_back(e.code().block(a.block));
  for (size_t i = 0; i < space.axes.size(); ++i) start_.push_back(space.blockStart(e.code(), static_cast<int>(i)));
}

UnitAt KernelBody::start() const {
  UnitAt at;
  for (S s : block_base_) at.spots.push_back({s, 0});
  at.index.assign(space_.axes.size(), {S{}, 0});
  return at;
}

UnitAt KernelBody::advanced(const UnitAt& at, int axis, S index, int step) {
  UnitAt next = at;
  llo::CodeBuilder& b = e_.code();
  std::vector<std::pair<int64_t, S>> scaled;  // index * bytes, shared by arrays of the same stride
  for (size_t a = 0; a < space_.arrays.size(); ++a) {
    const int64_t bytes = space_.arrays[a].vmem_stride[axis] * step;
    if (bytes == 0) continue;
    S offset;
    for (const auto& [n, s] : scaled)
      if (n == bytes) offset = s;
    if (offset.id < 0) {
      offset = (bytes & (bytes - 1)) == 0 ? b.s(Opcode::sshl, {index, __builtin_ctzll(static_cast<uint64_t>(bytes))})
                                          : b.s(Opcode::smul, {index, bytes});
      scaled.push_back({bytes, offset});
    }
    next.spots[a].base = b.s(Opcode::sadd, {at.spots[a].base, offset});
  }
  next.index[axis].first = step == 1 ? index : b.s(Opcode::smul, {index, step});
  return next;
}

UnitAt KernelBody::moved(const UnitAt& at, int axis, int by) const {
  UnitAt next = at;
  for (size_t a = 0; a < space_.arrays.size(); ++a) next.spots[a].offset += space_.arrays[a].vmem_stride[axis] * by;
  next.index[axis].second += by;
  return next;
}

void KernelBody::nestGroups(const UnitAt& from, llvm::ArrayRef<int> order, int unroll,
                            llvm::function_ref<void(llvm::ArrayRef<UnitAt>)> visit) {
  while (!order.empty() && space_.axes[order.front()].block == 1) order = order.drop_front();
  while (!order.empty() && space_.axes[order.back()].block == 1) order = order.drop_back();
  if (order.empty()) {
    visit({from});
    return;
  }
  const int axis = order.front();
  const int64_t trips = space_.axes[axis].block;
  if (order.size() > 1) {
    e_.code().loop(trips, [&](S i) { nestGroups(advanced(from, axis, i, 1), order.drop_front(), unroll, visit); });
    return;
  }
  const int u = space_.unrollOf(axis, unroll);
  const auto group = [&](const UnitAt& at) {
    std::vector<UnitAt> units;
    for (int k = 0; k < u; ++k) units.push_back(moved(at, axis, k));
    visit(units);
  };
  if (trips == u) group(from);
  else e_.code().loop(trips / u, [&](S i) { group(advanced(from, axis, i, u)); });
}

void KernelBody::nestFrom(const UnitAt& from, llvm::ArrayRef<int> order, int unroll,
                          llvm::function_ref<void(const UnitAt&)> visit) {
  nestGroups(from, order, unroll, [&](llvm::ArrayRef<UnitAt> units) {
    for (const UnitAt& at : units) visit(at);
  });
}

S KernelBody::globalIndex(const UnitAt& at, int axis) {
  llo::CodeBuilder& b = e_.code();
  const auto& [reg, constant] = at.index[axis];
  const llo::Scalar& start = start_[axis];
  if (reg.id < 0 && !start.is_reg) return b.imm(constant);
  S s = reg.id >= 0 ? reg : S{start.reg};
  if (reg.id >= 0 && start.is_reg) s = b.s(Opcode::sadd, {s, S{start.reg}});
  return constant ? b.s(Opcode::sadd, {s, constant}) : s;
}

bool looksAtWholeRegisters(const LoopSpec& spec) {
  return std::any_of(spec.nodes.begin(), spec.nodes.end(), [](const ExprNode& n) {
    if (n.kind != ExprNode::kOp) return false;
    return isFloat(n.type) ? n.op == hlo::Opcode::remainder : n.op == hlo::Opcode::power;
  });
}

UnitEvaluator::UnitEvaluator(Vec& e, KernelBody& body, const LoopSpec& spec, const SpaceMap& map, const UnitAt& at)
    : e_(e), body_(body), spec_(spec), map_(map), at_(at) {
  size_t array = 0;
  for (const InputSpec& in : spec.inputs) {
    if (in.scalar) {
      loaders_.push_back(nullptr);
      continue;
    }
    loaders_.push_back(std::make_unique<UnitLoader>(e, body.space(), body.space().arrays[array], at.spots[array]));
    ++array;
  }
  joint_ = looksAtWholeRegisters(spec);
}

std::optional<M> UnitEvaluator::inside(int j, llvm::function_ref<bool(const Axis&)> wanted) {
  const TileSpace& s = body_.space();
  std::optional<M> all;
  const auto require = [&](B x) { all = all ? (B{&e_, *all} & x).m : x.m; };
  const Axis &row = s.axes[s.rowAxis()], &col = s.axes[s.colAxis()];
  if (wanted(col) && col.blocks() * col.block * s.H * kLanes != s.cols) require(lt(colIndex(j), static_cast<uint32_t>(s.cols)));
  const int64_t padded_rows = s.word_tile_rows < 8 ? s.word_tile_rows : row.blocks() * row.block * s.K * 8;
  if (wanted(row) && padded_rows != s.rows) require(lt(rowIndex(j), static_cast<uint32_t>(s.rows)));
  for (int i = 0; i < s.rowAxis(); ++i)
    if (wanted(s.axes[i]) && s.axes[i].blocks() * s.axes[i].block != s.axes[i].size)
      require(lt(I{&e_, e_.splat(body_.globalIndex(at_, i))}, static_cast<uint32_t>(s.axes[i].size)));
  return all;
}

std::vector<Val> UnitEvaluator::evaluateRegister(int j, bool wide) {
  if (joint_) e_.existing = inside(j, [](const Axis&) { return true; });
  std::vector<Val> out = evaluate(e_, spec_.nodes, spec_.outputs, wide, [&](const ExprNode& n) {
    if (n.kind == ExprNode::kIota) return iota(n, j);
    if (spec_.inputs[n.index].scalar) return Val::of(extractLow(e_, n.type, e_.splatParam(paramWord(spec_, n.index))));
    return Val::of(loaders_[n.index]->load(j));
  });
  e_.existing.reset();
  return out;
}

I UnitEvaluator::rowIndex(int j) {
  const TileSpace& s = body_.space();
  const I sublane{&e_, e_.sublane()};
  if (s.word_tile_rows < 8) return sublane & static_cast<uint32_t>(s.word_tile_rows - 1);
  const I first{&e_, e_.splat(e_.code().s(Opcode::smul, {body_.globalIndex(at_, s.rowAxis()), s.K * 8}))};
  const int tile = j / s.H;
  return first + (tile ? sublane + static_cast<uint32_t>(8 * tile) : sublane);
}

I UnitEvaluator::colIndex(int j) {
  const TileSpace& s = body_.space();
  const I lane{&e_, e_.lane()};
  const I first{&e_, e_.splat(e_.code().s(Opcode::smul, {body_.globalIndex(at_, s.colAxis()), s.H * kLanes}))};
  if (s.word_tile_rows == 8) {
    const int tile = j % s.H;
    return first + (tile ? lane + static_cast<uint32_t>(kLanes * tile) : lane);
  }
  const int shift = s.word_tile_rows == 4 ? 2 : s.word_tile_rows == 2 ? 1 : 0;
  const I sublane{&e_, e_.sublane()};
  const I tile = (shift ? sublane >> static_cast<uint32_t>(shift) : sublane) + static_cast<uint32_t>(j * s.tilesPerRegister());
  return first + ((tile << 7u) + lane);
}

Val UnitEvaluator::iota(const ExprNode& n, int j) {
  const int axis = map_.axis_of_dim[n.index];
  I x{&e_, V{}};
  if (axis < 0) x.v = e_.bits(0);
  else if (axis == body_.space().colAxis()) x = colIndex(j);
  else if (axis == body_.space().rowAxis()) x = rowIndex(j);
  else x.v = e_.splat(body_.globalIndex(at_, axis));
  ExprNode to;
  to.op = hlo::Opcode::convert;
  to.type = n.type;
  return applyOp(e_, to, {Val::of(x.v)}, {ElementType::kS32}, false);
}

void addParams(llo::Kernel& kernel, const LoopSpec& spec, bool outputs) {
  for (size_t i = 0; i < spec.inputs.size(); ++i)
    kernel.params.push_back({spec.inputs[i].scalar ? llo::KernelParam::kSmem : llo::KernelParam::kHbm, "in" + std::to_string(i)});
  if (!outputs) return;
  for (size_t i = 0; i < spec.outputs.size(); ++i)
    kernel.params.push_back({spec.shape.empty() ? llo::KernelParam::kSmem : llo::KernelParam::kHbm, "out" + std::to_string(i)});
}

int paramWord(const LoopSpec& spec, int input) {
  int word = 0;
  for (int i = 0; i < input; ++i) word += spec.inputs[i].scalar ? 1 : 2;
  return word;
}

// Rough instruction count of an op.
static int weightOf(const ExprNode& n) {
  if (n.kind != ExprNode::kOp) return 0;
  const bool is_float = isFloat(n.type);
  using hlo::Opcode;
  switch (n.op) {
    case Opcode::sine: case Opcode::cosine: case Opcode::tan: case Opcode::power: case Opcode::atan2: return 120;
    case Opcode::cbrt: case Opcode::log_plus_one: case Opcode::tanh: case Opcode::chlo_erf: case Opcode::logistic: return 60;
    case Opcode::exponential: case Opcode::exponential_minus_one: case Opcode::log: case Opcode::sqrt:
    case Opcode::rsqrt: return 25;
    case Opcode::divide: case Opcode::remainder: return is_float ? 30 : 40;
    default: return 1;
  }
}

int unrollFor(const LoopSpec& spec, const target::Chip& chip, int registers) {
  if (chip.vector_regs < 32) return 1;
  int weight = 0;
  for (const ExprNode& n : spec.nodes) weight += weightOf(n);
  const int wanted = weight > 20 ? 4 : 8;
  return std::max(1, wanted / registers);
}

llvm::Error fitBlocks(TileSpace& space, const target::Chip& chip, int unroll, int64_t extra, const std::string& name) {
  // Blocks long enough that a transfer's latency does not count, short enough that filling and draining the pipeline
  // does not: a hundredth of the whole array, within limits.
  int64_t largest = 0;
  for (Axis& a : space.axes) a.block = a.size;
  space.placeBlocks();
  for (const TiledArray& a : space.arrays) largest = std::max(largest, a.vmem_bytes);
  const int64_t target = std::clamp<int64_t>(largest / 64, 512 << 10, 2 << 20);
  // Few registers mean many spilled ones, which want room too.
  const int64_t share = std::min<int64_t>(chip.vmem_bytes / 4 * (chip.vector_regs >= 32 ? 3 : 2), 48 << 20);
  if (space.chooseBlocks(share - extra, target, unroll)) return llvm::Error::success();
  // The smallest blocks in one slot each.
  if (space.placeBlocks() + extra > largestShare(chip))
    return fail(Code::kKernelTooLarge, "", "kernel " + name + ": its smallest blocks need " +
                llvm::Twine(space.placeBlocks() + extra) + " bytes of VMEM, the chip has " + llvm::Twine(chip.vmem_bytes),
                ExitStatus::kDoesNotFit);
  return llvm::Error::success();
}

}  // namespace tpu::lower::emit
