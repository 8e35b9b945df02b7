// Turns bundles into what the issue loop reads: resolved operands, waits and settings on the scoreboard, and
// an order of execution inside each bundle in which everything is read before it is written.
#include <algorithm>
#include <bitset>

#include "code.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "tpu/support/diagnostics.h"

namespace tpu::emulate {
namespace {

using isa::LatencyClass;
using isa::Opcode;
using isa::OperandKind;
using isa::RegClass;
using isa::Slot;

// What an instruction reads and writes inside a bundle: registers by their place on the scoreboard, then
// memories, FIFOs, matrix unit registers.
enum : int {
  kSmem = 128,
  kVmem = 129,
  kFifoAt = 130,
  kStageAt = kFifoAt + kNumFifos,
  kWeightsAt = kStageAt + 2 * kMaxUnits,
  kBufferAt = kWeightsAt + kMaxUnits,
  kAccAt = kBufferAt + kMaxUnits,
  kThings = kAccAt + kMaxUnits
};
struct Effects {
  std::bitset<kThings> reads, writes;
};

int registerBase(RegClass cls) {
  switch (cls) {
    case RegClass::kScalar:
      return kScalars;
    case RegClass::kPred:
      return kPreds;
    case RegClass::kMask:
      return kMasks;
    case RegClass::kVector:
      return kVectors;
  }
  return 0;
}

class Decoder {
 public:
  Decoder(const isa::Program& program, const target::Chip& chip, Mode mode)
      : program_(program), chip_(chip), mode_(mode) {
    for (int i = 0; i < isa::kNumLatencyClasses; ++i)
      timing_[i] = chip.timing(isa::latencyClassName(static_cast<LatencyClass>(i)));
  }

  llvm::Expected<Decoded> run() {
    if (auto e = checkUnits()) return e;
    findLongIntervals();
    out_.program = &program_;
    placeKernels();
    size_t insns = 0;
    for (const isa::Bundle& b : program_.bundles) insns += b.insns.size();
    out_.bundles.reserve(program_.bundles.size());
    out_.ops.reserve(insns + insns / 16);  // and a few copies
    out_.waits.reserve(4 * insns);
    out_.sets.reserve(2 * insns);
    for (size_t i = 0; i < program_.bundles.size(); ++i)
      if (auto e = bundle(i)) return e;
    return std::move(out_);
  }

 private:
  target::Timing timing(Opcode op) const { return timing_[static_cast<int>(isa::info(op).latency)]; }

  llvm::Error bad(size_t pc, const isa::PlacedInstruction* p, const llvm::Twine& text) const {
    const std::string at =
        ("bundle " + llvm::Twine(pc) + (p ? ", '" + isa::print(p->insn) + "'" : std::string()) + ": ").str();
    return fail(tpu::Code::kEmuBadProgram, p && p->loc < program_.locs.size() ? program_.locs[p->loc] : "",
                at + text);
  }

  llvm::Error checkUnits() const {
    if (chip_.mxus > kMaxUnits || chip_.xlus > kMaxUnits)
      return fail(tpu::Code::kEmuBadProgram, "",
                  "more than 8 matrix or cross-lane units cannot be addressed");
    if (chip_.lanes != 128 || chip_.sublanes != 8)
      return fail(tpu::Code::kEmuBadProgram, "",
                  "vector registers of " + llvm::Twine(chip_.sublanes) + " x " + llvm::Twine(chip_.lanes) +
                      " words; this emulator knows 8 x 128");
    return llvm::Error::success();
  }

  // Slot kinds in which some instruction of the program holds its slot for longer than a cycle, and whether
  // any strided access holds a port longer: only these cost the others a look.
  void findLongIntervals() {
    for (const isa::Bundle& b : program_.bundles)
      for (const isa::PlacedInstruction& p : b.insns) {
        const auto& row = isa::info(p.insn.op);
        if (usesSlotInterval(row.slot) && timing(p.insn.op).interval > 1)
          long_slot_[static_cast<int>(row.slot)] = true;
        if (row.slot == Slot::kLoad && conflicts(p.insn) > 0) load_conflicts_ = true;
        if (row.slot == Slot::kStore && conflicts(p.insn) > 0) store_conflicts_ = true;
      }
  }
  static bool usesSlotInterval(Slot slot) {
    return slot != Slot::kMxu && slot != Slot::kXlu && slot != Slot::kEup;
  }

