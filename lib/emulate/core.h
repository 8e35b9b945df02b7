// One TensorCore: registers, memories next to it, FIFOs and units, and the loop that issues bundles. A core
// runs by itself until a bundle concerns other actors (a transfer, a semaphore, its end); then it yields with
// the cycle at which that bundle is ready, and the chip resumes it when everything before that cycle has
// happened.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "code.h"
#include "memory.h"
#include "tpu/support/diagnostics.h"
#include "weights.h"

namespace tpu::emulate {

class ChipSim;

struct Fault {
  Code code{};
  int64_t cycle = 0;
  int64_t device = 0;
  uint32_t pc = 0;
  uint32_t loc = 0;
  std::string text;
  bool hang = false;
};

struct Fifo {
  int depth = 0, head = 0, count = 0;
  int64_t last_ready = 0;
  std::vector<int64_t> ready;
  Lazy<Vector> value, shadow;
  int slot(int nth) const { return head + nth < depth ? head + nth : head + nth - depth; }
};

// Rows that gather where no FIFO bounds them.
inline constexpr int kMaxGatheredRows = 1024;

// A matrix unit. Rows gather in `given` until somebody pops a value that they produce, or the weights change.
struct Mxu {
  struct Stage {
    std::shared_ptr<PushedWeights> pushed;
    std::vector<uint8_t> undefined;  // per column
  };
  struct Given {
    Vector value;
    isa::Opcode opcode{};
    uint8_t panel = 0;
  };
  int side = 128, panels = 1;
  std::array<Stage, 2> stage;
  std::shared_ptr<const PushedWeights> weights;
  std::vector<uint8_t> undefined_columns;
  std::vector<Given> given;  // operands of products
  std::vector<uint8_t> undefined_rows;
  int rows = 0;  // gathered
  bool lhs_integer = false;
  int panels_given = 0;  // of the row set being put together
  int computed = 0;      // FIFO entries, from the head, whose values stand in the FIFO
  // addressed accumulators
  Lazy<Vector> acc, acc_shadow;
  std::vector<int64_t> acc_ready;
  std::vector<uint16_t> targets;  // accumulator of each gathered group of 8 rows
};

struct Xlu {
  std::vector<Vector> buffer, shadow;  // 128 x 128 words
};

struct Profile {
  int64_t count = 0, cycles = 0;
};

class Core {
 public:
  enum class State : uint8_t { kReady, kWaitSemaphore, kWaitQueue, kHalted, kFaulted };

  /// Takes registers and VMEM from `arena`.
  void init(const Decoded& decoded, const target::Chip& chip, ChipSim* sim, int64_t device, int local,
            Mode mode, Arena& arena);
  /// What init takes of it.
  static int64_t arenaBytes(const target::Chip& chip);

  /// Takes up the program at this cycle and runs up to the first bundle that concerns others.
  void start(int64_t cycle);
  /// Issues the pending bundle at this cycle and runs on to the next one that concerns others.
  void resume(int64_t cycle);

  // ---- between chip and core
  State state = State::kReady;
  int64_t pending = 0;  // kReady: cycle at which the pending bundle is ready
  bool started = false;
  int64_t wake_resource = 0;  // semaphore or queue that it waits for
  const Op& pendingOp() const { return code->ops[code->bundles[pc].first_op + code->bundles[pc].interact]; }

  // ---- state
  const Decoded* code = nullptr;
  const target::Chip* chip = nullptr;
  ChipSim* sim = nullptr;
  int64_t device = 0;  // mesh position
  int local = 0;       // core of the chip
  Mode mode = Mode::kPlain;
  bool strict = false;  // follows definedness: of everything in strict runs, of scalars in timing-only ones
  uint32_t pc = 0;
  int64_t t = 0;  // issue cycle of the bundle being executed
  std::array<uint32_t, kScalarFile> s{};
  std::array<uint8_t, kPredFile> p{};
  Lazy<Vector> v;  // vectors, then masks
  Lazy<uint32_t> smem;
  Memory vmem;
  uint8_t* vmem_data = nullptr;
  int64_t vmem_bytes = 0;
  std::array<Fifo, kNumFifos> fifos;
  std::vector<Mxu> mxu;
  std::vector<Xlu> xlu;
  // definedness in strict runs: set bits are undefined
  std::array<uint32_t, kScalarFile> s_shadow{};
  std::array<uint8_t, kPredFile> p_shadow{};
  Lazy<Vector> v_shadow;
  Lazy<uint32_t> smem_shadow;
  Memory vmem_shadow;
  // how many transfers read and write each 512-byte row of VMEM (saturating; precise checks behind it)
  Lazy<uint8_t> vmem_read_by_dma, vmem_written_by_dma;
  int smem_transfers = 0;

  // ---- control, set by instructions
  int64_t branch_target = -1;
  int delay_left = 0;
  int64_t branch_floor = 0;
  bool halted = false;

  // ---- accounts
  std::vector<Profile> profile;                                // per bundle
  std::vector<std::array<int64_t, kNumStalls>> kernel_stalls;  // cycles
  std::vector<int64_t> kernel_calls;
  std::vector<int64_t> mxu_busy, mxu_until;  // cycles with rows; end of the last of them
  int64_t start_cycle = 0, end_cycle = 0;
  int64_t skipped = 0;  // predicated off

  Fault fault;
  /// Stops this core with a fault at the bundle being executed.
  void fail(const Op& op, Code code, const llvm::Twine& text);

  uint32_t scalar(const Op& op) const {
    return op.sreg == kNoReg ? static_cast<uint32_t>(op.imm) : s[op.sreg];
  }
  /// Byte address of the memory operand, as a 64-bit number so that nothing wraps unseen.
  int64_t address(const Op& op) const { return op.base == kNoReg ? op.imm : int64_t{s[op.base]} + op.imm; }
  /// Room for `n` entries of a FIFO, ready as the timing of `op` says; the first slot, or -1 after a fault.
  int push(const Op& op, int fifo, int n);
  /// Takes note of rows that go into a matrix unit.
  void countRows(const Op& op);
  /// Makes the accumulators of a vmatmul.acc ready when its results come; false after a fault.
  bool accumulate(const Op& op);
  /// The slot of the oldest entry, which leaves the FIFO; issue has waited for it.
  int pop(int fifo);

 private:
  void runAhead();
  bool prepare();
  void commit();
  int64_t waitFor(const Wait* w, int n, int64_t t) const {
    for (int i = 0; i < n; ++i) t = std::max(t, ready_[w[i].resource] + w[i].bias);
    return t;
  }
  int64_t waitPredicated(const Bundle& b, int64_t t);
  bool waitPops(const Bundle& b, int64_t* t);
  void enterBlock(uint32_t block, int64_t* t);
  void enterKernel(uint32_t kernel);
  void accountStall(const Bundle& b, int64_t until);

  std::array<int64_t, kNumResources> ready_{};
  int64_t next_ = 0;  // earliest issue of the next bundle
  int64_t last_issue_ = 0;
  uint32_t active_ = 0;  // ops of the pending bundle whose predicate holds
  uint32_t block_ = ~0u;
  std::vector<int64_t> block_used_;  // 0: not resident, else 1 + time of last entry
  int64_t blocks_resident_ = 0;
  uint32_t kernel_ = ~0u;
  int64_t kernel_since_ = 0;
  int64_t imem_stall_ = 0;
};

}  // namespace tpu::emulate
