#include "pipeline.h"

#include <algorithm>

#include "motion.h"
#include "tpu/isa/dma.h"

namespace tpu::schedule {

using isa::Opcode;
using llo::Addr;
using llo::Arg;
using llo::P;
using llo::S;

namespace {

/// One transfer of a block: its descriptor, and the extents that shrink at the grid's edge.
struct TransferState {
  const llo::Transfer* transfer;
  int64_t descriptor;
  std::vector<uint32_t> words = {};  // of a shared descriptor: what is written at the start of the kernel
};
struct BlockState {
  const llo::PipelineBlock* block;
  Motion motion;
  bool in_rows = false;  // offsets count rows of 512 bytes in the descriptor's base word
  bool edges = false;    // bytes differ between steps
  int64_t bytes = 0;     // moved per step where !edges
  int32_t sem = -1;
  llvm::SmallVector<int64_t, 3> slots;
  S offset;          // of the step to be moved next: rows, or bytes
  S slot;            // VMEM address of the body's slot; no id: constant
  S into;            // three slots: of the one that is fetched into next
  S moved, pending;  // edges: bytes of the transfer started last, of the one not waited for
  S after;           // edges, two ahead: of the one after that
  P fetched;         // inputs that do not move every step: step s was fetched for
  P coming;          // two ahead: step s+1 was
  P in_flight;       // outputs: a write-back is not waited for
  std::vector<TransferState> transfers;
  bool out() const { return block->direction == llo::Direction::kOut; }
  bool double_buffered() const { return slots.size() > 1; }
};

class KernelExpander {
 public:
  KernelExpander(Context& ctx, const Callee& callee, const VmemPlan& plan)
      : ctx_(ctx),
        kernel_(ctx.module.kernels[callee.kernel]),
        callee_(callee),
        plan_(plan),
        b_(func_),
        dims_(activeDims(kernel_)) {}

  Func run(int32_t call_locs);

 private:
  void initBlock(int index);
  void makeDescriptors(BlockState& s);
  void initDescriptors(BlockState& s);
  /// Indices of a step ahead of the body's: of the next one, or of the one that is fetched.
  struct Ahead {
    std::vector<S> index;  // by active dimension
    std::vector<P> wrap;   // wrap[d]: the step wrapped dimensions d.. (inner ones included)
  };
  Ahead newAhead();
  void advanceIndices(const Ahead& a);
  void advanceOffset(BlockState& s, const Ahead& a);
  /// The predicate "the step just computed moves this block"; without id: always.
  Guard movesGuard(const BlockState& s, const Ahead& a, bool wants_next);
  Guard withinGrid(Guard moves);
  Arg edgeExtent(const std::vector<S>& at, int grid, int64_t edge, int64_t full);
  Arg indexOf(const std::vector<S>& at, int grid);
  void startTransfers(BlockState& s, Arg slot, Guard guard, const std::vector<S>& at);
  void waitFor(const BlockState& s, Arg bytes, Guard guard) {
    if (s.sem >= 0) b_.emit(Opcode::sem_wait, {s.sem, bytes}, guard);
  }
  void fetch(BlockState& s, Guard guard, const std::vector<S>& at, bool first);
  void fetchSecond();
  void advanceFetched();
  void takeFetched(BlockState& s, Guard moved);
  void writeBack(BlockState& s);
  void rotate(const BlockState& s, S slot, Guard guard);
  void step();
  void body();
  void runCompanion(size_t c);
  void companions();

