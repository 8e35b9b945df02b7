// How the emulator counts time: the contract between chip descriptions, schedulers and the machine.
//
// Issue. One bundle per cycle, in order. A bundle issues when every instruction of it can; all read their
// operands in that cycle, then all write. An instruction whose predicate is false waits for the predicate
// only. It waits for
//   - registers it reads: written at issue + latency of the writer's class;
//   - registers it writes: an earlier write must not arrive after this one;
//   - its unit: the same MXU path (loading; multiplying), XLU, EUP, or ALU slot is free `interval` cycles
//   after the last issue;
//   - a FIFO entry it pops: entry i of n of a push arrives at issue + latency + i * interval / n (whole
//   cycles, rounded down), never
//     before an earlier entry; a popped register is ready at the pop's issue + latency of `pop` (of `v2s_pop`
//     for spop);
//   - vlatch: vmatpush into that staging register + their latency, and earlier latches + their interval;
//   - vmatpush: an earlier latch of that staging register + its interval;
//   - vmatmul: the latch before it + its latency;
//   - vpop.mrb: everything accumulated into that entry, each at issue + latency + i * interval / n;
//   - vxpose.go: pushes of that unit + their latency;
//   - dma.start, sem.signal: vector and scalar stores before it + their latency. Loads see earlier stores
//   without waiting.
// Occupancy of a FIFO counts pops before pushes within a bundle, pushes minus pops in issue order.
// Branches. The chip's delay bundles after a taken branch issue as usual; the target issues no earlier than
// branch + latency of `branch`. A call's return address is ready like a scalar ALU result. Instruction memory
// holds whole code blocks, least recently used out; entering a block that is not there costs its reload. VMEM
// banks: an access to rows r of which m fall into one bank (row mod banks) keeps the load (or store) slots m
// - 1 cycles longer and delays its result by as much. Rows come from the encoded stride, with the base taken
// as row 0; the same row twice counts once.
//
// Transfers. dma.start hands over at issue + its latency; it stalls while its queue holds the chip's queue
// depth. Service starts no earlier than dma_latency after that and proceeds in chunks of up to 4 KiB; a chunk
// ends when the slowest of these has served it, each of which serves one at a time: the queue (one run per
// cycle), the chip's HBM (granules touched, at the sustained rate; granules written in part count twice), the
// VMEM port of that direction. Semaphores change dma_done after the last chunk. Between chips, chunks become
// packets: read as above, one ahead of the link; then each directed link serves one packet at a time at its
// sustained rate (granules of the payload; signals count one granule), taking turns between this chip's
// queues and the incoming links; the head reaches the next chip one hop latency after service began there,
// and is passed on at once; the tail follows at the link's rate. The last packet written completes the
// transfer at the far end after dma_done; the sender's semaphore grows dma_done after the last packet has
// left. A sem.wait that finds its amount issues like any bundle; one that had to wait issues `semaphore`
// latency after the amount came. sem.read is ready after that latency; sem.signal to a core of the same chip
// arrives after it.
#pragma once
#include <cstdint>

namespace tpu::emulate {

/// Transfers, links and HBM are timed in 1/4096 of a core cycle.
inline constexpr int64_t kTicksPerCycle = 4096;
/// Largest chunk of a transfer, and the packet of a link.
inline constexpr int64_t kChunkBytes = 4096;

}  // namespace tpu::emulate
