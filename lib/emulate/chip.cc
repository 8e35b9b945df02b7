// The event loop of a chip, its semaphores, and the side of instructions that concerns them.
#include "chip.h"

#include <algorithm>
#include <limits>

namespace tpu::emulate {

namespace {
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
int64_t ceilCycle(int64_t ticks) { return (ticks + kTicksPerCycle - 1) / kTicksPerCycle; }
}  // namespace

int64_t Machine::ticksFor(int64_t bytes, int64_t rate) const {
  if (bytes == 0 || rate <= 0) return 0;
  const auto scaled = static_cast<__int128>(bytes) * target.chip.clock_hz * kTicksPerCycle;
  return static_cast<int64_t>((scaled + rate - 1) / rate);
}
int64_t Machine::nanoseconds(int64_t ns) const {
  return static_cast<int64_t>(
      (static_cast<__int128>(ns) * target.chip.clock_hz * kTicksPerCycle + 999999999) / 1000000000);
}

ChipSim::ChipSim(const Machine& machine, int32_t chip)
    : machine_(machine), chip_(machine.target.chip), index_(chip) {
  links.resize(static_cast<size_t>(chip_.ici_links));
}

std::string ChipSim::queueName(int index) const {
  if (index < 25)
    return std::string(isa::spaceName(static_cast<isa::Space>(index / 5))) + ">" +
           isa::spaceName(static_cast<isa::Space>(index % 5));
  if (index == 25) return "core>core";
  return "link" + std::to_string(index - 26);
}

Core& ChipSim::addCore(int64_t device) {
  cores.push_back(std::make_unique<Core>());
  PerDevice d;
  d.device = device;
  const int64_t hbm = memoryBytes(isa::Space::kHbm);
  d.arena = Arena(hbm + Core::arenaBytes(chip_), 4 + chip_.xlus, machine_.strict);
  d.hbm = d.arena.take(hbm);
  d.cmem = Memory(memoryBytes(isa::Space::kCmem), machine_.strict);
  if (machine_.strict) {
    d.hbm_shadow = Memory(memoryBytes(isa::Space::kHbm), true);
    d.cmem_shadow = Memory(memoryBytes(isa::Space::kCmem), true);
  }
  d.semaphores.assign(static_cast<size_t>(chip_.semaphores), 0);
  d.due.resize(static_cast<size_t>(chip_.semaphores));
  d.queues.resize(26 + static_cast<size_t>(chip_.ici_links));
  for (size_t q = 0; q < d.queues.size(); ++q) {
    d.queues[q].name = queueName(static_cast<int>(q));
    if (q >= 26) d.queues[q].link = static_cast<int>(q) - 26;
  }
  devices.push_back(std::move(d));
  for (Link& link : links) {
    link.ready.resize(cores.size());
    link.flows.resize(cores.size() + static_cast<size_t>(chip_.ici_links));
  }
  Core& core = *cores.back();
  core.init(*machine_.code, chip_, this, device, static_cast<int>(cores.size()) - 1, machine_.mode,
            devices.back().arena);
  return core;
}

int64_t ChipSim::memoryBytes(isa::Space space) const {
  switch (space) {
    case isa::Space::kHbm:
      return machine_.hbm_bytes;
    case isa::Space::kVmem:
      return chip_.vmem_bytes;
    case isa::Space::kSmem:
      return chip_.smem_bytes;
    case isa::Space::kCmem:
      return chip_.cmem_bytes / chip_.devicesPerChip();
    case isa::Space::kHost:
      return 0;
  }
  return 0;
}

uint8_t* ChipSim::memory(int64_t device, isa::Space space) {
  const int core = machine_.core_of[device];
  switch (space) {
    case isa::Space::kHbm:
      return devices[core].hbm.data();
    case isa::Space::kVmem:
      return cores[core]->vmem_data;
    case isa::Space::kSmem:
      return reinterpret_cast<uint8_t*>(cores[core]->smem.data());
    case isa::Space::kCmem:
      return devices[core].cmem.data();
    case isa::Space::kHost:
      return nullptr;
  }
  return nullptr;
}

uint8_t* ChipSim::shadow(int64_t device, isa::Space space) {
  if (!machine_.strict && !(machine_.mode == Mode::kTiming && space == isa::Space::kSmem)) return nullptr;
  const int core = machine_.core_of[device];
  switch (space) {
    case isa::Space::kHbm:
      return devices[core].hbm_shadow.data();
    case isa::Space::kVmem:
      return cores[core]->vmem_shadow.data();
    case isa::Space::kSmem:
      return reinterpret_cast<uint8_t*>(cores[core]->smem_shadow.data());
    case isa::Space::kCmem:
      return devices[core].cmem_shadow.data();
    case isa::Space::kHost:
      return nullptr;
  }
  return nullptr;
}

int64_t ChipSim::nextTime() const {
  if (faulted_) return kNever;
  int64_t next = events_.empty() ? kNever : events_.front().time;
  for (const auto& core : cores)
    if (core->state == Core::State::kReady) next = std::min(next, core->pending * kTicksPerCycle);
  return next;
}

void ChipSim::runUntil(int64_t end) {
  while (!faulted_) {
    Core* first = nullptr;
    for (const auto& core : cores)
      if (core->state == Core::State::kReady && (!first || core->pending < first->pending))
        first = core.get();
    const int64_t core_time = first ? first->pending * kTicksPerCycle : kNever;
    const int64_t event_time = events_.empty() ? kNever : events_.front().time;
    if (std::min(core_time, event_time) >= end) return;
    if (event_time <= core_time) {
      handle(nextEvent());
    } else {
      stepCore(*first);
    }
  }
}

void ChipSim::schedule(Event event) {
  event.sequence = sequence_++;
  enqueue(std::move(event));
}

void ChipSim::enqueue(Event event) {
  events_.push_back(std::move(event));
  std::push_heap(events_.begin(), events_.end());
}

ChipSim::Event ChipSim::nextEvent() {
  std::pop_heap(events_.begin(), events_.end());
  Event event = std::move(events_.back());
  events_.pop_back();
  return event;
}

void ChipSim::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kServe:
      return serve(event.core, event.index, event.time);
    case EventKind::kDone:
      return finishLocal(event);
    case EventKind::kPrepare:
      return prepare(event.core, event.index, event.time);
    case EventKind::kLink:
      return tryLink(event.index, event.time);
    case EventKind::kArrive:
      return arrive(event);
    case EventKind::kLanded:
      return landed(event);
    case EventKind::kAdd:
      return addSemaphore(event.core, static_cast<uint32_t>(event.index), event.amount, event.time);
    case EventKind::kSent:
      return sent(event);
  }
}