  // Extra cycles of a VMEM access, counted once for every stride and choice of sublanes.
  int conflicts(const isa::Instruction& insn) {
    if (chip_.vmem_banks <= 0) return 0;
    int stride = 1, mask = 0xff;
    const auto& ops = insn.operands;
    if (insn.op == Opcode::vld_strided || insn.op == Opcode::vst_strided ||
        insn.op == Opcode::vst_strided_msk)
      stride = static_cast<int>(ops[2].imm), mask = static_cast<int>(ops[3].imm);
    const auto [at, fresh] = conflicts_.try_emplace({stride, mask}, 0);
    if (fresh) at->second = countConflicts(stride, mask);
    return at->second;
  }

  // Rows that fall into the same bank are taken one after another.
  int countConflicts(int stride, int mask) const {
    llvm::SmallVector<int, 8> rows;
    for (int i = 0; i < 8; ++i)
      if (mask >> i & 1 && !llvm::is_contained(rows, i * stride)) rows.push_back(i * stride);
    int worst = 1;
    for (const int r : rows)
      worst = std::max<int>(worst, static_cast<int>(llvm::count_if(rows, [&](int q) {
                              return q % chip_.vmem_banks == r % chip_.vmem_banks;
                            })));
    return worst - 1;
  }

  void placeKernels() {
    for (const isa::CodeRange& r : program_.ranges) {
      out_.kernels.push_back(r.name);
      out_.kernel_begin.push_back(r.begin);
    }
    out_.kernels.push_back("(other)");
    out_.kernel_begin.push_back(~0u);
    kernel_of_.assign(program_.bundles.size(), static_cast<uint32_t>(program_.ranges.size()));
    for (size_t i = 0; i < program_.ranges.size(); ++i)
      for (uint32_t pc = program_.ranges[i].begin; pc < program_.ranges[i].end && pc < kernel_of_.size();
           ++pc)
        kernel_of_[pc] = static_cast<uint32_t>(i);
  }

  llvm::Error bundle(size_t pc) {
    const isa::Bundle& in = program_.bundles[pc];
    Bundle b;
    b.block = chip_.imem_block_bundles > 0
                  ? static_cast<uint32_t>(pc / static_cast<size_t>(chip_.imem_block_bundles))
                  : 0;
    b.kernel = kernel_of_[pc];
    llvm::SmallVector<Op, 24> ops;
    llvm::SmallVector<Effects, 24> effects;
    std::array<int, isa::kNumSlots> used{};
    for (const isa::PlacedInstruction& p : in.insns) {
      const auto& row = isa::info(p.insn.op);
      const int nth = used[static_cast<int>(row.slot)]++;
      if (nth >= chip_.slots[static_cast<int>(row.slot)])
        return bad(pc, &p,
                   "the bundle has more than " + llvm::Twine(chip_.slots[static_cast<int>(row.slot)]) + " '" +
                       isa::slotName(row.slot) + "' slots");
      Op op;
      Effects fx;
      pending_waits_.clear();
      pending_sets_.clear();
      if (auto e = instruction(pc, p, nth, op, fx)) return e;
      op.first_wait = static_cast<uint32_t>(op_waits_.size());
      op.first_set = static_cast<uint32_t>(op_sets_.size());
      op.num_waits = static_cast<uint8_t>(pending_waits_.size());
      op.num_sets = static_cast<uint8_t>(pending_sets_.size());
      op_waits_.append(pending_waits_.begin(), pending_waits_.end());
      op_sets_.append(pending_sets_.begin(), pending_sets_.end());
      ops.push_back(op);
      effects.push_back(fx);
    }
    if (ops.size() + kScratch > 32) return bad(pc, nullptr, "more than 24 instructions in a bundle");
    llvm::SmallVector<Op, 8> copies;
    llvm::SmallVector<int, 24> order;
    if (auto e = arrange(pc, ops, effects, order, copies)) return e;
    emit(b, ops, order, copies);
    if (auto e = markInteraction(pc, b)) return e;
    out_.bundles.push_back(b);
    op_waits_.clear();
    op_sets_.clear();
    return llvm::Error::success();
  }