  Context& ctx_;
  const llo::Kernel& kernel_;
  const Callee& callee_;
  const VmemPlan& plan_;
  Func func_;
  FuncBuilder b_;
  std::vector<ActiveDim> dims_;
  std::vector<BlockState> blocks_;
  std::vector<S> current_;        // indices of the body's step, by active dimension
  Ahead next_, fetched_;          // the step after it, and where two ahead the one after that
  P beyond_;                      // two ahead: that step is beyond the grid
  std::vector<P> done_;           // by companion
  bool single_ = false;           // one grid step
  int64_t used_descriptors_ = 0;  // of the shared area
};

int64_t transferBytes(const llo::Transfer& t) {
  return t.run * t.dims[0].count * t.dims[1].count * t.dims[2].count;
}

bool hasEdges(const llo::Kernel& kernel, const llo::Transfer& t) {
  auto live = [&](int grid) { return grid >= 0 && kernel.grid[grid] > 1; };
  return live(t.run_edge_grid) || live(t.dims[0].edge_grid) || live(t.dims[1].edge_grid) ||
         live(t.dims[2].edge_grid);
}

// Extents on a grid dimension of one index are always the edge's.
llo::Transfer resolved(const llo::Kernel& kernel, llo::Transfer t) {
  auto resolve = [&](int grid, int64_t edge, int64_t& extent) {
    if (grid >= 0 && kernel.grid[grid] <= 1) extent = edge;
  };
  resolve(t.run_edge_grid, t.run_edge, t.run);
  for (llo::TransferDim& d : t.dims) resolve(d.edge_grid, d.edge_count, d.count);
  return t;
}

void KernelExpander::initBlock(int index) {
  BlockState s;
  s.block = &kernel_.blocks[index];
  s.motion = motionOf(*s.block, dims_);
  s.slots = plan_.slots[index];
  s.sem = ctx_.module.num_sems + index;
  ctx_.sems_used = std::max(ctx_.sems_used, s.sem + 1);
  s.in_rows =
      std::all_of(s.motion.delta.begin(), s.motion.delta.end(), [](int64_t d) { return d % 512 == 0; });
  for (const llo::Transfer& t : s.block->transfers) {
    s.edges |= hasEdges(kernel_, t);
    s.bytes += transferBytes(resolved(kernel_, t));
  }
  makeDescriptors(s);
  blocks_.push_back(std::move(s));
}

void KernelExpander::makeDescriptors(BlockState& s) {
  for (const llo::Transfer& original : s.block->transfers) {
    const llo::Transfer t = resolved(kernel_, original);
    std::vector<uint32_t> w(isa::kDmaWords, 0);
    const uint32_t hbm = static_cast<uint32_t>(isa::Space::kHbm),
                   vmem = static_cast<uint32_t>(isa::Space::kVmem);
    const uint32_t sem = static_cast<uint32_t>(s.sem);
    w[isa::kDmaSpaces] = s.out() ? vmem | hbm << 8 : hbm | vmem << 8;
    w[isa::kDmaSems] = s.out() ? sem | isa::kNoSemaphore << 16 : isa::kNoSemaphore | sem << 16;
    w[isa::kDmaDevice] = isa::kThisDevice;
    w[s.out() ? isa::kDmaSrcOffset : isa::kDmaDstOffset] = static_cast<uint32_t>(s.slots[0] + t.vmem_offset);
    w[isa::kDmaRun] = static_cast<uint32_t>(t.run);
    for (int k = 0; k < 3; ++k) {
      const llo::TransferDim& d = t.dims[k];
      w[isa::kDmaCount1 + 3 * k] = static_cast<uint32_t>(d.count);
      w[isa::kDmaSrcStride1 + 3 * k] = static_cast<uint32_t>(s.out() ? d.vmem_stride : d.hbm_stride);
      w[isa::kDmaDstStride1 + 3 * k] = static_cast<uint32_t>(s.out() ? d.hbm_stride : d.vmem_stride);
    }
    if (ctx_.shared_descriptors < 0) {
      s.transfers.push_back({&original, ctx_.placeDescriptor(w, true)});
    } else {
      s.transfers.push_back({&original, ctx_.sharedDescriptor(++used_descriptors_)});
      s.transfers.back().words = std::move(w);
    }
  }
}

// Puts the parameter's address into the descriptors and loads the running offset.
void KernelExpander::initDescriptors(BlockState& s) {
  const int64_t word = ctx_.params + 4 * paramWords(kernel_)[s.block->param];
  const S row = b_.s(Opcode::sld, {Addr{{}, word}});
  const S bytes = b_.s(Opcode::sld, {Addr{{}, word + 4}});
  const int base = s.out() ? isa::kDmaDstBase : isa::kDmaSrcBase;
  s.offset = b_.newS();
  b_.setReg(s.offset, s.in_rows ? row : bytes);
  for (TransferState& t : s.transfers) {
    for (size_t k = 0; k < t.words.size(); ++k)
      b_.emit(Opcode::sst, {Addr{{}, t.descriptor + 4 * static_cast<int64_t>(k)},
                            b_.imm(static_cast<int32_t>(t.words[k]))});
    if (!s.in_rows) {
      b_.emit(Opcode::sst, {Addr{{}, t.descriptor + 4 * base}, row});
      continue;
    }
    S at = bytes;
    if (t.transfer->hbm_offset != 0) at = b_.s(Opcode::sadd, {bytes, t.transfer->hbm_offset});
    b_.emit(Opcode::sst, {Addr{{}, t.descriptor + 4 * (base + 1)}, at});
  }
}

KernelExpander::Ahead KernelExpander::newAhead() {
  Ahead a;
  for (size_t d = 0; d < dims_.size(); ++d) {
    a.index.push_back(b_.imm(0));
    a.wrap.push_back(b_.newP());
  }
  return a;
}

// One step further; wrap[d] says that dimensions d and inner ones went back to 0.
void KernelExpander::advanceIndices(const Ahead& a) {
  for (size_t d = dims_.size(); d-- > 0;) {
    const bool inner = d + 1 == dims_.size();
    const Guard carry = inner ? Guard{} : Guard{a.wrap[d + 1].id, false};
    b_.emit(Opcode::sadd, {a.index[d], a.index[d], 1}, carry);
    b_.emit(Opcode::scmp_eq, {a.wrap[d], a.index[d], dims_[d].size});
    b_.emit(Opcode::smov, {a.index[d], 0}, {a.wrap[d].id, false});
  }
}

void KernelExpander::advanceOffset(BlockState& s, const Ahead& a) {
  const int64_t unit = s.in_rows ? 512 : 1;
  const size_t n = dims_.size();
  int64_t before = 0;
  for (size_t d = n; d-- > 0;) {
    const int64_t more = s.motion.delta[d] - before;
    before = s.motion.delta[d];
    const Guard guard = d + 1 == n ? Guard{} : Guard{a.wrap[d + 1].id, false};
    if (more != 0) b_.emit(Opcode::sadd, {s.offset, s.offset, more / unit}, guard);
  }
}

// A step advances dimension d when wrap[d+1] holds and wrap[d] does not. With `wants_next` the wrap of all
// dimensions (no next step) gives false, else true: outputs are written at the end.
Guard KernelExpander::movesGuard(const BlockState& s, const Ahead& a, bool wants_next) {
  const std::vector<P>& wrap = a.wrap;
  const size_t n = dims_.size();
  const std::vector<int64_t>& delta = s.motion.delta;
  size_t innermost = n;  // outermost dimensions 0..k move it, and none inside
  while (innermost > 0 && delta[innermost - 1] == 0) --innermost;
  bool prefix = true;
  for (size_t d = 0; d < innermost; ++d) prefix &= delta[d] != 0;
  if (prefix && innermost == n) return wants_next ? Guard{wrap[0].id, true} : Guard{};
  if (prefix && !wants_next) return {wrap[innermost].id, false};
  if (prefix) {
    const P moves = b_.p(Opcode::pmov, {wrap[innermost]});
    b_.emit(Opcode::pset, {moves, 0}, {wrap[0].id, false});
    return {moves.id, false};
  }
  const P moves = wants_next ? b_.p(Opcode::pset, {0}) : b_.p(Opcode::pmov, {wrap[0]});
  for (size_t d = 0; d < n; ++d) {
    if (delta[d] == 0) continue;
    const P level = d + 1 < n ? b_.p(Opcode::pmov, {wrap[d + 1]}) : b_.p(Opcode::pset, {1});
    b_.emit(Opcode::pset, {level, 0}, {wrap[d].id, false});
    b_.emit(Opcode::por, {moves, moves, level});
  }
  return {moves.id, false};
}

// Two steps ahead, nothing is fetched any more when the grid has been through once.
Guard KernelExpander::withinGrid(Guard moves) {
  if (!plan_.two_ahead) return moves;
  if (moves.negated) return {beyond_.id, true};  // moves with every step
  const P within = b_.p(Opcode::pmov, {P{moves.id}});
  b_.emit(Opcode::pset, {within, 0}, {beyond_.id, false});
  return {within.id, false};
}

Arg KernelExpander::indexOf(const std::vector<S>& at, int grid) {
  for (size_t d = 0; d < dims_.size(); ++d)
    if (dims_[d].index == grid) return at[d];
  return 0;
}

// The extent at the moved step: shorter on the last index of the grid dimension.
Arg KernelExpander::edgeExtent(const std::vector<S>& at, int grid, int64_t edge, int64_t full) {
  const Arg index = indexOf(at, grid);
  const P last = b_.p(Opcode::scmp_eq, {index, kernel_.grid[grid] - 1});
  const S value = b_.imm(edge);
  return b_.s(Opcode::ssel, {last, value, full});
}

// Patches what changes and starts the block's transfers; s.moved gets the bytes where they differ between
// steps.
void KernelExpander::startTransfers(BlockState& s, Arg slot, Guard guard, const std::vector<S>& at_step) {
  const int hbm_base = s.out() ? isa::kDmaDstBase : isa::kDmaSrcBase;
  const int vmem_word = s.out() ? isa::kDmaSrcOffset : isa::kDmaDstOffset;
  S total;
  for (TransferState& t : s.transfers) {
    const llo::Transfer fixed = resolved(kernel_, *t.transfer);
    auto word = [&](int w) { return Addr{{}, t.descriptor + 4 * w}; };
    if (s.in_rows) {
      b_.emit(Opcode::sst, {word(hbm_base), s.offset});
    } else {
      S at = s.offset;
      if (fixed.hbm_offset != 0) at = b_.s(Opcode::sadd, {s.offset, fixed.hbm_offset});
      b_.emit(Opcode::sst, {word(hbm_base + 1), at});
    }
    if (slot.o.kind == isa::Operand::kReg) {
      S at{slot.o.reg};
      if (fixed.vmem_offset != 0) at = b_.s(Opcode::sadd, {at, fixed.vmem_offset});
      b_.emit(Opcode::sst, {word(vmem_word), at});
    }
    if (s.edges) {
      S bytes = b_.imm(1);
      auto extent = [&](int grid, int64_t edge, int64_t full, int w) {
        if (grid < 0 || kernel_.grid[grid] <= 1) {
          if (full != 1) bytes = b_.s(Opcode::smul, {bytes, full});
          return;
        }
        const Arg value = edgeExtent(at_step, grid, edge, full);
        b_.emit(Opcode::sst, {word(w), value});
        bytes = b_.s(Opcode::smul, {bytes, value});
      };
      extent(fixed.run_edge_grid, fixed.run_edge, fixed.run, isa::kDmaRun);
      for (int k = 0; k < 3; ++k)
        extent(fixed.dims[k].edge_grid, fixed.dims[k].edge_count, fixed.dims[k].count,
               isa::kDmaCount1 + 3 * k);
      total = total.id < 0 ? bytes : b_.s(Opcode::sadd, {total, bytes});
    }
    b_.emit(Opcode::dma_start, {t.descriptor}, guard).fetch = !s.out() && s.double_buffered();
  }
  if (s.edges) b_.emit(Opcode::smov, {s.moved, total}, guard);
}

// Starts the transfers of the step that has the indices `at`, the first one or a later one.
void KernelExpander::fetch(BlockState& s, Guard guard, const std::vector<S>& at, bool first) {
  Arg slot = s.slots[0];
  // The first fetch of a later call finds the descriptor as the last call left it.
  if (first && s.double_buffered()) slot = b_.imm(s.slots[0]);
  if (!first && s.slots.size() == 2) slot = b_.s(Opcode::sxor, {s.slot, s.slots[0] ^ s.slots[1]});
  if (!first && s.slots.size() == 3) slot = s.into;
  startTransfers(s, slot, guard, at);
  if (!first && s.slots.size() == 3) rotate(s, s.into, guard);
}

// Moves an address on to the block's next slot.
void KernelExpander::rotate(const BlockState& s, S slot, Guard guard) {
  if (s.slots.size() == 2) b_.emit(Opcode::sxor, {slot, slot, s.slots[0] ^ s.slots[1]}, guard);
  if (s.slots.size() != 3) return;
  const int64_t bytes = s.slots[1] - s.slots[0];
  b_.emit(Opcode::sadd, {slot, slot, bytes}, guard);
  const P end = b_.p(Opcode::scmp_eq, {slot, s.slots[2] + bytes});
  b_.emit(Opcode::smov, {slot, s.slots[0]}, {end.id, false});
}

// Two ahead: before the loop, what step 1 needs is fetched behind what step 0 needs.
void KernelExpander::fetchSecond() {
  advanceIndices(fetched_);
  for (BlockState& s : blocks_) {
    if (s.out() || !s.motion.moves()) continue;
    const Guard moves = movesGuard(s, fetched_, true);
    advanceOffset(s, fetched_);
    if (s.edges) {
      s.after = b_.newS();
      b_.setReg(s.after, s.moved);
    }
    fetch(s, moves, fetched_.index, false);
    if (s.fetched.id >= 0) s.coming = b_.p(Opcode::pmov, {P{moves.id}});
  }
}

// Two ahead: the step that was fetched becomes the next one, and the one after it is fetched.
void KernelExpander::advanceFetched() {
  for (size_t d = 0; d < dims_.size(); ++d) {
    b_.setReg(next_.index[d], fetched_.index[d]);
    b_.emit(Opcode::pmov, {next_.wrap[d], fetched_.wrap[d]});
  }
  advanceIndices(fetched_);
  b_.emit(Opcode::pset, {beyond_, 1}, {fetched_.wrap[0].id, false});
}

// After the body: the slot of the next step, and whether its block is still to be waited for.
void KernelExpander::takeFetched(BlockState& s, Guard moved) {
  if (!plan_.two_ahead) {
    rotate(s, s.slot, moved);
    if (s.fetched.id < 0) return;
    b_.emit(Opcode::pmov, {s.fetched, P{moved.id}});
    if (moved.negated) b_.emit(Opcode::pxor, {s.fetched, s.fetched, P{moved.id}});
    return;
  }
  rotate(s, s.slot, s.coming.id >= 0 ? Guard{s.coming.id, false} : Guard{});
  if (s.fetched.id < 0) return;
  b_.emit(Opcode::pmov, {s.fetched, s.coming});
  b_.emit(Opcode::pmov, {s.coming, P{moved.id}});
}

// After the body: the block is written where the next step moves away from it, or the grid ends. Of two
// slots, the one that the next step fills was written back one move earlier, so that transfer is waited for.
void KernelExpander::writeBack(BlockState& s) {
  const Guard guard = single_ ? Guard{} : movesGuard(s, next_, false);
  const Arg slot = s.double_buffered() ? Arg(s.slot) : Arg(s.slots[0]);
  startTransfers(s, slot, guard, current_);
  const Arg now = s.edges ? Arg(s.moved) : Arg(s.bytes);
  if (!s.double_buffered()) {
    waitFor(s, now, guard);
  } else {
    Guard wait{s.in_flight.id, false};
    if (guard.id >= 0) {
      const P both = b_.p(Opcode::pmov, {s.in_flight});
      b_.emit(Opcode::pset, {both, 0}, {guard.id, !guard.negated});
      wait = {both.id, false};
    }
    waitFor(s, s.edges ? Arg(s.pending) : now, wait);
    if (s.edges) b_.emit(Opcode::smov, {s.pending, s.moved}, guard);
    b_.emit(Opcode::pset, {s.in_flight, 1}, guard);
    rotate(s, s.slot, guard);
  }
  if (!single_) advanceOffset(s, next_);
}

void KernelExpander::body() {
  KernelValues values;
  values.kernel = &kernel_;
  for (size_t g = 0; g < kernel_.grid.size(); ++g)
    values.grid.push_back(indexOf(current_, static_cast<int>(g)));
  for (const BlockState& s : blocks_)
    values.blocks.push_back(s.double_buffered() ? Arg(s.slot) : Arg(s.slots[0]));
  for (int64_t a : plan_.scratch) values.scratch.push_back(a);
  const auto step_companions = [this] { companions(); };
  values.companions = step_companions;
  Expander(ctx_, b_, nullptr, &values).run(kernel_.code, 0);
  b_.setOp(0);
}

void KernelExpander::runCompanion(size_t c) {
  const llo::Companion& companion = ctx_.module.companions[callee_.companions[c]];
  Expander e(ctx_, b_, nullptr, nullptr);
  e.run(companion.step, appendLocs(func_, companion.step));
  b_.setOp(0);
  b_.emit(Opcode::pmov, {done_[c], e.pred(companion.done)});
}

void KernelExpander::companions() {
  for (size_t c = 0; c < callee_.companions.size(); ++c) {
    const int skip = b_.newLabel();
    b_.branchTo(skip, {done_[c].id, false});
    runCompanion(c);
    b_.place(skip);
  }
}

// One step, from the fetches of the next one to the swap of slots.
void KernelExpander::step() {
  std::vector<std::pair<BlockState*, Guard>> late;  // inputs with one slot: fetched after the body
  std::vector<Guard> moved(blocks_.size());
  if (!single_) {
    if (plan_.two_ahead)
      advanceFetched();
    else
      advanceIndices(next_);
    const Ahead& ahead = plan_.two_ahead ? fetched_ : next_;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      BlockState& s = blocks_[i];
      if (s.out() || !s.motion.moves()) continue;
      moved[i] = withinGrid(movesGuard(s, ahead, true));
      advanceOffset(s, ahead);
      if (s.after.id >= 0) b_.setReg(s.pending, s.after);
      if (s.edges && s.double_buffered()) b_.setReg(s.after.id >= 0 ? s.after : s.pending, s.moved);
      if (s.double_buffered())
        fetch(s, moved[i], ahead.index, false);
      else
        late.push_back({&s, moved[i]});
    }
  }
  for (BlockState& s : blocks_) {
    if (s.out() || (!single_ && !s.motion.moves())) continue;
    const Arg bytes = !s.edges                          ? Arg(s.bytes)
                      : !single_ && s.double_buffered() ? Arg(s.pending)
                                                        : Arg(s.moved);
    waitFor(s, bytes, s.fetched.id >= 0 ? Guard{s.fetched.id, false} : Guard{});
  }
  if (!llo::hasHook(kernel_.code)) companions();
  body();
  for (auto& [s, guard] : late) fetch(*s, guard, next_.index, false);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    BlockState& s = blocks_[i];
    if (s.out()) {
      if (single_ || s.motion.moves()) writeBack(s);
      continue;
    }
    if (single_ || !s.motion.moves()) continue;
    takeFetched(s, moved[i]);
  }
  for (size_t d = 0; d < dims_.size(); ++d) b_.setReg(current_[d], next_.index[d]);
}