void ChipSim::faultAt(Core& core) {
  if (faulted_ || core.state != Core::State::kFaulted) return;
  faulted_ = true;
  fault_ = core.fault;
}

// Decides whether the pending bundle of a core can issue now, and if so lets the core run on.
void ChipSim::stepCore(Core& core) {
  if (!core.started) {
    core.start(core.pending);
    return faultAt(core);
  }
  const Op& op = core.pendingOp();
  PerDevice& d = devices[core.local];
  if (op.opcode == isa::Opcode::sem_wait) {
    const uint32_t sem = core.scalar(op);
    const int64_t amount = op.small[1] ? core.s[op.b] : static_cast<uint32_t>(op.amount);
    if (sem < d.semaphores.size() && d.semaphores[sem] < amount) {
      core.state = Core::State::kWaitSemaphore;
      core.wake_resource = sem;
      return;
    }
  }
  if (op.opcode == isa::Opcode::dma_start && chip_.dma_queue_depth > 0) {
    Transfer t;
    if (readDescriptor(core, op, &t) && d.queues[queueOf(core, t)].outstanding >= chip_.dma_queue_depth) {
      core.state = Core::State::kWaitQueue;
      core.wake_resource = queueOf(core, t);
      return;
    }
    if (core.state == Core::State::kFaulted) return faultAt(core);
  }
  core.resume(core.pending);
  faultAt(core);
}

// ---- semaphores

void ChipSim::addSemaphore(int index, uint32_t semaphore, int64_t amount, int64_t now) {
  if (semaphore == isa::kNoSemaphore) return;
  PerDevice& d = devices[index];
  Core& core = *cores[index];
  int64_t& value = d.semaphores[semaphore];
  value += amount;
  if (value < 0 || value > std::numeric_limits<uint32_t>::max()) {
    core.fail(Op(), tpu::Code::kEmuSemaphore,
              "semaphore " + llvm::Twine(semaphore) + " left its range: " + llvm::Twine(value));
    core.fault.cycle = now / kTicksPerCycle;
    return faultAt(core);
  }
  if (core.state != Core::State::kWaitSemaphore || core.wake_resource != semaphore) return;
  const Op& op = core.pendingOp();
  const int64_t wanted = op.small[1] ? core.s[op.b] : static_cast<uint32_t>(op.amount);
  if (value < wanted) return;
  core.state = Core::State::kReady;
  core.pending = std::max(core.t, ceilCycle(now)) + op.latency;
}

void ChipSim::takeSemaphore(Core& core, const Op& op) {
  PerDevice& d = devices[core.local];
  const uint32_t sem = core.scalar(op);
  int64_t amount = op.small[1] ? core.s[op.b] : static_cast<uint32_t>(op.amount);
  if (sem >= d.semaphores.size())
    return core.fail(op, tpu::Code::kEmuSemaphore,
                     "semaphore " + llvm::Twine(sem) + " of " + llvm::Twine(d.semaphores.size()));
  d.semaphores[sem] -= amount;
  auto& due = d.due[sem];
  while (amount > 0 && !due.empty()) {
    PerDevice::Due& first = due.front();
    const int64_t part = std::min(amount, first.left);
    first.left -= part;
    amount -= part;
    if (first.left > 0) break;
    Transfer& t = *first.transfer;
    if (!(first.source ? t.done_at_source : t.done_at_dest))
      return core.fail(op, tpu::Code::kEmuOwnership,
                       "the wait on semaphore " + llvm::Twine(sem) +
                           " takes bytes of an older transfer that is "
                           "still under way for bytes of a younger one; give them semaphores of their own or "
                           "wait for both");
    release(core.local, t);
    due.pop_front();
  }
}