  void emit(Bundle& b, llvm::ArrayRef<Op> ops, llvm::ArrayRef<int> order, llvm::ArrayRef<Op> copies) {
    b.first_op = static_cast<uint32_t>(out_.ops.size());
    b.first_wait = static_cast<uint32_t>(out_.waits.size());
    b.first_set = static_cast<uint32_t>(out_.sets.size());
    for (const int i : order) {
      Op op = ops[i];
      const uint32_t waits = op.first_wait, sets = op.first_set;
      op.first_wait = static_cast<uint32_t>(out_.waits.size());
      op.first_set = static_cast<uint32_t>(out_.sets.size());
      out_.waits.insert(out_.waits.end(), op_waits_.begin() + waits,
                        op_waits_.begin() + waits + op.num_waits);
      out_.sets.insert(out_.sets.end(), op_sets_.begin() + sets, op_sets_.begin() + sets + op.num_sets);
      ++b.slots[static_cast<size_t>(isa::info(op.opcode).slot)];
      b.predicated |= op.pred != isa::kAlways || op.pred_neg;
      b.pops |= op.pop_fifo != kNoFifo || op.opcode == Opcode::vpop_mrb;
      out_.ops.push_back(op);
    }
    out_.ops.insert(out_.ops.end(), copies.begin(), copies.end());
    b.num_insns = static_cast<uint8_t>(order.size());
    b.num_ops = static_cast<uint8_t>(order.size() + copies.size());
    b.num_waits = static_cast<uint16_t>(out_.waits.size() - b.first_wait);
    b.num_sets = static_cast<uint16_t>(out_.sets.size() - b.first_set);
  }

  llvm::Error markInteraction(size_t pc, Bundle& b) {
    for (int i = 0; i < b.num_insns; ++i) {
      const Opcode op = out_.ops[b.first_op + i].opcode;
      const bool concerns = op == Opcode::dma_start || op == Opcode::sem_wait || op == Opcode::sem_add ||
                            op == Opcode::sem_signal || op == Opcode::sem_read || op == Opcode::halt;
      if (!concerns) continue;
      if (b.interact >= 0) return bad(pc, nullptr, "two transfers or semaphore instructions in a bundle");
      b.interact = static_cast<int8_t>(i);
    }
    return llvm::Error::success();
  }

  // An order in which readers come before writers. Where instructions exchange registers, results go through
  // scratch.
  llvm::Error arrange(size_t pc, llvm::MutableArrayRef<Op> ops, llvm::MutableArrayRef<Effects> fx,
                      llvm::SmallVectorImpl<int>& order, llvm::SmallVectorImpl<Op>& copies) {
    const int n = static_cast<int>(ops.size());
    std::bitset<kThings> written;
    bool ordered = true;  // as it stands
    for (int i = 0; i < n; ++i) {
      ordered &= (written & fx[i].reads).none();
      written |= fx[i].writes;
      order.push_back(i);
    }
    if (ordered) return llvm::Error::success();
    order.clear();
    std::array<bool, 32> done{};
    while (static_cast<int>(order.size()) < n) {
      int next = -1;
      for (int i = 0; i < n && next < 0; ++i) {
        if (done[i]) continue;
        bool free = true;
        for (int j = 0; j < n && free; ++j) free = j == i || done[j] || (fx[i].writes & fx[j].reads).none();
        // Of two writers of one thing the later in the bundle wins.
        for (int j = 0; j < i && free; ++j) free = done[j] || (fx[i].writes & fx[j].writes).none();
        if (free) next = i;
      }
      if (next < 0) {
        if (!redirect(ops, fx, done, copies))
          return bad(pc, nullptr, "its instructions exchange values in a circle");
        continue;
      }
      done[next] = true;
      order.push_back(next);
    }
    return llvm::Error::success();
  }

