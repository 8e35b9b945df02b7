// DMA on one chip: descriptors, ownership of memory, queues and what their chunks cost.
#include <algorithm>
#include <cstring>

#include "chip.h"

namespace tpu::emulate {

using isa::DmaWord;
using isa::Space;

bool ChipSim::readDescriptor(Core& core, const Op& op, Transfer* t) {
  const uint32_t at = core.scalar(op);
  const auto refuse = [&](tpu::Code code, const llvm::Twine& text) {
    core.fail(op, code, text);
    return false;
  };
  if (at % 4 || at / 4 + isa::kDmaWords > core.smem.size())
    return refuse(tpu::Code::kEmuBounds, "descriptor at SMEM address " + llvm::Twine(at) + " of " +
                                             llvm::Twine(core.smem.size() * 4));
  const uint32_t* w = &core.smem[at / 4];
  if (core.strict) {
    for (int i = 0; i < isa::kDmaWords; ++i)
      if (core.smem_shadow[at / 4 + i])
        return refuse(tpu::Code::kEmuUndefined, "word " + llvm::Twine(i) +
                                                    " of the descriptor at SMEM address " + llvm::Twine(at) +
                                                    " is undefined");
  }
  if (core.smem_transfers > 0 && !mayAccess(core, op, Space::kSmem, at, isa::kDmaWords * 4, false))
    return false;
  const uint32_t from = w[isa::kDmaSpaces] & 0xff, to = w[isa::kDmaSpaces] >> 8;
  if (from > 4 || to > 4)
    return refuse(tpu::Code::kEmuBadTransfer,
                  "memory spaces word is " + llvm::Twine::utohexstr(w[isa::kDmaSpaces]));
  t->from.space = static_cast<Space>(from);
  t->to.space = static_cast<Space>(to);
  t->source_sem = w[isa::kDmaSems] & 0xffff;
  t->dest_sem = w[isa::kDmaSems] >> 16;
  t->source_device = core.device;
  t->dest_device = w[isa::kDmaDevice] == isa::kThisDevice ? core.device : w[isa::kDmaDevice];
  if (t->dest_device >= static_cast<int64_t>(machine_.chip_of.size()))
    return refuse(tpu::Code::kEmuBadTransfer,
                  "device " + llvm::Twine(t->dest_device) + " of " + llvm::Twine(machine_.chip_of.size()));
  for (const uint32_t sem : {t->source_sem, t->dest_sem})
    if (sem != isa::kNoSemaphore && sem >= static_cast<uint32_t>(chip_.semaphores))
      return refuse(tpu::Code::kEmuSemaphore,
                    "semaphore " + llvm::Twine(sem) + " of " + llvm::Twine(chip_.semaphores));
  const auto address = [&](DmaWord base, DmaWord offset) {
    return int64_t{w[base]} * 512 + static_cast<int32_t>(w[offset]);
  };
  t->from.base = address(isa::kDmaSrcBase, isa::kDmaSrcOffset);
  t->to.base = address(isa::kDmaDstBase, isa::kDmaDstOffset);
  t->from.run = t->to.run = w[isa::kDmaRun];
  const DmaWord counts[3] = {isa::kDmaCount1, isa::kDmaCount2, isa::kDmaCount3};
  for (int i = 0; i < 3; ++i) {
    t->from.n[i] = t->to.n[i] = w[counts[i]];
    t->from.stride[i] = static_cast<int32_t>(w[counts[i] + 1]);
    t->to.stride[i] = static_cast<int32_t>(w[counts[i] + 2]);
  }
  t->bytes = t->from.bytes();
  if (t->from.run % 4 || t->bytes == 0)
    return refuse(tpu::Code::kEmuBadTransfer,
                  "runs of " + llvm::Twine(t->from.run) + " bytes, " + llvm::Twine(t->from.n[0]) + " x " +
                      llvm::Twine(t->from.n[1]) + " x " + llvm::Twine(t->from.n[2]) +
                      " of them; runs must be multiples of 4, counts at least 1");
  t->from.simplify();
  t->to.simplify();
  t->pc = core.pc;
  t->loc = op.loc;
  return checkSide(core, op, *t, t->from, false) && checkSide(core, op, *t, t->to, true);
}

bool ChipSim::checkSide(Core& core, const Op& op, const Transfer& t, const Pattern& p, bool write) {
  const int64_t have = memoryBytes(p.space);
  if (p.low() >= 0 && p.high() <= have && p.base % 4 == 0 && p.stride[0] % 4 == 0 && p.stride[1] % 4 == 0 &&
      p.stride[2] % 4 == 0)
    return true;
  core.fail(op, tpu::Code::kEmuBounds,
            llvm::Twine(write ? "destination" : "source") + " of the transfer: bytes " +
                llvm::Twine(p.low()) + " to " + llvm::Twine(p.high()) + " of " + isa::spaceName(p.space) +
                ", which has " + llvm::Twine(have) + "; addresses and strides must be multiples of 4");
  return false;
}

// ---- ownership

void ChipSim::mark(int index, const Pattern& p, bool write, int delta) {
  Core& core = *cores[index];
  if (p.space == Space::kSmem) core.smem_transfers += delta;
  if (p.space != Space::kVmem) return;
  auto& rows = write ? core.vmem_written_by_dma : core.vmem_read_by_dma;
  int64_t last_begin = -1, last_end = -1;
  for (int64_t i = 0, total = p.runs(); i < total; ++i) {
    const int64_t start = p.runStart(i), begin = start / 512, end = (start + p.run + 511) / 512;
    if (begin == last_begin && end == last_end) continue;
    last_begin = begin;
    last_end = end;
    for (int64_t r = begin; r < end; ++r) {
      uint8_t& count = rows[static_cast<size_t>(r)];
      if (count != 0xff)
        count = static_cast<uint8_t>(count + delta);  // 255 sticks: precise checks then decide
    }
  }
}

// Takes one side of a transfer into ownership, unless another transfer's range is in the way.
bool ChipSim::claim(int index, const TransferPtr& t, bool source, std::string* conflict) {
  PerDevice& d = devices[index];
  const Pattern& p = source ? t->from : t->to;
  for (const TransferPtr& other : d.owners) {
    const bool reads =
        other->owns_from && other->source_device == d.device && !source && other->from.touches(p);
    const bool writes = other->owns_to && other->dest_device == d.device && other->to.touches(p);
    if (!reads && !writes) continue;
    const std::string& loc =
        machine_.program->locs.empty() ? std::string() : machine_.program->locs[other->loc];
    *conflict = std::string("its ") + (source ? "source" : "destination") +
                " overlaps what the transfer started by device " + std::to_string(other->source_device) +
                " at bundle " + std::to_string(other->pc) + (loc.empty() ? "" : " (" + loc + ")") +
                (writes ? " writes" : " reads") + " in " + isa::spaceName(p.space);
    return false;
  }
  (source ? t->owns_from : t->owns_to) = true;
  mark(index, p, !source, 1);
  if (std::find(d.owners.begin(), d.owners.end(), t) == d.owners.end()) d.owners.push_back(t);
  if (p.space == Space::kHbm) d.hbm_top = std::max(d.hbm_top, p.high());
  if (p.space == Space::kVmem) d.vmem_top = std::max(d.vmem_top, p.high());
  return true;
}

// A wait has covered the transfer on this device: what it owns here is free again.
void ChipSim::release(int index, Transfer& t) {
  PerDevice& d = devices[index];
  if (t.owns_from && t.source_device == d.device) {
    mark(index, t.from, false, -1);
    t.owns_from = false;
  }
  if (t.owns_to && t.dest_device == d.device) {
    mark(index, t.to, true, -1);
    t.owns_to = false;
  }
  std::erase_if(d.owners, [&](const TransferPtr& p) { return p.get() == &t; });
}

bool ChipSim::mayAccess(Core& core, const Op& op, Space space, int64_t at, int64_t bytes, bool write) {
  PerDevice& d = devices[core.local];
  for (const TransferPtr& t : d.owners) {
    const bool reads = write && t->owns_from && t->source_device == d.device && t->from.space == space &&
                       t->from.touches(at, at + bytes);
    const bool writes =
        t->owns_to && t->dest_device == d.device && t->to.space == space && t->to.touches(at, at + bytes);
    if (!reads && !writes) continue;
    const std::string loc = machine_.program->locs.empty() ? "" : machine_.program->locs[t->loc];
    core.fail(op, tpu::Code::kEmuOwnership,
              llvm::Twine(write ? "writes " : "reads ") + isa::spaceName(space) + " bytes " +
                  llvm::Twine(at) + " to " + llvm::Twine(at + bytes) +
                  ", which the transfer started by device " + llvm::Twine(t->source_device) + " at bundle " +
                  llvm::Twine(t->pc) + (loc.empty() ? "" : " (" + loc + ")") +
                  (writes ? " writes" : " reads") + "; no wait has covered it");
    return false;
  }
  return true;
}

// ---- starting and serving

int ChipSim::queueOf(const Core& core, const Transfer& t) {
  if (t.dest_device == core.device) return static_cast<int>(t.from.space) * 5 + static_cast<int>(t.to.space);
  const int32_t to = machine_.chip_of[t.dest_device];
  if (to == index_) return 25;
  const auto route = routeTo(to);
  return route->empty() ? 25 : 26 + route->front().link;
}

void ChipSim::startTransfer(Core& core, const Op& op) {
  auto t = std::make_shared<Transfer>();
  if (!readDescriptor(core, op, t.get())) return;
  PerDevice& d = devices[core.local];
  const int32_t to_chip = machine_.chip_of[t->dest_device];
  if (to_chip != index_ && routeTo(to_chip)->empty())
    return core.fail(op, tpu::Code::kEmuBadTransfer,
                     "no links lead to device " + llvm::Twine(t->dest_device));
  t->queue = queueOf(core, *t);
  t->id = next_transfer_++;
  t->issue = (core.t + op.latency) * kTicksPerCycle;
  if (to_chip != index_) t->info = std::make_shared<const Transfer>(*t);
  std::string conflict;
  if (!claim(core.local, t, true, &conflict)) return core.fail(op, tpu::Code::kEmuOwnership, conflict);
  // The other core of a chip is told at once; other chips when the first packet comes.
  const int dest_core = machine_.core_of[t->dest_device];
  if (to_chip == index_) {
    if (!claim(dest_core, t, false, &conflict)) return core.fail(op, tpu::Code::kEmuOwnership, conflict);
    if (t->dest_sem != isa::kNoSemaphore) devices[dest_core].due[t->dest_sem].push_back({t, t->bytes, false});
  }
  if (t->source_sem != isa::kNoSemaphore) d.due[t->source_sem].push_back({t, t->bytes, true});
  Queue& q = d.queues[t->queue];
  ++q.outstanding;
  ++q.transfers;
  q.bytes += t->bytes;
  ++d.dma_starts;
  d.dma_bytes += t->bytes;
  q.waiting.push_back(t);
  if (q.busy) return;
  q.busy = true;
  Event e(t->issue + machine_.latency_ticks, q.link >= 0 ? EventKind::kPrepare : EventKind::kServe);
  e.core = core.local;
  e.index = t->queue;
  schedule(std::move(e));
}

void ChipSim::addCost(Cost* cost, const PerDevice& d, Space space, int64_t at, int64_t bytes, bool write) {
  if (space == Space::kHbm) cost->hbm += granuleBytes(at, bytes, chip_.dma_granule_bytes, write);
  if (space == Space::kVmem) cost->port[write] += granuleBytes(at, bytes, chip_.dma_granule_bytes, write);
}

// When a piece that begins service at `start` has been served by everything it needs.
int64_t ChipSim::serveCost(int core, const Cost& cost, int64_t start) {
  int64_t end = start + cost.runs * kTicksPerCycle;
  if (cost.hbm) {
    const int64_t ticks = machine_.hbmTicks(cost.hbm);
    hbm_free_ = std::max(hbm_free_, start) + ticks;
    hbm_busy_ticks += ticks;
    end = std::max(end, hbm_free_);
  }
  for (int direction = 0; direction < 2; ++direction) {
    if (!cost.port[direction]) continue;
    int64_t& free = devices[core].vmem_port_free[direction];
    free = std::max(free, start) + machine_.portTicks(cost.port[direction]);
    end = std::max(end, free);
  }
  return end;
}

namespace {
// The end of a chunk of a transfer that begins at `begin`: at most kChunkBytes, whole runs where runs are
// short.
int64_t chunkEnd(const Transfer& t, int64_t begin, int64_t limit) {
  const int64_t run = std::min(t.from.run, t.to.run);
  int64_t size = limit;
  if (run < limit) size = limit / run * run;
  return std::min(t.bytes, begin + size);
}
}  // namespace

void ChipSim::serve(int index, int queue, int64_t now) {
  PerDevice& d = devices[index];
  Queue& q = d.queues[queue];
  if (q.waiting.empty()) {
    q.busy = false;
    return;
  }
  const TransferPtr t = q.waiting.front();
  const auto again = [&](int64_t time) {
    Event e(time, EventKind::kServe);
    e.core = index;
    e.index = queue;
    schedule(std::move(e));
  };
  if (now < t->issue + machine_.latency_ticks) return again(t->issue + machine_.latency_ticks);
  if (t->served == 0) t->began = now;
  const int64_t end = chunkEnd(*t, t->served, kChunkBytes);
  Cost cost;
  const int dest = machine_.core_of[t->dest_device];
  int64_t read = 0, written = 0;
  forEachPiece(t->from, t->to, t->served, end, [&](int64_t from, int64_t to, int64_t n) {
    Cost one;
    addCost(&one, d, t->from.space, from, n, false);
    read += one.hbm;
    const int64_t before = one.hbm;
    addCost(&one, devices[dest], t->to.space, to, n, true);
    written += one.hbm - before;
    cost.hbm += one.hbm;
    cost.port[0] += one.port[0];
    cost.port[1] += one.port[1];
    ++cost.runs;
  });
  d.hbm_read += read;
  devices[dest].hbm_write += written;
  const int64_t finish = serveCost(index, cost, now);
  q.busy_ticks += finish - now;
  t->served = end;
  if (end == t->bytes) {
    q.waiting.pop_front();
    Event e(finish + machine_.done_ticks, EventKind::kDone);
    e.core = index;
    e.index = queue;
    e.transfer = t;
    schedule(std::move(e));
    if (machine_.trace)
      trace.push_back({TraceSpan::kQueue, static_cast<int32_t>(d.device), queue, static_cast<int32_t>(t->pc),
                       static_cast<double>(t->began) / kTicksPerCycle,
                       static_cast<double>(finish) / kTicksPerCycle, t->bytes});
  }
  again(finish);
}

// In a timing-only run nothing moves; what arrives in SMEM is unknown.
void ChipSim::forget(int index, const Pattern& to) {
  if (to.space != Space::kSmem) return;
  for (int64_t i = 0; i < to.runs(); ++i)
    std::memset(reinterpret_cast<uint8_t*>(cores[index]->smem_shadow.data()) + to.runStart(i), 0xff,
                static_cast<size_t>(to.run));
}

void ChipSim::copyBytes(const Transfer& t) {
  if (machine_.mode == Mode::kTiming) return forget(machine_.core_of[t.dest_device], t.to);
  uint8_t* from = memory(t.source_device, t.from.space);
  uint8_t* to = memory(t.dest_device, t.to.space);
  uint8_t* from_shadow = shadow(t.source_device, t.from.space);
  uint8_t* to_shadow = shadow(t.dest_device, t.to.space);
  forEachPiece(t.from, t.to, 0, t.bytes, [&](int64_t a, int64_t b, int64_t n) {
    std::memmove(to + b, from + a, static_cast<size_t>(n));
    if (to_shadow) std::memmove(to_shadow + b, from_shadow + a, static_cast<size_t>(n));
  });
}

// Source and destination stand on this chip; nobody may have looked at either meanwhile, so the bytes move at
// the end.
void ChipSim::finishLocal(const Event& event) {
  Transfer& t = *event.transfer;
  copyBytes(t);
  t.done_at_source = t.done_at_dest = true;
  freeQueueSlot(event.core, event.index, event.time);
  addSemaphore(event.core, t.source_sem, t.bytes, event.time);
  addSemaphore(machine_.core_of[t.dest_device], t.dest_sem, t.bytes, event.time);
}

void ChipSim::freeQueueSlot(int index, int queue, int64_t now) {
  Queue& q = devices[index].queues[queue];
  --q.outstanding;
  Core& core = *cores[index];
  if (core.state != Core::State::kWaitQueue || core.wake_resource != queue) return;
  core.state = Core::State::kReady;
  core.pending = std::max(core.t, (now + kTicksPerCycle - 1) / kTicksPerCycle);
}

// The last packet of a transfer has left on its link.
void ChipSim::sent(const Event& event) {
  Transfer& t = *event.transfer;
  t.done_at_source = true;
  freeQueueSlot(event.core, event.index, event.time);
  addSemaphore(event.core, t.source_sem, t.bytes, event.time);
}

}  // namespace tpu::emulate
