// One chip: its cores, HBM, DMA queues and outgoing links, driven by one queue of events in time order. Chips
// meet only through messages that are at least one hop latency under way, so each may run ahead by that much
// on a thread of its own.
#pragma once
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core.h"
#include "llvm/ADT/DenseMap.h"
#include "tpu/emulate/timing.h"
#include "tpu/target/chip.h"
#include "transfer.h"

namespace tpu::emulate {

/// What all chips of a run share.
struct Machine {
  const isa::Program* program = nullptr;
  const Decoded* code = nullptr;
  target::Target target;
  Mode mode = Mode::kPlain;
  bool strict = false, trace = false;     // strict: mode is kStrict
  std::vector<int32_t> chip_of, core_of;  // by device (mesh position)
  int64_t hop_ticks = 0, latency_ticks = 0, done_ticks = 0;
  int64_t hbm_bytes = 0;  // per device, as far as the program uses it

  int64_t hbmTicks(int64_t bytes) const { return ticksFor(bytes, target.chip.hbm_sustained_bytes_per_s); }
  int64_t linkTicks(int64_t bytes) const { return ticksFor(bytes, target.chip.ici_sustained_bytes_per_s); }
  int64_t portTicks(int64_t bytes) const {
    const int64_t rate = target.chip.vmem_dma_bytes_per_cycle;
    return rate > 0 ? (bytes * kTicksPerCycle + rate - 1) / rate : 0;
  }
  int64_t ticksFor(int64_t bytes, int64_t rate) const;
  int64_t nanoseconds(int64_t ns) const;
};

struct Packet {
  enum Kind : uint8_t { kData, kSignal } kind = kData;
  int64_t dest_device = 0;
  std::shared_ptr<const std::vector<target::Hop>> route;
  int hop = 0;  // index of the link that it is queued at or travels over
  int64_t wire_bytes = 0;
  // data
  TransferPtr transfer;  // the sender's record; other chips look at `info` only
  std::shared_ptr<const Transfer> info;
  int64_t begin = 0, end = 0;
  bool last = false;
  std::vector<uint8_t> bytes, shadow;
  // signal
  uint32_t semaphore = 0;
  int64_t amount = 0;
};

struct Message {  // the head of a packet reaches a chip
  int64_t time = 0;
  int32_t from_chip = 0, to_chip = 0;
  uint64_t sequence = 0;
  Packet packet;
};

class ChipSim {
 public:
  ChipSim(const Machine& machine, int32_t chip);

  Core& addCore(int64_t device);
  std::vector<std::unique_ptr<Core>> cores;

  /// Earliest thing that can happen here, in ticks; max() when nothing can.
  int64_t nextTime() const;
  /// Handles everything before `end` (ticks).
  void runUntil(int64_t end);
  void receive(Message message);
  std::vector<Message> outbox;
  bool faulted() const { return faulted_; }
  const Fault& fault() const { return fault_; }

  // ---- memories of a device
  uint8_t* memory(int64_t device, isa::Space space);
  uint8_t* shadow(int64_t device, isa::Space space);
  int64_t memoryBytes(isa::Space space) const;

  // ---- called by instructions
  void startTransfer(Core& core, const Op& op);
  void takeSemaphore(Core& core, const Op& op);
  void addOwnSemaphore(Core& core, const Op& op);
  void signal(Core& core, const Op& op);
  uint32_t readSemaphore(Core& core, const Op& op);
  bool mayAccess(Core& core, const Op& op, isa::Space space, int64_t at, int64_t bytes, bool write);
  // ---- for the trace
  void onKernel(Core& core, uint32_t kernel, int64_t begin, int64_t end);
  void onWait(Core& core, int64_t begin, int64_t end);