  bool redirect(llvm::MutableArrayRef<Op> ops, llvm::MutableArrayRef<Effects> fx,
                const std::array<bool, 32>& done, llvm::SmallVectorImpl<Op>& copies) {
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto& row = isa::info(ops[i].opcode);
      const OperandKind kind = row.operands[0];
      if (done[i] || !isa::isDef(kind) || kind == OperandKind::Vx || copies.size() == kScratch) continue;
      const RegClass cls = kind == OperandKind::Vd   ? RegClass::kVector
                           : kind == OperandKind::Md ? RegClass::kMask
                           : kind == OperandKind::Sd ? RegClass::kScalar
                                                     : RegClass::kPred;
      const int own = kind == OperandKind::Md ? ops[i].d - kMaskFile : ops[i].d;
      const size_t at = static_cast<size_t>(registerBase(cls) + own);
      if (!fx[i].writes.test(at)) continue;  // redirected already
      const int scratch = (cls == RegClass::kVector   ? 64
                           : cls == RegClass::kMask   ? kMaskFile + 16
                           : cls == RegClass::kScalar ? 32
                                                      : 16) +
                          static_cast<int>(copies.size());
      Op copy;
      copy.exec = copyExec(cls, mode_ == Mode::kStrict);
      if (mode_ == Mode::kTiming && (cls == RegClass::kScalar || cls == RegClass::kPred))
        copy.exec = copyExec(cls, true);
      if (mode_ == Mode::kTiming && (cls == RegClass::kVector || cls == RegClass::kMask))
        copy.exec = timingExecOf(Opcode::vmov);
      copy.d = ops[i].d;
      copy.a = static_cast<uint8_t>(scratch);
      copy.pred = ops[i].pred;
      copy.pred_neg = ops[i].pred_neg;
      copy.loc = ops[i].loc;
      copies.push_back(copy);
      ops[i].d = static_cast<uint8_t>(scratch);
      fx[i].writes.reset(at);
      return true;
    }
    return false;
  }

  void waitOn(int resource, int bias = 0) {
    pending_waits_.push_back({static_cast<uint16_t>(resource), static_cast<int16_t>(bias)});
  }
  void set(int resource, int after) {
    pending_sets_.push_back({static_cast<uint16_t>(resource), static_cast<uint16_t>(after)});
  }

  llvm::Error instruction(size_t pc, const isa::PlacedInstruction& p, int nth, Op& op, Effects& fx) {
    const auto& row = isa::info(p.insn.op);
    const target::Timing time = timing(p.insn.op);
    op.opcode = p.insn.op;
    op.exec = mode_ == Mode::kTiming ? timingExecOf(p.insn.op) : execOf(p.insn.op, mode_ == Mode::kStrict);
    op.body = vectorBody(p.insn.op);
    op.flow = flowOf(p.insn.op);
    op.loc = p.loc;
    op.latency = static_cast<uint16_t>(time.latency);
    op.interval = static_cast<uint16_t>(time.interval);
    op.pred = static_cast<uint8_t>(p.insn.pred);
    op.pred_neg = p.insn.pred_neg;
    if (op.pred != isa::kAlways || op.pred_neg) fx.reads.set(kPreds + op.pred);
    const int extra = row.slot == Slot::kLoad || row.slot == Slot::kStore ? conflicts(p.insn) : 0;
    const int latency = time.latency + (row.slot == Slot::kLoad ? extra : 0);
    if (auto e = operands(pc, p, op, fx, latency)) return e;
    const int slot = static_cast<int>(row.slot);
    if (usesSlotInterval(row.slot) && long_slot_[slot]) {
      waitOn(kSlotUnits + slot * 8 + nth);
      if (time.interval > 1) set(kSlotUnits + slot * 8 + nth, time.interval);
    }
    if (row.slot == Slot::kLoad && load_conflicts_) waitOn(kLoadPort);
    if (row.slot == Slot::kLoad && extra) set(kLoadPort, 1 + extra);
    if (row.slot == Slot::kStore && store_conflicts_) waitOn(kStorePort);
    if (row.slot == Slot::kStore && extra) set(kStorePort, 1 + extra);
    return units(pc, p, op, fx, time);
  }

