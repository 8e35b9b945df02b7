// Stage `llo`: loops of machine operations on virtual registers. Written by tpu-lower, read by tpu-schedule.
//
// A module has buffers (arrays in HBM, scalars in SMEM, scratch), kernels (tile pipelines: a grid, blocks that the
// pipeline moves between HBM and VMEM, a body run once per grid step) and one driver: the program of every device, which
// calls kernels, starts DMAs, waits, loops and branches. All code is structured: a list of statements; loops and branches
// own nested lists. Nothing is placed: registers, units (%mxu0, %xlu0, assigned by the scheduler), semaphores, VMEM, SMEM
// and HBM addresses, pipeline depth and the order inside a block are the scheduler's.
//
// Virtual registers may be written more than once (a loop carries a value by writing the register that it reads); the
// order of statements is the meaning. FIFO results are popped in the order of the pushes to the same virtual unit.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "llvm/ADT/SmallVector.h"
#include "tpu/isa/dma.h"
#include "tpu/isa/isa.h"
#include "tpu/isa/layout.h"
#include "tpu/isa/program.h"
#include "tpu/support/element_type.h"

namespace tpu::llo {

// ---------------------------------------------------------------- buffers
enum class Role : uint8_t { kTemp, kArgument, kResult, kConstant };
struct Buffer {
  std::string name;                      // the user's name where there is one
  isa::Space space = isa::Space::kHbm;   // kHbm, kVmem, kSmem
  Role role = Role::kTemp;
  int port = -1;                         // argument or result number
  ElementType element = ElementType::kF32;
  llvm::SmallVector<int64_t, 6> dims;    // per device
  isa::Layout layout;
  int64_t bytes = 0;                     // with padding
  int64_t real_bytes = 0;
  int32_t alias = -1;                    // this buffer takes the storage of that one (donation, in-place update)
  std::vector<uint8_t> data;             // kConstant: laid-out bytes
  uint32_t loc = 0;
};

// ---------------------------------------------------------------- code
struct Code;
/// A register or an immediate, for trip counts, offsets, arguments.
struct Scalar {
  bool is_reg = false;
  int32_t reg = 0;   // virtual scalar register
  int64_t imm = 0;
};

enum class StmtKind : uint8_t {
  kInsn,    // one machine instruction on virtual registers (no br, call, ret, halt, dma.start, sem.*)
  kPseudo,  // a value only the scheduler knows: see Pseudo
  kLoop,    // trip times; induction register counts 0, 1, ...; trip is read once, before
  kWhile,   // block 0 computes `pred`; while it is true, block 1
  kIf,      // pred ? block 0 : block 1
  kCall,    // driver only
  kDma, kSemWait, kSemSignal, kSemAdd, kSemRead,
  kHook,    // kernel only: the companions of the call are stepped here, and nowhere else in the kernel
  kDrain,   // driver only: steps companion `index` until it is done
};

/// sd = value of:
enum class PseudoKind : uint8_t {
  kGrid,       // current index of grid dimension `index` (kernel)
  kParam,      // word `index` of the kernel's parameters (kernel); see KernelParam
  kBlock,      // VMEM byte address of the current slot of block `index` (kernel)
  kScratch,    // VMEM byte address of scratch `index` (kernel)
  kSmem,       // SMEM byte address of module buffer `index` (any code)
  kVmem,       // VMEM byte address of module buffer `index` (any code)
  kHbmRow,     // HBM address / 512 of module buffer `index` (driver): word for a KernelParam or address arithmetic
  kDevice,     // this device's mesh position
  kDeviceWord, // word `index` of this device's row of the device table
};

/// A memory range operand of a DMA: buffer base + imm + sum of scalar registers (bytes).
struct Place {
  enum Kind : uint8_t { kBuffer, kParam, kBlock, kScratch } kind = kBuffer;
  int32_t index = 0;     // module buffer; or kernel parameter (kBuffer kind), block, scratch
  int64_t offset = 0;    // bytes
  llvm::SmallVector<int32_t, 2> regs;  // virtual scalar registers added, in bytes
};
struct DmaDim {
  int64_t count = 1, src_stride = 0, dst_stride = 0;  // bytes
};
struct Dma {
  Place src, dst;
  int64_t run = 0;       // contiguous bytes, multiple of 4
  DmaDim dims[3];
  bool remote = false;
  Scalar device;         // remote: mesh position of the destination device
  int32_t src_sem = -1;  // virtual semaphores; completion adds the total bytes
  int32_t dst_sem = -1;  // on the destination device
  int32_t src_sem_plus = -1, dst_sem_plus = -1;  // scalar registers added to the semaphores' numbers; -1: none
  int64_t totalBytes() const { return run * dims[0].count * dims[1].count * dims[2].count; }
};

struct CallArg {
  bool is_buffer = false;
  int32_t buffer = -1;   // module buffer: passed as two words (base row, byte offset) for HBM, one word (address) for SMEM, VMEM
  Scalar offset;         // byte offset added (HBM) / the word itself where !is_buffer
};

struct Stmt {
  StmtKind kind = StmtKind::kInsn;
  uint32_t op = 0;       // op slot: row of Code::op_locs
  isa::Instruction insn; // kInsn
  PseudoKind pseudo = PseudoKind::kGrid;  // kPseudo
  int32_t reg = 0;       // kPseudo, kSemRead: destination; kLoop: induction register; kWhile, kIf: predicate register
  int32_t index = 0;     // kPseudo: index; kCall: kernel; kSem*: virtual semaphore; kDma: row of Code::dmas;
                         // kDrain: companion
  int32_t sem_plus = -1; // kSem*: scalar register added to the semaphore's number (one of a row of them); -1: none
  bool pred_neg = false; // kIf, kWhile
  Scalar amount;         // kLoop: trip; kSem*: amount
  Scalar device;         // kSemSignal: mesh position
  std::vector<std::vector<Stmt>> blocks;
  std::vector<CallArg> args;              // kCall
  std::vector<int32_t> companions;        // kCall: companions stepped at the kernel's hooks, or once per grid step
                                          // where it has none
  int32_t call_locs = -1;                 // kCall: row of Module::call_locs
};
using Block = std::vector<Stmt>;

struct Code {
  Block body;
  std::vector<Dma> dmas;
  int32_t num_s = 0, num_v = 0, num_m = 0, num_p = 0;   // virtual registers of each class
  int32_t num_mxu = 0, num_xlu = 0;                     // virtual units
  std::vector<uint32_t> op_locs;  // op slot -> row of Module::locs, for code used in one place (driver)
};

/// Whether the code says itself where companions are stepped.
bool hasHook(const Code& code);

// ---------------------------------------------------------------- kernels
struct KernelParam {
  enum Kind : uint8_t { kHbm, kSmem, kVmem, kWord } kind = kHbm;  // kHbm: two words (row, byte offset), else one
  std::string name;
};

/// One strided copy of a block: the scheduler makes a DMA descriptor of it. On the last index of a grid dimension an
/// extent may be shorter (edge): count (or run) is then `edge` instead.
struct TransferDim {
  int64_t count = 1, hbm_stride = 0, vmem_stride = 0;
  int32_t edge_grid = -1;  // grid dimension whose last index shortens this extent
  int64_t edge_count = 0;
};
struct Transfer {
  int64_t hbm_offset = 0, vmem_offset = 0;  // added to the block's own
  int64_t run = 0;                          // bytes
  int32_t run_edge_grid = -1;
  int64_t run_edge = 0;
  TransferDim dims[3];
};
enum class Direction : uint8_t { kIn, kOut };
struct PipelineBlock {
  std::string name;
  int32_t param = 0;                 // kHbm parameter it moves
  Direction direction = Direction::kIn;
  int64_t bytes = 0;                 // VMEM bytes of one slot
  std::vector<int64_t> step;         // per grid dimension: HBM bytes the block moves by per index
  std::vector<Transfer> transfers;
  /// An input is fetched again only when its offset changes; an output is written back when its offset is about to change
  /// or the grid ends, so a body may accumulate over inner grid dimensions with step 0. Slots per block: at least 1,
  /// chosen by the scheduler (2 where it changes) within the kernel's VMEM budget.
};

struct Kernel {
  std::string name;                  // "dot_general.3"
  std::vector<KernelParam> params;
  std::vector<int64_t> grid;         // iterated row-major, last fastest; empty: one step
  std::vector<PipelineBlock> blocks;
  std::vector<int64_t> scratch;      // VMEM bytes of each scratch area (multiples of 4096), kept over the grid
  Code code;                         // body of one grid step
  int64_t vmem_budget = 0;           // bytes the tile choice counted on, double buffering included
  int64_t flops = 0;                 // asked for by the program, per call (for reports)
};

/// A resumable step program that a kernel's tile loop carries along (architecture: companion). Each run of `step` tests
/// and advances at most one piece of work; it sets predicate register `done` when nothing is left, and may be run again
/// after that, to no effect. State lives in SMEM buffers. What is left when the kernel ends, the driver drains.
struct Companion {
  std::string name;
  Code step;
  int32_t done = 0;                  // predicate register of `step`
};

struct Port {
  std::string name;
  isa::SignaturePort signature;      // address is filled by the scheduler
  int32_t buffer = -1;
};

struct Module {
  std::string target;                // "v5e:4x2"
  std::string chip_json;             // a document without it means the built-in chip that `target` names
  int64_t devices = 1;
  std::vector<int64_t> device_order;
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<Companion> companions;
  Code driver;
  int32_t num_sems = 0;              // virtual semaphores, the same on every device
  std::vector<Port> args, results;
  int64_t device_table_words = 0;
  std::vector<uint32_t> device_table;  // devices x device_table_words
  std::vector<std::string> locs;     // row 0 is ""
  /// Kernels are shared by calls: row Stmt::call_locs of a call maps the kernel's op slots to rows of `locs`.
  std::vector<std::vector<uint32_t>> call_locs;
  int64_t required_flops = 0, required_hbm_bytes = 0, required_ici_bytes = 0;
  std::vector<std::pair<std::string, std::string>> options;
};

}  // namespace tpu::llo