  // ---- accounts
  struct Queue {
    std::string name;
    int link = -1;                    // outgoing link, or -1
    std::deque<TransferPtr> waiting;  // the front one is being served
    int outstanding = 0;
    bool busy = false;
    int64_t free_at = 0;
    int64_t transfers = 0, bytes = 0, busy_ticks = 0;
  };
  struct Link {
    int64_t free_at = 0;
    int turn = 0;
    int64_t packets = 0, bytes = 0, busy_ticks = 0;
    std::vector<std::deque<Packet>> flows;  // signals of each core, then transit by incoming link
    std::vector<std::deque<std::pair<int64_t, Packet>>>
        ready;  // data of each core: one packet, with the time it is read
  };
  struct PerDevice {
    int64_t device = 0;
    Arena arena;  // of registers, VMEM and HBM
    Memory hbm, hbm_shadow, cmem, cmem_shadow;
    std::vector<int64_t> semaphores;
    struct Due {  // a transfer whose bytes a semaphore counts
      TransferPtr transfer;
      int64_t left = 0;
      bool source = false;
    };
    std::vector<std::list<Due>> due;    // per semaphore; a list costs nothing while empty
    std::vector<TransferPtr> owners;   // transfers that own memory here
    std::vector<Queue> queues;
    int64_t vmem_port_free[2] = {0, 0};  // read, write
    int64_t hbm_read = 0, hbm_write = 0, dma_starts = 0, dma_bytes = 0;
    int64_t hbm_top = 0, vmem_top = 0;
  };
  std::vector<PerDevice> devices;  // by core of the chip
  std::vector<Link> links;
  int64_t hbm_busy_ticks = 0;
  std::vector<TraceSpan> trace;

  /// What a blocked core waits for, in words.
  std::string describeWait(const Core& core);
  std::string queueName(int index) const;

 private:
  enum class EventKind : uint8_t { kServe, kDone, kPrepare, kLink, kArrive, kLanded, kAdd, kSent };
  struct Event {
    Event(int64_t at, EventKind what) : time(at), kind(what) {}
    int64_t time;
    // Of one time, arrivals come first, by sending chip; then what this chip has scheduled itself.
    int32_t sender = std::numeric_limits<int32_t>::max();
    uint64_t sequence = 0;
    EventKind kind;
    int32_t core = 0, index = 0;
    TransferPtr transfer;
    std::shared_ptr<Packet> packet;
    int64_t amount = 0;
    bool operator<(const Event& o) const {
      return std::tie(time, sender, sequence) > std::tie(o.time, o.sender, o.sequence);
    }
  };
  void schedule(Event event);  // of this chip's own
  void enqueue(Event event);
  Event nextEvent();
  void handle(const Event& event);
  void stepCore(Core& core);
  void faultAt(Core& core);

  // transfers.cc
  bool readDescriptor(Core& core, const Op& op, Transfer* t);
  bool checkSide(Core& core, const Op& op, const Transfer& t, const Pattern& p, bool write);
  bool claim(int core, const TransferPtr& t, bool source, std::string* conflict);
  void release(int core, Transfer& t);
  void mark(int core, const Pattern& p, bool write, int delta);
  int queueOf(const Core& core, const Transfer& t);
  void serve(int core, int queue, int64_t now);
  void finishLocal(const Event& event);
  void sent(const Event& event);
  void addSemaphore(int core, uint32_t semaphore, int64_t amount, int64_t now);
  void freeQueueSlot(int core, int queue, int64_t now);
  void copyBytes(const Transfer& t);
  void forget(int core, const Pattern& to);
  struct Cost {
    int64_t hbm = 0, port[2] = {0, 0}, runs = 0;
  };
  void addCost(Cost* cost, const PerDevice& d, isa::Space space, int64_t at, int64_t bytes, bool write);
  int64_t serveCost(int core, const Cost& cost, int64_t start);

  // links.cc
  void prepare(int core, int queue, int64_t now);
  void tryLink(int link, int64_t now);
  void arrive(const Event& event);
  void land(Packet& packet, int64_t now);
  void landed(const Event& event);
  std::shared_ptr<const std::vector<target::Hop>> routeTo(int32_t chip);

  const Machine& machine_;
  const target::Chip& chip_;
  int32_t index_;
  std::vector<Event> events_;  // a heap, the next one in front
  uint64_t sequence_ = 0, message_sequence_ = 0;
  uint64_t next_transfer_ = 0;
  int64_t hbm_free_ = 0;
  bool faulted_ = false;
  Fault fault_;
  llvm::DenseMap<int32_t, std::shared_ptr<const std::vector<target::Hop>>> routes_;
  std::map<std::pair<int64_t, uint64_t>, TransferPtr> arriving_;  // by source device and its transfer
};

}  // namespace tpu::emulate