  llvm::Error operands(size_t pc, const isa::PlacedInstruction& p, Op& op, Effects& fx, int latency) {
    const auto& row = isa::info(p.insn.op);
    int sources = 0, shorts = 0;
    for (int i = 0; i < p.insn.num_operands; ++i) {
      const isa::Operand& o = p.insn.operands[i];
      const OperandKind kind = row.operands[i];
      if (o.virt) return bad(pc, &p, "virtual register");
      switch (o.kind) {
        case isa::Operand::kReg: {
          if (auto e = checkRegister(pc, p, o)) return e;
          const int at = registerBase(o.cls) + o.reg;
          const int number = o.cls == RegClass::kMask ? kMaskFile + o.reg : o.reg;
          if (isa::isUse(kind)) {
            fx.reads.set(at);
            waitOn(at);
          }
          if (isa::isDef(kind)) {
            fx.writes.set(at);
            waitOn(at, -latency);
            set(at, latency);
            op.d = static_cast<uint8_t>(number);
          } else if (kind == OperandKind::SI || kind == OperandKind::S16) {
            // Semaphore instructions have two of these; the second stands in b.
            (op.sreg == kNoReg && !second(p.insn.op, i) ? op.sreg : op.b) = static_cast<uint8_t>(number);
            if (second(p.insn.op, i)) op.small[1] = 1;
          } else {
            (sources == 0 ? op.a : sources == 1 ? op.b : op.c) = static_cast<uint8_t>(number);
            ++sources;
            op.sources += o.cls == RegClass::kVector || o.cls == RegClass::kMask;
          }
          break;
        }
        case isa::Operand::kMem:
          op.imm = static_cast<int32_t>(o.imm);
          if (o.has_base) {
            op.base = static_cast<uint8_t>(o.reg);
            fx.reads.set(kScalars + o.reg);
            waitOn(kScalars + o.reg);
          }
          break;
        case isa::Operand::kUnit: {
          const int have = kind == OperandKind::Mxu ? chip_.mxus : chip_.xlus;
          if (o.reg < 0 || o.reg >= have)
            return bad(pc, &p, "unit " + llvm::Twine(o.reg) + " of " + llvm::Twine(have));
          op.unit = static_cast<uint8_t>(o.reg);
          break;
        }
        case isa::Operand::kLabel:
          if (o.imm < 0 || static_cast<size_t>(o.imm) >= program_.bundles.size())
            return bad(pc, &p, "branch out of the program");
          op.imm = static_cast<int32_t>(o.imm);
          break;
        case isa::Operand::kImm:
          if (kind == OperandKind::SI || kind == OperandKind::S16 || kind == OperandKind::U32) {
            if (second(p.insn.op, i)) {
              op.amount = static_cast<int32_t>(o.imm);
            } else {
              op.imm = static_cast<int32_t>(o.imm);
            }
          } else {
            op.small[shorts++] = static_cast<uint8_t>(o.imm);
            if (row.slot != Slot::kMxu && row.slot != Slot::kPop && row.slot != Slot::kLoad &&
                row.slot != Slot::kStore)
              op.imm = static_cast<int32_t>(o.imm);
          }
          break;
      }
    }
    if (op.pred != isa::kAlways) waitOn(kPreds + op.pred);
    return llvm::Error::success();
  }
  // sem.wait, sem.add: the amount, after the semaphore.
  static bool second(Opcode op, int i) { return i == 1 && (op == Opcode::sem_wait || op == Opcode::sem_add); }

  llvm::Error checkRegister(size_t pc, const isa::PlacedInstruction& p, const isa::Operand& o) const {
    const int have = o.cls == RegClass::kScalar   ? chip_.scalar_regs
                     : o.cls == RegClass::kVector ? chip_.vector_regs
                     : o.cls == RegClass::kMask   ? chip_.mask_regs
                                                  : 16;
    if (o.reg < 0 || o.reg >= have)
      return bad(pc, &p, "the chip has " + llvm::Twine(have) + " registers of this kind");
    return llvm::Error::success();
  }