void ChipSim::addOwnSemaphore(Core& core, const Op& op) {
  const uint32_t sem = core.scalar(op);
  const int64_t amount = static_cast<int32_t>(op.small[1] ? core.s[op.b] : static_cast<uint32_t>(op.amount));
  if (sem >= devices[core.local].semaphores.size())
    return core.fail(
        op, tpu::Code::kEmuSemaphore,
        "semaphore " + llvm::Twine(sem) + " of " + llvm::Twine(devices[core.local].semaphores.size()));
  addSemaphore(core.local, sem, amount, core.t * kTicksPerCycle);
}

uint32_t ChipSim::readSemaphore(Core& core, const Op& op) {
  const uint32_t sem = core.scalar(op);
  if (sem < devices[core.local].semaphores.size())
    return static_cast<uint32_t>(devices[core.local].semaphores[sem]);
  core.fail(op, tpu::Code::kEmuSemaphore,
            "semaphore " + llvm::Twine(sem) + " of " + llvm::Twine(devices[core.local].semaphores.size()));
  return 0;
}

void ChipSim::signal(Core& core, const Op& op) {
  const uint32_t device = core.s[op.a], sem = core.s[op.b];
  const auto amount = static_cast<int32_t>(core.s[op.c]);
  if (device >= machine_.chip_of.size())
    return core.fail(op, tpu::Code::kEmuSemaphore,
                     "device " + llvm::Twine(device) + " of " + llvm::Twine(machine_.chip_of.size()));
  if (sem >= static_cast<uint32_t>(chip_.semaphores))
    return core.fail(op, tpu::Code::kEmuSemaphore,
                     "semaphore " + llvm::Twine(sem) + " of " + llvm::Twine(chip_.semaphores));
  const int32_t to = machine_.chip_of[device];
  if (to == index_) {
    Event e((core.t + op.latency) * kTicksPerCycle, EventKind::kAdd);
    e.core = machine_.core_of[device];
    e.index = static_cast<int32_t>(sem);
    e.amount = amount;
    return schedule(std::move(e));
  }
  Packet packet;
  packet.kind = Packet::kSignal;
  packet.dest_device = device;
  packet.route = routeTo(to);
  if (packet.route->empty())
    return core.fail(op, tpu::Code::kEmuBadTransfer, "no links lead to device " + llvm::Twine(device));
  packet.wire_bytes = chip_.dma_granule_bytes;
  packet.semaphore = sem;
  packet.amount = amount;
  const int link = packet.route->front().link;
  links[link].flows[core.local].push_back(std::move(packet));
  Event e(core.t * kTicksPerCycle, EventKind::kLink);
  e.index = link;
  schedule(std::move(e));
}

// ---- trace

void ChipSim::onKernel(Core& core, uint32_t kernel, int64_t begin, int64_t end) {
  if (!machine_.trace || kernel == ~0u || end <= begin) return;
  trace.push_back({TraceSpan::kKernel, static_cast<int32_t>(core.device), 0, static_cast<int32_t>(kernel),
                   static_cast<double>(begin), static_cast<double>(end), 0});
}

void ChipSim::onWait(Core& core, int64_t begin, int64_t end) {
  if (!machine_.trace || end <= begin) return;
  const bool queue = core.pendingOp().opcode == isa::Opcode::dma_start;
  trace.push_back({TraceSpan::kWait, static_cast<int32_t>(core.device), 0,
                   queue ? -1 : static_cast<int32_t>(core.wake_resource), static_cast<double>(begin),
                   static_cast<double>(end), 0});
}

std::string ChipSim::describeWait(const Core& core) {
  const Op& op = core.pendingOp();
  const Decoded& code = *core.code;
  const std::string where = "device " + std::to_string(core.device) + " at bundle " +
                            std::to_string(core.pc) + " of " + code.kernels[code.bundles[core.pc].kernel] +
                            " waits for ";
  if (core.state == Core::State::kWaitQueue)
    return where + "room in queue " + queueName(static_cast<int>(core.wake_resource));
  const int64_t amount = op.small[1] ? core.s[op.b] : static_cast<uint32_t>(op.amount);
  const int64_t have = devices[core.local].semaphores[core.wake_resource];
  return where + "semaphore " + std::to_string(core.wake_resource) + " to reach " + std::to_string(amount) +
         "; it has " + std::to_string(have) + ", " + std::to_string(amount - have) + " are missing";
}

}  // namespace tpu::emulate
