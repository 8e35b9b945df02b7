// A program decoded once for all devices: instructions with their function, operands resolved to indices, and
// for every bundle flat lists of what it waits for and what it makes busy. The issue loop touches nothing
// else.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "llvm/Support/Error.h"
#include "tpu/emulate/emulate.h"
#include "tpu/emulate/vector_bodies.h"
#include "tpu/isa/program.h"
#include "tpu/target/chip.h"

namespace tpu::emulate {

class Core;
struct Op;
using Exec = void (*)(Core&, const Op&);

// ---- things with a time at which they become ready or free: the scoreboard
inline constexpr int kMaxUnits = 8;
enum Resource : uint16_t {
  kScalars = 0,
  kPreds = 32,
  kMasks = 48,
  kVectors = 64,
  kEupUnit = 128,
  kXluUnit = 129,
  kXposeDone = kXluUnit + kMaxUnits,   // pushes into the transpose buffer
  kPushPath = kXposeDone + kMaxUnits,  // weights into staging registers
  kMatmulPath = kPushPath + kMaxUnits,
  kLatchPath = kMatmulPath + kMaxUnits,
  kStaged = kLatchPath + kMaxUnits,      // two per MXU: pushes have arrived
  kStageFree = kStaged + 2 * kMaxUnits,  // two per MXU: the latch has read it
  kWeights = kStageFree + 2 * kMaxUnits,
  kVectorStores = kWeights + kMaxUnits,
  kScalarStores,
  kLoadPort,
  kStorePort,
  kSlotUnits,  // eight per slot kind, where an interval is longer than a cycle
  kNumResources = kSlotUnits + 8 * isa::kNumSlots,
};
Stall stallOf(int resource);

// ---- FIFOs of a core
enum FifoIndex : uint8_t {
  kEupFifo = 0,
  kV2sFifo = 1,
  kXluFifo = 2,
  kTrfFifo = kXluFifo + kMaxUnits,
  kMrfFifo = kTrfFifo + kMaxUnits
};
inline constexpr int kNumFifos = kMrfFifo + kMaxUnits;
inline constexpr uint8_t kNoFifo = 0xff;

// ---- the register file of vectors and masks is one array; a few scratch registers let a bundle exchange
// registers
inline constexpr int kScratch = 8;
inline constexpr int kMaskFile = 64 + kScratch;
inline constexpr int kFileSize = kMaskFile + 16 + kScratch;
inline constexpr int kScalarFile = 32 + kScratch;
inline constexpr int kPredFile = 16 + kScratch;
inline constexpr uint8_t kNoReg = 0xff;

struct Wait {
  uint16_t resource;
  int16_t bias;  // issue >= ready + bias
};
struct Set {
  uint16_t resource;
  uint16_t after;  // ready = issue + after
};

/// How definedness goes through a vector instruction in a strict run.
enum class Flow : uint8_t {
  kDefined,  // no source
  kWords,    // any undefined bit of a word makes the result's word undefined
  kBits,     // bit by bit (exclusive or)
  kAnd,
  kOr,      // a defined 0 (1) decides
  kShift,   // the body moves definedness as it moves bits; an undefined amount spoils the word
  kMove,    // the body moves definedness as it moves bits
  kHalves,  // vpack.bf16
  kSelect,
  kLanes,    // any undefined word spoils its sublane
  kPermute,  // as kMove by b; an undefined index spoils the word
};

struct Op {
  Exec exec = nullptr;
  VectorBody body = nullptr;
  uint32_t first_wait = 0, first_set = 0;
  uint8_t num_waits = 0, num_sets = 0;
  isa::Opcode opcode{};
  uint8_t pred = isa::kAlways;
  bool pred_neg = false;
  uint8_t d = 0, a = 0, b = 0, c = 0;  // numbers in the file of their class
  uint8_t sreg = kNoReg;               // scalar register instead of imm
  uint8_t base = kNoReg;               // base register of a memory operand
  uint8_t unit = 0;
  uint8_t pop_fifo = kNoFifo, push_fifo = kNoFifo;
  uint8_t entries = 0;           // pushed, or accumulated
  uint8_t small[3] = {0, 0, 0};  // the short immediates in the order of the text
  Flow flow = Flow::kWords;
  uint8_t sources = 0;  // vector and mask sources
  uint16_t latency = 0, interval = 0;
  int32_t imm = 0;     // immediate, memory offset, or branch target
  int32_t amount = 0;  // of sem.wait and sem.add, unless small[1] says that it stands in register b
  uint32_t loc = 0;
};

struct Bundle {
  uint32_t first_op = 0, first_wait = 0, first_set = 0;
  uint8_t num_ops = 0;  // including copies from scratch registers, which come last
  uint8_t num_insns = 0;
  bool predicated = false;
  bool pops = false;
  int8_t interact = -1;  // index of the op that concerns other actors: dma.start, sem.*, halt
  uint16_t num_waits = 0, num_sets = 0;
  uint32_t block = 0;   // of instruction memory
  uint32_t kernel = 0;  // index into Decoded::kernels
  std::array<uint8_t, isa::kNumSlots> slots{};  // instructions
};

struct Decoded {
  std::vector<Bundle> bundles;
  std::vector<Op> ops;
  std::vector<Wait> waits;
  std::vector<Set> sets;
  std::vector<std::string> kernels;  // names of ranges; the last one is for what no range covers
  std::vector<uint32_t> kernel_begin;
  const isa::Program* program = nullptr;
};

/// What a run computes: values; values and their definedness; or scalars and times only, where what would
/// come from vectors is undefined.
enum class Mode : uint8_t { kPlain, kStrict, kTiming };

/// Decodes for this chip; refuses what the chip does not have.
llvm::Expected<Decoded> decode(const isa::Program& program, const target::Chip& chip, Mode mode);

/// The function that carries out an instruction; every row of instructions.def has one.
Exec execOf(isa::Opcode op, bool strict);
/// What a timing-only run does for it: FIFOs are counted, vector values are not computed.
Exec timingExecOf(isa::Opcode op);
/// Copies a scratch register to the register that it stands for.
Exec copyExec(isa::RegClass cls, bool strict);
Flow flowOf(isa::Opcode op);

}  // namespace tpu::emulate