  void pushes(Op& op, Effects& fx, int fifo, int entries) {
    op.push_fifo = static_cast<uint8_t>(fifo);
    op.entries = static_cast<uint8_t>(entries);
    fx.writes.set(kFifoAt + fifo);
  }

  llvm::Error units(size_t pc, const isa::PlacedInstruction& p, Op& op, Effects& fx,
                    const target::Timing& time) {
    const auto& row = isa::info(p.insn.op);
    const isa::FifoEffect fifo = isa::fifoEffect(p.insn, chip_.mxu_side);
    if (const int f = fifoIndex(fifo.pop, op.unit); f >= 0) {
      op.pop_fifo = static_cast<uint8_t>(f);
      fx.reads.set(kFifoAt + f);
    }
    if (const int f = fifoIndex(fifo.push, op.unit); f >= 0) pushes(op, fx, f, fifo.entries);
    switch (row.latency) {
      case LatencyClass::kScalarLoad:
        fx.reads.set(kSmem);
        break;
      case LatencyClass::kScalarStore:
        fx.writes.set(kSmem);
        set(kScalarStores, time.latency);
        break;
      case LatencyClass::kVectorLoad:
        fx.reads.set(kVmem);
        break;
      case LatencyClass::kVectorStore:
        fx.writes.set(kVmem);
        set(kVectorStores, time.latency);
        break;
      case LatencyClass::kDmaIssue:
        fx.reads.set(kSmem);
        waitOn(kScalarStores);
        waitOn(kVectorStores);
        break;
      case LatencyClass::kSemaphore:
        if (p.insn.op != Opcode::sem_signal) break;
        waitOn(kScalarStores);
        waitOn(kVectorStores);
        break;
      case LatencyClass::kEupPush:
        waitOn(kEupUnit);
        set(kEupUnit, time.interval);
        break;
      case LatencyClass::kXluReduce:
      case LatencyClass::kXluPermute:
      case LatencyClass::kXposePush:
      case LatencyClass::kXposeGo:
        xluUnit(row.latency, op, fx, time);
        break;
      default:
        break;
    }
    if (p.insn.op == Opcode::vxpose_go &&
        (op.small[1] % 8 || op.small[1] == 0 || op.small[0] + op.small[1] > 128))
      return bad(pc, &p, "columns must lie in the buffer, their number a multiple of 8");
    if (row.slot == Slot::kMxu || p.insn.op == Opcode::vpop_mrb || p.insn.op == Opcode::vpop_mrf ||
        p.insn.op == Opcode::vpop_mrf_half)
      return mxuUnit(pc, p, op, fx, time);
    return llvm::Error::success();
  }

  void xluUnit(LatencyClass cls, const Op& op, Effects& fx, const target::Timing& time) {
    waitOn(kXluUnit + op.unit);
    set(kXluUnit + op.unit, time.interval);
    if (cls == LatencyClass::kXposePush) {
      fx.writes.set(kBufferAt + op.unit);
      set(kXposeDone + op.unit, time.latency);
    } else if (cls == LatencyClass::kXposeGo) {
      fx.reads.set(kBufferAt + op.unit);
      waitOn(kXposeDone + op.unit);
    }
  }

