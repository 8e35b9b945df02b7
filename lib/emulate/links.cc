// Links between chips: packets of transfers and signals, taking turns at each outgoing link, passed on hop by
// hop.
#include <algorithm>
#include <cstring>

#include "chip.h"

namespace tpu::emulate {

std::shared_ptr<const std::vector<target::Hop>> ChipSim::routeTo(int32_t chip) {
  auto& route = routes_[chip];
  if (!route) {
    const auto hops = target::route(machine_.target, index_, chip);
    route = std::make_shared<const std::vector<target::Hop>>(hops.begin(), hops.end());
  }
  return route;
}

// Reads the next packet of the transfer at the front of a link queue, so that it is at hand when the link is
// free.
void ChipSim::prepare(int index, int queue, int64_t now) {
  PerDevice& d = devices[index];
  Queue& q = d.queues[queue];
  if (q.waiting.empty()) {
    q.busy = false;
    return;
  }
  const TransferPtr t = q.waiting.front();
  if (now < t->issue + machine_.latency_ticks) {
    Event e(t->issue + machine_.latency_ticks, EventKind::kPrepare);
    e.core = index;
    e.index = queue;
    return schedule(std::move(e));
  }
  Packet packet;
  packet.dest_device = t->dest_device;
  packet.route = routeTo(machine_.chip_of[t->dest_device]);
  packet.transfer = t;
  packet.info = t->info;
  packet.begin = t->served;
  const int64_t run = std::min(t->from.run, t->to.run), limit = chip_.ici_packet_bytes;
  packet.end = std::min(t->bytes, t->served + (run < limit ? limit / run * run : limit));
  packet.last = packet.end == t->bytes;
  const bool values = machine_.mode != Mode::kTiming;
  if (values) packet.bytes.resize(static_cast<size_t>(packet.end - packet.begin));
  if (machine_.strict) packet.shadow.resize(packet.bytes.size());
  const uint8_t* from = memory(t->source_device, t->from.space);
  const uint8_t* from_shadow = shadow(t->source_device, t->from.space);
  Cost cost;
  size_t at = 0;
  forEachPiece(t->from, t->to, packet.begin, packet.end, [&](int64_t a, int64_t b, int64_t n) {
    if (values) std::memcpy(&packet.bytes[at], from + a, static_cast<size_t>(n));
    if (from_shadow) std::memcpy(&packet.shadow[at], from_shadow + a, static_cast<size_t>(n));
    at += static_cast<size_t>(n);
    addCost(&cost, d, t->from.space, a, n, false);
    packet.wire_bytes += granuleBytes(b, n, chip_.dma_granule_bytes, false);
    ++cost.runs;
  });
  d.hbm_read += cost.hbm;
  const int64_t ready = serveCost(index, cost, now);
  t->served = packet.end;
  if (packet.begin == 0) t->began = now;
  if (packet.last) q.waiting.pop_front();
  links[q.link].ready[index].emplace_back(ready, std::move(packet));
  Event e(ready, EventKind::kLink);
  e.index = q.link;
  schedule(std::move(e));
}

// Gives a free link to the next flow in turn that has something ready.
void ChipSim::tryLink(int index, int64_t now) {
  Link& link = links[index];
  if (link.free_at > now) return;  // an event stands at that time
  const int data = static_cast<int>(link.ready.size()), flows = data + static_cast<int>(link.flows.size());
  for (int i = 0; i < flows; ++i) {
    const int flow = (link.turn + i) % flows;
    Packet packet;
    if (flow < data) {
      if (link.ready[flow].empty() || link.ready[flow].front().first > now) continue;
      packet = std::move(link.ready[flow].front().second);
      link.ready[flow].pop_front();
    } else {
      auto& queue = link.flows[flow - data];
      if (queue.empty()) continue;
      packet = std::move(queue.front());
      queue.pop_front();
    }
    link.turn = (flow + 1) % flows;
    const int64_t ticks = machine_.linkTicks(packet.wire_bytes);
    link.free_at = now + ticks;
    link.busy_ticks += ticks;
    ++link.packets;
    link.bytes += packet.wire_bytes;
    if (machine_.trace)
      trace.push_back({TraceSpan::kLink, index_, index, static_cast<int32_t>(packet.dest_device),
                       static_cast<double>(now) / kTicksPerCycle,
                       static_cast<double>(link.free_at) / kTicksPerCycle, packet.wire_bytes});
    Event e(link.free_at, EventKind::kLink);
    e.index = index;
    schedule(std::move(e));
    if (flow < data) {
      const int queue = 26 + index;
      if (packet.last) {
        const Transfer& t = *packet.transfer;
        devices[flow].queues[queue].busy_ticks += link.free_at - t.began;
        if (machine_.trace)
          trace.push_back({TraceSpan::kQueue, static_cast<int32_t>(devices[flow].device), queue,
                           static_cast<int32_t>(t.pc), static_cast<double>(t.began) / kTicksPerCycle,
                           static_cast<double>(link.free_at) / kTicksPerCycle, t.bytes});
        Event sent(link.free_at + machine_.done_ticks, EventKind::kSent);
        sent.core = flow;
        sent.index = queue;
        sent.transfer = packet.transfer;
        schedule(std::move(sent));
      }
      prepare(flow, queue, now);
    }
    const auto next = static_cast<int32_t>(target::neighbour(machine_.target, index_, index));
    outbox.push_back({now + machine_.hop_ticks, index_, next, message_sequence_++, std::move(packet)});
    return;
  }
}

void ChipSim::receive(Message message) {
  Event e(message.time, EventKind::kArrive);
  e.packet = std::make_shared<Packet>(std::move(message.packet));
  e.sender = message.from_chip;
  e.sequence = message.sequence;
  enqueue(std::move(e));
}

void ChipSim::arrive(const Event& event) {
  Packet& packet = *event.packet;
  if (machine_.chip_of[packet.dest_device] == index_) return land(packet, event.time);
  const int incoming = (*packet.route)[static_cast<size_t>(packet.hop)].link;
  ++packet.hop;
  const int link = (*packet.route)[static_cast<size_t>(packet.hop)].link;
  links[link].flows[cores.size() + static_cast<size_t>(incoming)].push_back(std::move(packet));
  tryLink(link, event.time);
}

// The head of a packet has reached its chip; the tail follows at the link's rate.
void ChipSim::land(Packet& packet, int64_t now) {
  const int index = machine_.core_of[packet.dest_device];
  const int64_t tail = now + machine_.linkTicks(packet.wire_bytes);
  if (packet.kind == Packet::kSignal) {
    Event e(tail, EventKind::kAdd);
    e.core = index;
    e.index = static_cast<int32_t>(packet.semaphore);
    e.amount = packet.amount;
    return schedule(std::move(e));
  }
  PerDevice& d = devices[index];
  Core& core = *cores[index];
  auto& arriving = arriving_[{packet.info->source_device, packet.info->id}];
  if (!arriving) {
    // A record of this chip's own: the sender's is used on the sender's thread.
    arriving = std::make_shared<Transfer>(*packet.info);
    std::string conflict;
    if (!claim(index, arriving, false, &conflict)) {
      Op op;
      op.loc = arriving->loc;
      core.fail(op, tpu::Code::kEmuOwnership,
                "a transfer that device " + llvm::Twine(arriving->source_device) + " started at bundle " +
                    llvm::Twine(arriving->pc) + " arrives: " + conflict);
      core.fault.cycle = now / kTicksPerCycle;
      return faultAt(core);
    }
    if (arriving->dest_sem != isa::kNoSemaphore)
      d.due[arriving->dest_sem].push_back({arriving, arriving->bytes, false});
  }
  const TransferPtr t = arriving;
  uint8_t* to = memory(d.device, t->to.space);
  uint8_t* to_shadow = shadow(d.device, t->to.space);
  Cost cost;
  size_t at = 0;
  forEachPiece(t->from, t->to, packet.begin, packet.end, [&](int64_t, int64_t b, int64_t n) {
    if (!packet.bytes.empty()) std::memcpy(to + b, &packet.bytes[at], static_cast<size_t>(n));
    if (to_shadow) std::memcpy(to_shadow + b, &packet.shadow[at], static_cast<size_t>(n));
    at += static_cast<size_t>(n);
    addCost(&cost, d, t->to.space, b, n, true);
    ++cost.runs;
  });
  d.hbm_write += cost.hbm;
  t->last_landing = std::max({t->last_landing, tail, serveCost(index, cost, now)});
  if (!packet.last) return;
  if (machine_.mode == Mode::kTiming) forget(index, t->to);
  Event e(t->last_landing + machine_.done_ticks, EventKind::kLanded);
  e.core = index;
  e.transfer = t;
  schedule(std::move(e));
  arriving_.erase({t->source_device, t->id});
}

void ChipSim::landed(const Event& event) {
  Transfer& t = *event.transfer;
  t.done_at_dest = true;
  addSemaphore(event.core, t.dest_sem, t.bytes, event.time);
}

}  // namespace tpu::emulate
