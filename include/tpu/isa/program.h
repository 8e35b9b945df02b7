// Stage `bundles`: a program for one core of every device (SPMD), every slot filled, registers, addresses and semaphores
// physical. Written by the scheduler, read by the assembler; the object file carries the same, encoded.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "llvm/ADT/SmallVector.h"
#include "tpu/isa/dma.h"
#include "tpu/isa/isa.h"
#include "tpu/isa/layout.h"
#include "tpu/support/element_type.h"

namespace tpu::isa {

struct PlacedInstruction {
  Instruction insn;   // Label operands hold a bundle index in imm
  uint32_t loc = 0;   // row of Program::locs; 0 is the empty location
  uint32_t op = 0;    // op slot of the kernel (see Kernel::op_locs), for per-op accounting
};
struct Bundle {
  llvm::SmallVector<PlacedInstruction, 4> insns;  // at most Chip::slots[k] of each slot kind, ordered by slot kind
};

struct CodeRange {   // a kernel or driver section: bundles [begin, end)
  std::string name;
  uint32_t begin = 0, end = 0;
};

struct Constant {    // bytes the loader writes before the run
  Space space = Space::kHbm;
  int64_t address = 0;
  std::vector<uint8_t> bytes;
};

struct PlacedBuffer {  // memory map, for reports: who lives where
  std::string name;
  Space space = Space::kHbm;
  int64_t address = 0, bytes = 0, real_bytes = 0;
  std::string loc;
};

/// One mesh factor of a sharded dimension: the shard index takes (position / stride) % size, major factors first.
struct ShardFactor {
  int64_t stride = 1, size = 1;
};
struct SignaturePort {
  std::string name;
  ElementType element = ElementType::kF32;
  llvm::SmallVector<int64_t, 6> global_dims, local_dims;   // local = ceil(global / shards)
  std::vector<llvm::SmallVector<ShardFactor, 2>> shards;   // per dimension
  Layout layout;
  Space space = Space::kHbm;   // rank 0 stands in SMEM words
  int64_t address = 0;
  int alias = -1;              // argument: the result that takes its place
  std::string loc;
};
/// Which shard of each dimension a device holds.
llvm::SmallVector<int64_t, 6> shardOf(const SignaturePort& port, int64_t device);
/// The lowest device that holds an element of the whole array (row-major position).
int64_t ownerOf(const SignaturePort& port, int64_t devices, int64_t element);

struct Program {
  std::string chip_json;        // the chip description it was made for, canonical text
  std::string target;           // "v5e:4x2"
  int64_t devices = 1;          // devices the program runs on (1: device 0 alone)
  std::vector<int64_t> device_order;  // topology position of mesh position i; empty: identity
  std::vector<Bundle> bundles;
  // Names of bundles, for text: (bundle, name) ascending, names unique; a branch target needs none. A name is letters, digits,
  // '_', '.', '$', starts with none of the digits, and not with ".L" (text writes unnamed targets as .L<bundle>).
  std::vector<std::pair<uint32_t, std::string>> label_at;
  std::vector<CodeRange> ranges;      // ascending, disjoint
  std::vector<std::string> locs;      // row 0 is ""
  std::vector<Constant> constants;
  std::vector<PlacedBuffer> buffers;
  std::vector<SignaturePort> args, results;
  int64_t device_table_words = 0;     // per device, loaded at kDeviceTableAddress
  std::vector<uint32_t> device_table; // devices x device_table_words
  int64_t hbm_bytes = 0, vmem_bytes = 0, smem_bytes = 0;  // high-water marks as placed
  // What the program asks for, for the required floor: counted by the lowering from unpadded shapes, per device.
  int64_t required_flops_bf16 = 0;    // MACs x 2 of dots, weighted to the bf16 rate (int8 counts by its own rate)
  int64_t required_hbm_bytes = 0;     // each argument and result byte once
  int64_t required_ici_bytes = 0;     // bytes each device must send over its cut
  std::vector<std::pair<std::string, std::string>> options;
};

}  // namespace tpu::isa
