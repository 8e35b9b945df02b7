// A chip and a topology as data. Built-in chips are JSON files (lib/target/chips/*.json, embedded at build time); a user's
// file replaces them. Lowering, scheduler, assembler and emulator read their numbers from here and nowhere else.
// Every number of the JSON carries a mark: published (with source), inferred, or assumed with a bracket.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tpu {
class JsonValue;
}

namespace tpu::target {

/// An instruction that yields n FIFO or accumulator entries delivers entry i (from 0) at issue + latency + i * interval / n
/// (vxpose.go: one entry per cycle).
/// Every MXU instruction takes its unit for its own interval, the lane panels of a side of 256 each for itself: with two
/// panels, 16 rows of bf16 take 2 x 4 cycles. vmatpush and vlatch go to the loading path, which runs beside vmatmul: pushes
/// wait for pushes, multiplications for multiplications; a latch waits for the pushes before it (their latency), and a
/// multiplication for the latch before it.
struct Timing {
  int latency = 1;   // cycles from issue until the result may be used without a stall
  int interval = 1;  // cycles until the same unit (slot for ALUs, unit for XLU/EUP/MXU) takes the next
};

struct Chip {
  std::string name;            // "v5e"
  std::string json;            // canonical text it was read from
  int tensor_cores = 1;        // per chip
  bool megacore = false;       // the cores of a chip are one device (v4, v5p); else each core is a device
  int64_t clock_hz = 0;

  // bundle
  std::array<int, 9> slots{};  // by isa::Slot: scalar, valu, load, store, mxu, xlu, eup, pop, misc
  int branch_delay_bundles = 4;
  int64_t imem_bundles = 0;    // instruction memory capacity
  int imem_reload_cycles = 0;  // per miss of a code block
  int imem_block_bundles = 0;

  // registers
  int scalar_regs = 32, vector_regs = 64, mask_regs = 16, predicate_regs = 15;
  int lanes = 128, sublanes = 8;

  // matrix units
  int mxus = 4, mxu_side = 128;
  bool mxu_addressed = false;  // results in addressed accumulators (gen 7), else a FIFO
  int mrf_depth = 0;           // FIFO entries (8x128 words) per MXU
  int mrb_entries = 0;         // accumulator entries per MXU
  std::vector<std::string> mxu_types;  // operand types the MXU takes natively: "f32", "bf16", "s8", "u8", "f8e5m2" ...
  // cross-lane, EUP, vector-to-scalar
  int xlus = 2, xlu_depth = 8, trf_depth = 16, eup_depth = 8, v2s_depth = 8;

  // latency class name -> timing (isa::latencyClassName); every class is present
  std::vector<std::pair<std::string, Timing>> timings;
  Timing timing(llvm::StringRef cls) const;

  // memories (bytes per core unless said)
  int64_t vmem_bytes = 0, smem_bytes = 0, cmem_bytes = 0 /* per chip */;
  int64_t hbm_bytes = 0;         // per chip
  int64_t hbm_usable_bytes = 0;  // per chip, what a program may take
  int64_t hbm_nominal_bytes_per_s = 0, hbm_sustained_bytes_per_s = 0;  // per chip
  int vmem_banks = 0;            // rows interleave over banks; strided accesses conflict
  int semaphores = 256;          // per core

  // DMA
  int64_t dma_latency_ns = 0;        // start to first byte, local
  int64_t dma_done_ns = 0;           // last byte to semaphore
  int dma_queue_depth = 0;           // outstanding per queue before dma.start stalls
  int dma_granule_bytes = 32;
  int64_t vmem_dma_bytes_per_cycle = 0;  // port limit of VMEM for DMA, per direction

  // links
  int ici_links = 0;                 // per chip
  int ici_dims = 0;                  // dimensions of the topology
  int64_t ici_nominal_bytes_per_s = 0, ici_sustained_bytes_per_s = 0;  // one way, per link
  int64_t ici_hop_ns = 0;
  int ici_packet_bytes = 4096;
  std::string wrap_rule;             // "length16" (v5e, v6e), "cubes4" (v4, v5p, v7x), "full" (v2, v3), "none"
  std::vector<int64_t> pod;          // largest box, chips per dimension
  int64_t dcn_bytes_per_s = 0, dcn_latency_ns = 0, pcie_bytes_per_s = 0;  // per chip, one way

  int devicesPerChip() const { return megacore ? 1 : tensor_cores; }
  int coresPerDevice() const { return megacore ? tensor_cores : 1; }
  int64_t hbmUsablePerDevice() const { return hbm_usable_bytes / devicesPerChip(); }
};

/// Names of the built-in chips in order of age.
std::vector<std::string> builtinChips();
/// A built-in chip by name, or a chip file by path (a name with '/' or ending in ".json"). Unknown name: exit 2 with the names.
llvm::Expected<Chip> loadChip(llvm::StringRef name_or_path);
/// A chip file may name a built-in chip as its "base" and state only what differs. Errors are located in `file_name`.
llvm::Expected<Chip> parseChip(llvm::StringRef json, llvm::StringRef file_name);
/// The chip description inside a document.
llvm::Expected<Chip> chipFromJson(const JsonValue& value);
/// The built-in chips as a table for people, one line each (--list-targets).
std::string listTargets();

/// "v5e:4x4", "v4:2x2x2", "2xv5e:16x16", "./mychip.json:4x2"; missing dimensions are 1.
struct Target {
  Chip chip;
  int slices = 1;
  std::vector<int64_t> box;    // chips per dimension, Chip::ici_dims entries
  std::vector<bool> wrap;      // per dimension
  std::string text;            // canonical spelling
  std::vector<std::string> notes;  // "4x3 is not sold: no wrap links assumed" ...
  int64_t numChips() const;
  int64_t numDevices() const;  // chips x devices per chip x slices; device i is row-major over box, core fastest
};
llvm::Expected<Target> parseTarget(llvm::StringRef text);
/// The target that a document remembers: its canonical text and the chip description it was made for; an empty description
/// means a built-in chip.
llvm::Expected<Target> targetFromDocument(llvm::StringRef text, llvm::StringRef chip_json);
llvm::Expected<Target> targetOfChip(llvm::StringRef text, const Chip& chip);
/// Boxes of this chip with that many devices, as "v5e:4x2", for messages.
std::vector<std::string> topologiesFor(const Chip& chip, int64_t devices);
/// The default target for a device count: the squarest box of v5e.
llvm::Expected<Target> defaultTarget(int64_t devices);

/// A directed link of the torus; links of a chip are numbered 2*dim + (0: up, 1: down).
struct Hop {
  int64_t chip;
  int link;
};
/// Dimension-ordered shortest route between chips (ties go up); empty when equal.
llvm::SmallVector<Hop, 8> route(const Target& target, int64_t from_chip, int64_t to_chip);
/// The chip at the other end of a link, or -1 where there is none.
int64_t neighbour(const Target& target, int64_t chip, int link);

}  // namespace tpu::target