Func KernelExpander::run(int32_t call_locs) {
  func_.name = kernel_.name;
  func_.op_locs = call_locs >= 0 ? ctx_.module.call_locs[call_locs] : kernel_.code.op_locs;
  func_.entered_by_call = true;
  func_.kernel = callee_.kernel;
  single_ = dims_.empty();
  isa::Instruction save;
  save.op = Opcode::sst;
  save.num_operands = 2;
  save.operands[0] = Arg(Addr{{}, ctx_.link_word}).o;
  save.operands[1] = physicalScalar(ctx_.linkRegister());
  b_.append(save);
  for (size_t i = 0; i < kernel_.blocks.size(); ++i) initBlock(static_cast<int>(i));
  for (size_t d = 0; d < dims_.size(); ++d) current_.push_back(b_.imm(0));
  next_ = newAhead();
  if (plan_.two_ahead) {
    fetched_ = newAhead();
    beyond_ = b_.p(Opcode::pset, {0});
  }
  for (size_t c = 0; c < callee_.companions.size(); ++c) done_.push_back(b_.p(Opcode::pset, {0}));
  for (BlockState& s : blocks_) {
    initDescriptors(s);
    if (s.edges) s.moved = b_.imm(s.bytes);
    if (s.edges) s.pending = b_.imm(s.bytes);
    if (s.out()) {
      if (s.double_buffered()) s.in_flight = b_.p(Opcode::pset, {0});
    } else {
      fetch(s, {}, current_, true);
    }
    if (s.double_buffered()) s.slot = b_.imm(s.slots[0]);
    if (s.slots.size() == 3) s.into = b_.imm(s.slots[1]);
  }
  // Inputs that never move are waited for once; so are those of a single step, inside the step.
  for (BlockState& s : blocks_) {
    if (s.out() || single_) continue;
    if (!s.motion.moves()) waitFor(s, s.edges ? Arg(s.moved) : Arg(s.bytes), {});
    const bool always =
        std::all_of(s.motion.delta.begin(), s.motion.delta.end(), [](int64_t d) { return d != 0; });
    if (s.motion.moves() && !always) s.fetched = b_.p(Opcode::pset, {1});
  }
  if (plan_.two_ahead) fetchSecond();
  if (single_) {
    step();
  } else {
    const int head = b_.begin();
    b_.enterLoop();
    step();
    b_.branchBack(head, {next_.wrap[0].id, true});
    b_.leaveLoop();
  }
  // Outputs that never move are written now; of the others the last write-back is still on its way.
  for (BlockState& s : blocks_) {
    if (!s.out() || single_) continue;
    if (!s.motion.moves()) startTransfers(s, s.slots[0], {}, current_);
  }
  for (BlockState& s : blocks_) {
    if (!s.out() || single_) continue;
    const Arg bytes = s.edges ? Arg(s.moved) : Arg(s.bytes);
    if (!s.motion.moves() || s.double_buffered()) waitFor(s, bytes, {});
  }
  const S link = b_.s(Opcode::sld, {Addr{{}, ctx_.link_word}});
  b_.terminate(Opcode::ret, {link});
  b_.finish();
  return std::move(func_);
}

}  // namespace

Func expandKernel(Context& ctx, const Callee& callee, const VmemPlan& plan, int32_t call_locs) {
  return KernelExpander(ctx, callee, plan).run(call_locs);
}

}  // namespace tpu::schedule