  llvm::Error mxuUnit(size_t pc, const isa::PlacedInstruction& p, Op& op, Effects& fx,
                      const target::Timing& time) {
    const auto& row = isa::info(p.insn.op);
    const int m = op.unit;
    const int panels = isa::mxuPanels(chip_.mxu_side);
    const bool acc = row.mnemonic.starts_with("vmatmul.acc");
    const bool fifo_only = row.mnemonic.starts_with("vmatmul.") && !acc;
    if (chip_.mxu_addressed
            ? (fifo_only || p.insn.op == Opcode::vpop_mrf || p.insn.op == Opcode::vpop_mrf_half)
            : (acc || p.insn.op == Opcode::vpop_mrb))
      return bad(pc, &p,
                 chip_.mxu_addressed ? "this chip's matrix units have addressed accumulators, no FIFO"
                                     : "this chip's matrix units have a FIFO, no addressed accumulators");
    if (p.insn.op == Opcode::vpop_mrb) fx.reads.set(kAccAt + m);
    if (row.slot != Slot::kMxu) return llvm::Error::success();
    if (p.insn.op == Opcode::vlatch) {
      const int stage = 2 * m + op.small[0];
      fx.reads.set(kStageAt + stage);
      fx.writes.set(kWeightsAt + m);
      waitOn(kStaged + stage);
      waitOn(kLatchPath + m);
      set(kLatchPath + m, time.interval);
      set(kStageFree + stage, time.interval);
      set(kWeights + m, time.latency);
      return llvm::Error::success();
    }
    const llvm::StringRef type = row.mnemonic.rsplit('.').second;
    if (!llvm::is_contained(chip_.mxu_types, type))
      return bad(pc, &p, "this chip's matrix units do not take " + type);
    const int rows = isa::mxuRows(p.insn.op);
    const int half_or_panel = row.mnemonic.starts_with("vmatpush") ? op.small[2] : op.small[0];
    const int choices = chip_.mxu_side == 64 ? 2 : panels;
    if (half_or_panel >= choices)
      return bad(pc, &p, "lane panel " + llvm::Twine(half_or_panel) + " of " + llvm::Twine(choices));
    if (row.mnemonic.starts_with("vmatpush")) {
      if ((op.small[1] + 1) * rows > chip_.mxu_side)
        return bad(pc, &p,
                   "row group " + llvm::Twine(op.small[1]) + " lies beyond the side of " +
                       llvm::Twine(chip_.mxu_side));
      const int stage = 2 * m + op.small[0];
      fx.writes.set(kStageAt + stage);
      waitOn(kStageFree + stage);
      waitOn(kPushPath + m);
      set(kPushPath + m, time.interval);
      set(kStaged + stage, time.latency);
      return llvm::Error::success();
    }
    fx.reads.set(kWeightsAt + m);
    waitOn(kWeights + m);
    waitOn(kMatmulPath + m);
    set(kMatmulPath + m, time.interval);
    if (acc) {
      fx.writes.set(kAccAt + m);
      const bool last = chip_.mxu_side < 128 || op.small[0] == panels - 1;
      op.entries = static_cast<uint8_t>(last ? rows / 8 * panels : 0);
    }
    return llvm::Error::success();
  }

  static int fifoIndex(isa::Fifo fifo, int unit) {
    switch (fifo) {
      case isa::Fifo::kNone:
        return -1;
      case isa::Fifo::kV2s:
        return kV2sFifo;
      case isa::Fifo::kEup:
        return kEupFifo;
      case isa::Fifo::kXlu:
        return kXluFifo + unit;
      case isa::Fifo::kTrf:
        return kTrfFifo + unit;
      case isa::Fifo::kMrf:
        return kMrfFifo + unit;
    }
    return -1;
  }

  const isa::Program& program_;
  const target::Chip& chip_;
  const Mode mode_;
  Decoded out_;
  std::array<target::Timing, isa::kNumLatencyClasses> timing_;
  std::array<bool, isa::kNumSlots> long_slot_{};
  bool load_conflicts_ = false, store_conflicts_ = false;
  llvm::DenseMap<std::pair<int, int>, int> conflicts_;  // by stride and mask
  std::vector<uint32_t> kernel_of_;
  llvm::SmallVector<Wait, 16> pending_waits_;
  llvm::SmallVector<Set, 16> pending_sets_;
  llvm::SmallVector<Wait, 64> op_waits_;
  llvm::SmallVector<Set, 64> op_sets_;
};

}  // namespace

llvm::Expected<Decoded> decode(const isa::Program& program, const target::Chip& chip, Mode mode) {
  return Decoder(program, chip, mode).run();
}

}  // namespace tpu::emulate
