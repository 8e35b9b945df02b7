// The issue loop: when each bundle issues, and why not earlier.
#include "core.h"

#include <algorithm>
#include <cassert>

#include "chip.h"

namespace tpu::emulate {
namespace {

// A core that issues this many cycles without concerning anybody else is taken to loop for ever (0.7 s of a
// chip's time).
constexpr int64_t kRunAheadLimit = int64_t{1} << 30;

Stall stallOfFifo(int fifo) {
  if (fifo == kEupFifo) return Stall::kEup;
  if (fifo == kV2sFifo) return Stall::kV2s;
  return fifo < kMrfFifo ? Stall::kXlu : Stall::kMxu;
}

// The short FIFOs, most of whose entries are used.
bool inArena(int fifo) { return fifo == kEupFifo || (fifo >= kXluFifo && fifo < kTrfFifo); }

}  // namespace

void Core::init(const Decoded& decoded, const target::Chip& of, ChipSim* on, int64_t dev, int local_index,
                Mode run_mode, Arena& arena) {
  code = &decoded;
  chip = &of;
  sim = on;
  device = dev;
  local = local_index;
  mode = run_mode;
  strict = mode != Mode::kPlain;
  const bool shadows = mode == Mode::kStrict;
  vmem_bytes = of.vmem_bytes;
  p[isa::kAlways] = 1;
  v = Lazy<Vector>(kFileSize, arena);
  s.fill(~0u);
  smem = Lazy<uint32_t>(static_cast<size_t>(of.smem_bytes / 4), strict);
  for (Lazy<uint8_t>* counts : {&vmem_read_by_dma, &vmem_written_by_dma})
    *counts = Lazy<uint8_t>(static_cast<size_t>(vmem_bytes / 512) + 8, false);
  if (strict) {
    s_shadow.fill(~0u);
    p_shadow.fill(1);
    p_shadow[isa::kAlways] = 0;
    smem_shadow = Lazy<uint32_t>(smem.size(), true);
  }
  if (shadows) {
    v_shadow = Lazy<Vector>(kFileSize, true);
    vmem_shadow = Memory(of.vmem_bytes, true);
  }
  const auto fifo = [&](int index, int depth) {
    Fifo& f = fifos[index];
    f.depth = depth;
    f.ready.assign(depth, 0);
    if (mode != Mode::kTiming)
      f.value = inArena(index) ? Lazy<Vector>(depth, arena) : Lazy<Vector>(depth, false);
    if (shadows) f.shadow = Lazy<Vector>(depth, false);
  };
  fifo(kEupFifo, of.eup_depth);
  fifo(kV2sFifo, of.v2s_depth);
  for (int u = 0; u < of.xlus; ++u) fifo(kXluFifo + u, of.xlu_depth), fifo(kTrfFifo + u, of.trf_depth);
  for (int m = 0; m < of.mxus; ++m) fifo(kMrfFifo + m, of.mxu_addressed ? 0 : of.mrf_depth);
  vmem = arena.take(of.vmem_bytes);  // last: its used part is what varies
  vmem_data = vmem.data();
  xlu.resize(of.xlus);
  mxu.resize(of.mxus);
  for (Mxu& m : mxu) {
    m.side = of.mxu_side;
    m.panels = isa::mxuPanels(of.mxu_side);
    if (!of.mxu_addressed) continue;
    if (mode != Mode::kTiming) m.acc = Lazy<Vector>(of.mrb_entries, false);
    if (shadows) m.acc_shadow = Lazy<Vector>(of.mrb_entries, false);
    m.acc_ready.assign(of.mrb_entries, 0);
  }
  mxu_busy.assign(of.mxus, 0);
  mxu_until = mxu_busy;
  profile.assign(decoded.bundles.size(), {});
  kernel_stalls.assign(decoded.kernels.size(), {});
  kernel_calls.assign(decoded.kernels.size(), 0);
  const size_t blocks = of.imem_block_bundles > 0 ? decoded.bundles.size() / of.imem_block_bundles + 1 : 1;
  block_used_.assign(blocks, 0);
}

int64_t Core::arenaBytes(const target::Chip& of) {
  return (kFileSize + of.eup_depth + of.xlus * of.xlu_depth) * static_cast<int64_t>(sizeof(Vector)) +
         of.vmem_bytes;
}

void Core::fail(const Op& op, tpu::Code failure, const llvm::Twine& text) {
  if (state == State::kFaulted) return;
  state = State::kFaulted;
  fault.code = failure;
  fault.cycle = t;
  fault.device = device;
  fault.pc = pc;
  fault.loc = op.loc;
  fault.text = text.str();
  if (mode == Mode::kTiming && failure == tpu::Code::kEmuUndefined)
    fault.text += ": it depends on vector data, which a timing-only run does not compute";
}

void Core::countRows(const Op& op) {
  mxu_busy[op.unit] += op.interval;
  mxu_until[op.unit] = t + op.interval;
}

bool Core::accumulate(const Op& op) {
  Mxu& m = mxu[op.unit];
  const uint32_t first = scalar(op);
  if (first + op.entries > m.acc_ready.size()) {
    fail(op, tpu::Code::kEmuMatrixUnit,
         "accumulators " + llvm::Twine(first) + " to " + llvm::Twine(first + op.entries - 1) + " of " +
             llvm::Twine(m.acc_ready.size()));
    return false;
  }
  for (int i = 0; i < op.entries; ++i)
    m.acc_ready[first + i] =
        std::max(m.acc_ready[first + i], t + op.latency + int64_t{i} * op.interval / op.entries);
  return true;
}

int Core::push(const Op& op, int index, int n) {
  Fifo& f = fifos[index];
  if (f.count + n > f.depth) {
    fail(op, tpu::Code::kEmuFifo,
         llvm::Twine(n) + " entries pushed into a FIFO that holds " + llvm::Twine(f.count) + " of " +
             llvm::Twine(f.depth));
    return -1;
  }
  const int first = f.slot(f.count);
  for (int i = 0; i < n; ++i) {
    f.last_ready = std::max(f.last_ready, t + op.latency + int64_t{i} * op.interval / n);
    f.ready[f.slot(f.count + i)] = f.last_ready;
  }
  f.count += n;
  return first;
}

int Core::pop(int index) {
  Fifo& f = fifos[index];
  const int slot = f.head;
  --f.count;
  f.head = f.count == 0 || f.head + 1 == f.depth ? 0 : f.head + 1;  // empty: back to memory that is warm
  return slot;
}

void Core::enterBlock(uint32_t block, int64_t* at) {
  block_ = block;
  if (chip->imem_block_bundles <= 0) return;
  int64_t& used = block_used_[block];
  if (used == 0) {
    const int64_t lines = std::max<int64_t>(1, chip->imem_bundles / chip->imem_block_bundles);
    if (blocks_resident_ == lines) {
      int64_t* oldest = nullptr;
      for (int64_t& u : block_used_)
        if (u && (!oldest || u < *oldest)) oldest = &u;
      *oldest = 0;
      --blocks_resident_;
    }
    ++blocks_resident_;
    *at += chip->imem_reload_cycles;
    imem_stall_ = chip->imem_reload_cycles;
  }
  used = 1 + *at;
}

void Core::enterKernel(uint32_t kernel) {
  sim->onKernel(*this, kernel_, kernel_since_, last_issue_ + 1);
  kernel_ = kernel;
  kernel_since_ = last_issue_ + 1;
  if (pc == code->kernel_begin[kernel]) ++kernel_calls[kernel];
}

// Predicates first; then what the instructions wait for that will execute.
int64_t Core::waitPredicated(const Bundle& b, int64_t at) {
  const Op* ops = &code->ops[b.first_op];
  active_ = 0;
  for (int i = 0; i < b.num_ops; ++i) {
    const Op& op = ops[i];
    if (op.pred != isa::kAlways) {
      at = std::max(at, ready_[kPreds + op.pred]);
      if (strict && p_shadow[op.pred])
        fail(op, tpu::Code::kEmuUndefined, "predicate p" + llvm::Twine(op.pred) + " is undefined");
    }
    if ((p[op.pred] != 0) != op.pred_neg) {
      active_ |= 1u << i;
    } else if (i < b.num_insns) {
      ++skipped;
    }
  }
  for (int i = 0; i < b.num_insns; ++i)
    if (active_ >> i & 1) at = waitFor(&code->waits[ops[i].first_wait], ops[i].num_waits, at);
  return at;
}

bool Core::waitPops(const Bundle& b, int64_t* at) {
  const Op* ops = &code->ops[b.first_op];
  for (int i = 0; i < b.num_insns; ++i) {
    const Op& op = ops[i];
    if (!(active_ >> i & 1)) continue;
    if (op.opcode == isa::Opcode::vpop_mrb) {
      const uint32_t entry = scalar(op);
      Mxu& m = mxu[op.unit];
      if (entry >= m.acc_ready.size()) {
        fail(op, tpu::Code::kEmuMatrixUnit,
             "accumulator " + llvm::Twine(entry) + " of " + llvm::Twine(m.acc_ready.size()));
        return false;
      }
      *at = std::max(*at, m.acc_ready[entry]);
    }
    if (op.pop_fifo == kNoFifo) continue;
    int nth = 0;
    for (int j = 0; j < i; ++j) nth += active_ >> j & 1 && ops[j].pop_fifo == op.pop_fifo;
    const Fifo& f = fifos[op.pop_fifo];
    if (nth >= f.count) {
      fail(op, tpu::Code::kEmuFifo, "pop from a FIFO that has nothing in flight");
      return false;
    }
    *at = std::max(*at, f.ready[f.slot(nth)]);
  }
  return true;
}

// Names the one thing that kept the bundle longest.
void Core::accountStall(const Bundle& b, int64_t until) {
  const int64_t lost = until - (last_issue_ + 1);
  Stall cause = next_ > last_issue_ + 1 ? Stall::kBranch : Stall::kScalar;
  int64_t worst = next_;
  const Op* ops = &code->ops[b.first_op];
  for (int i = 0; i < b.num_insns; ++i) {
    if (ops[i].pred != isa::kAlways && ready_[kPreds + ops[i].pred] > worst) {
      worst = ready_[kPreds + ops[i].pred];
      cause = Stall::kScalar;
    }
    if (!(active_ >> i & 1)) continue;
    for (int w = 0; w < ops[i].num_waits; ++w) {
      const Wait& wait = code->waits[ops[i].first_wait + w];
      if (ready_[wait.resource] + wait.bias <= worst) continue;
      worst = ready_[wait.resource] + wait.bias;
      cause = stallOf(wait.resource);
    }
    if (ops[i].opcode == isa::Opcode::vpop_mrb && mxu[ops[i].unit].acc_ready[scalar(ops[i])] > worst) {
      worst = mxu[ops[i].unit].acc_ready[scalar(ops[i])];
      cause = Stall::kMxu;
    }
    if (ops[i].pop_fifo == kNoFifo) continue;
    const Fifo& f = fifos[ops[i].pop_fifo];
    if (f.ready[f.head] > worst) {
      worst = f.ready[f.head];
      cause = stallOfFifo(ops[i].pop_fifo);
    }
  }
  if (worst + imem_stall_ > until) worst = until - imem_stall_;
  kernel_stalls[b.kernel][static_cast<int>(Stall::kImem)] += std::min(lost, imem_stall_);
  kernel_stalls[b.kernel][static_cast<int>(cause)] += std::max<int64_t>(0, lost - imem_stall_);
}

// Works out when the bundle at pc issues, as far as this core alone decides. False after a fault.
bool Core::prepare() {
  if (pc >= code->bundles.size()) {
    fail(Op(), tpu::Code::kEmuControl, "control runs off the end of the program");
    return false;
  }
  const Bundle& b = code->bundles[pc];
  if (b.kernel != kernel_) enterKernel(b.kernel);
  int64_t at = next_;
  imem_stall_ = 0;
  if (b.block != block_) enterBlock(b.block, &at);
  if (b.predicated) {
    at = waitPredicated(b, at);
    if (state == State::kFaulted) return false;
  } else {
    active_ = ~0u;
    at = waitFor(&code->waits[b.first_wait], b.num_waits, at);
  }
  if (b.pops && !waitPops(b, &at)) return false;
  if (at > last_issue_ + 1) accountStall(b, at);
  t = at;
  return true;
}

void Core::commit() {
  const Bundle& b = code->bundles[pc];
  Profile& account = profile[pc];
  ++account.count;
  account.cycles += t - last_issue_;
  last_issue_ = t;
  const Op* ops = &code->ops[b.first_op];
  if (!b.predicated) {
    for (const Set *set = &code->sets[b.first_set], *end = set + b.num_sets; set != end; ++set)
      ready_[set->resource] = t + set->after;
    for (int i = 0; i < b.num_ops; ++i) ops[i].exec(*this, ops[i]);
  } else {
    for (int i = 0; i < b.num_ops; ++i) {
      if (!(active_ >> i & 1)) continue;
      for (int k = 0; k < ops[i].num_sets; ++k) {
        const Set& set = code->sets[ops[i].first_set + k];
        ready_[set.resource] = t + set.after;
      }
      ops[i].exec(*this, ops[i]);
    }
  }
  next_ = t + 1;
  if (delay_left > 0 && --delay_left == 0) {
    pc = static_cast<uint32_t>(branch_target);
    next_ = std::max(next_, branch_floor);
    return;
  }
  ++pc;
}

void Core::runAhead() {
  const int64_t limit = last_issue_ + kRunAheadLimit;
  while (prepare()) {
    const Bundle& b = code->bundles[pc];
    if (b.interact >= 0 && active_ >> b.interact & 1) {
      pending = t;
      state = State::kReady;
      return;
    }
    commit();
    if (state == State::kFaulted) return;
    if (last_issue_ > limit) {
      fail(Op(), tpu::Code::kEmuHang,
           "the core has run for " + llvm::Twine(kRunAheadLimit) +
               " cycles without a transfer, a semaphore or an end");
      fault.hang = true;
      return;
    }
  }
}

void Core::start(int64_t cycle) {
  started = true;
  start_cycle = cycle;
  last_issue_ = cycle - 1;
  next_ = cycle;
  kernel_since_ = cycle;
  runAhead();
}

void Core::resume(int64_t cycle) {
  if (cycle > t) {
    const Bundle& b = code->bundles[pc];
    const Stall cause = state == State::kWaitQueue || pendingOp().opcode == isa::Opcode::dma_start
                            ? Stall::kDmaQueue
                            : Stall::kSemaphore;
    kernel_stalls[b.kernel][static_cast<int>(cause)] += cycle - t;
    sim->onWait(*this, t, cycle);
    t = cycle;
  }
  commit();
  if (state == State::kFaulted) return;
  if (halted) {
    state = State::kHalted;
    end_cycle = t + 1;
    sim->onKernel(*this, kernel_, kernel_since_, end_cycle);
    return;
  }
  runAhead();
}

}  // namespace tpu::emulate
