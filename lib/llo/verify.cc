#include "tpu/llo/verify.h"

#include <algorithm>
#include <map>
#include <vector>

#include "tpu/llo/document.h"

namespace tpu::llo {
namespace {

using isa::Opcode;
using isa::OperandKind;

/// Entries in the FIFOs that code has pushed and not popped, by FIFO and unit.
using FifoBalance = std::map<std::pair<int, int>, int64_t>;

class CodeVerifier {
 public:
  CodeVerifier(const Module& m, const target::Chip& chip, const Code& code, const Kernel* kernel, bool driver,
               std::string where)
      : m_(m), chip_(chip), code_(code), kernel_(kernel), driver_(driver), where_(std::move(where)) {}

  llvm::Error run() {
    const int32_t counts[4] = {code_.num_s, code_.num_v, code_.num_m, code_.num_p};
    for (int c = 0; c < 4; ++c) defined_[c].assign(counts[c], 0);
    block(code_.body);
    if (problem_.empty()) balanced(fifo_, {}, "the code");
    for (size_t i = 0; i < code_.dmas.size() && problem_.empty(); ++i) transfer(code_.dmas[i]);
    if (problem_.empty()) return llvm::Error::success();
    return fail(tpu::Code::kBadLlo, loc_, where_ + ": " + problem_);
  }

  /// Whether a register is written on every path through the code.
  bool defines(isa::RegClass cls, int32_t reg) const { return isDefined(cls, reg); }

 private:
  using Defined = std::array<std::vector<char>, 4>;

  void bad(const std::string& text) {
    if (problem_.empty()) problem_ = text;
  }
  bool isDefined(isa::RegClass cls, int32_t reg) const {
    const std::vector<char>& d = defined_[static_cast<int>(cls)];
    return reg >= 0 && reg < static_cast<int32_t>(d.size()) && d[reg];
  }
  void use(isa::RegClass cls, int32_t reg) {
    if (!isDefined(cls, reg)) bad(registerName(cls, reg) + " is read before it is written");
  }
  void define(isa::RegClass cls, int32_t reg) {
    std::vector<char>& d = defined_[static_cast<int>(cls)];
    if (reg < 0 || reg >= static_cast<int32_t>(d.size()))
      return bad(registerName(cls, reg) + " is beyond the function's registers");
    d[reg] = 1;
  }
  void useScalar(const Scalar& s) {
    if (s.is_reg) use(isa::RegClass::kScalar, s.reg);
  }
  void meet(const Defined& other) {
    for (int c = 0; c < 4; ++c)
      for (size_t r = 0; r < defined_[c].size(); ++r) defined_[c][r] &= other[c][r];
  }
  void balanced(const FifoBalance& now, const FifoBalance& before, const std::string& what) {
    auto at = [](const FifoBalance& b, std::pair<int, int> key) {
      const auto it = b.find(key);
      return it == b.end() ? 0 : it->second;
    };
    for (const auto& [key, n] : now)
      if (n != at(before, key))
        bad(what + " leaves " + std::to_string(n - at(before, key)) + " entries in a FIFO");
  }

  void block(const Block& b) {
    for (const Stmt& s : b) {
      if (!problem_.empty()) return;
      loc_ = s.op < code_.op_locs.size() && code_.op_locs[s.op] < m_.locs.size()
                 ? m_.locs[code_.op_locs[s.op]]
                 : "";
      stmt(s);
    }
  }

  void stmt(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::kInsn:
        return insn(s.insn);
      case StmtKind::kPseudo:
        return pseudo(s);
      case StmtKind::kLoop:
        return loop(s);
      case StmtKind::kWhile:
        return whileLoop(s);
      case StmtKind::kIf:
        return branch(s);
      case StmtKind::kCall:
        return call(s);
      case StmtKind::kDma:
        return dma(s);
      case StmtKind::kSemRead:
        define(isa::RegClass::kScalar, s.reg);
        return semaphore(s);
      case StmtKind::kSemSignal:
        useScalar(s.device);
        [[fallthrough]];
      case StmtKind::kSemWait:
      case StmtKind::kSemAdd:
        useScalar(s.amount);
        return semaphore(s);
      case StmtKind::kHook:
        return hook();
      case StmtKind::kDrain:
        if (!driver_) return bad("only the driver drains companions");
        if (s.index < 0 || s.index >= static_cast<int32_t>(m_.companions.size()))
          bad("companion " + std::to_string(s.index) + " does not exist");
        return;
    }
  }

  // A companion may use any unit of its own, and the FIFOs that there is one of.
  void hook() {
    if (!kernel_) return bad("only kernels have hooks for companions");
    for (const auto& [key, n] : fifo_)
      if (n != 0 &&
          (key.first == static_cast<int>(isa::Fifo::kEup) || key.first == static_cast<int>(isa::Fifo::kV2s)))
        bad("a hook for companions with entries left in a FIFO");
  }
  void semaphore(const Stmt& s) {
    if (s.sem_plus >= 0) use(isa::RegClass::kScalar, s.sem_plus);
    semaphore(s.index);
  }

  void semaphore(int32_t index) {
    if (index < 0 || index >= m_.num_sems)
      bad("semaphore " + std::to_string(index) + " is beyond the module's");
  }

  void insn(const isa::Instruction& i) {
    const isa::InstructionInfo& row = isa::info(i.op);
    const std::string text = isa::print(i);
    switch (i.op) {
      case Opcode::br:
      case Opcode::call:
      case Opcode::ret:
      case Opcode::halt:
      case Opcode::dma_start:
      case Opcode::sem_wait:
      case Opcode::sem_add:
      case Opcode::sem_signal:
      case Opcode::sem_read:
        return bad("'" + text + "' is not an instruction of llo");
      default:
        break;
    }
    if (i.num_operands != row.num_operands) return bad("'" + text + "' has the wrong number of operands");
    const bool predicated = i.pred_virt || i.pred != isa::kAlways;
    const isa::FifoEffect e = isa::fifoEffect(i, chip_.mxu_side);
    if (predicated && (e.push != isa::Fifo::kNone || e.pop != isa::Fifo::kNone))
      return bad("'" + text + "': FIFO accesses cannot be predicated");
    for (int k = 0; k < i.num_operands; ++k) {
      const isa::Operand& o = i.operands[k];
      if (o.kind == isa::Operand::kMem && !o.has_base)
        return bad("'" + text + "' has an absolute address: memory is reached through a register");
      if (o.kind == isa::Operand::kUnit) {
        const int32_t units = row.operands[k] == OperandKind::Xlu ? code_.num_xlu : code_.num_mxu;
        if (!o.virt || o.reg < 0 || o.reg >= units)
          return bad("'" + text + "' names a unit beyond the function's");
      }
    }
    isa::forEachRegister(i, [&](isa::RegClass cls, int reg, bool virt, bool read, bool) {
      if (!virt) return bad("'" + text + "' names a physical register");
      if (read && i.op != Opcode::vpop_mrf_half) use(cls, reg);  // fills a register by halves
    });
    isa::forEachRegister(i, [&](isa::RegClass cls, int reg, bool, bool, bool write) {
      if (!write) return;
      for (int32_t fixed : induction_)
        if (cls == isa::RegClass::kScalar && reg == fixed)
          bad("'" + text + "' writes the counter of a loop around it");
      define(cls, reg);
    });
    if (!problem_.empty() && problem_.find('\'') == std::string::npos)
      problem_ = "'" + text + "': " + problem_;
    if (e.push != isa::Fifo::kNone) fifo_[{static_cast<int>(e.push), isa::unitOf(i)}] += e.entries;
    if (e.pop != isa::Fifo::kNone && --fifo_[{static_cast<int>(e.pop), isa::unitOf(i)}] < 0)
      bad("'" + text + "' pops an entry that nothing pushed");
  }

  void pseudo(const Stmt& s) {
    define(isa::RegClass::kScalar, s.reg);
    const int64_t i = s.index;
    auto within = [&](int64_t n) {
      if (i < 0 || i >= n) bad((pseudoName(s.pseudo) + " " + std::to_string(i)).str() + " does not exist");
    };
    auto ofKernel = [&] {
      if (!kernel_) bad((pseudoName(s.pseudo) + " is a value of kernels only").str());
      return kernel_ != nullptr;
    };
    auto buffer = [&](isa::Space space) {
      within(static_cast<int64_t>(m_.buffers.size()));
      if (problem_.empty() && m_.buffers[i].space != space)
        bad((pseudoName(s.pseudo) + " of a buffer in another memory").str());
    };
    switch (s.pseudo) {
      case PseudoKind::kGrid:
        return ofKernel() ? within(static_cast<int64_t>(kernel_->grid.size())) : void();
      case PseudoKind::kParam: {
        if (!ofKernel()) return;
        int64_t words = 0;
        for (const KernelParam& p : kernel_->params) words += p.kind == KernelParam::kHbm ? 2 : 1;
        return within(words);
      }
      case PseudoKind::kBlock:
        return ofKernel() ? within(static_cast<int64_t>(kernel_->blocks.size())) : void();
      case PseudoKind::kScratch:
        return ofKernel() ? within(static_cast<int64_t>(kernel_->scratch.size())) : void();
      case PseudoKind::kSmem:
        return buffer(isa::Space::kSmem);
      case PseudoKind::kVmem:
        return buffer(isa::Space::kVmem);
      case PseudoKind::kHbmRow:
        return driver_ ? buffer(isa::Space::kHbm) : bad("hbm_row is a value of the driver only");
      case PseudoKind::kDevice:
        return;
      case PseudoKind::kDeviceWord:
        return within(m_.device_table_words);
    }
  }

  void loop(const Stmt& s) {
    useScalar(s.amount);
    const Defined before = defined_;
    const FifoBalance fifo = fifo_;
    define(isa::RegClass::kScalar, s.reg);
    induction_.push_back(s.reg);
    block(s.blocks[0]);
    if (s.amount.is_reg || s.amount.imm < 1) {
      if (problem_.empty()) balanced(fifo_, fifo, "a loop's body");
    } else if (problem_.empty() && skipTrips(fifo, s.amount.imm)) {
      block(s.blocks[0]);
    }
    induction_.pop_back();
    if (s.amount.is_reg || s.amount.imm < 1) defined_ = before;
  }

  // A loop with a constant number of trips may fill FIFOs or empty them: what the first trip did, all do.
  // From after the first trip to before the last; false where nothing changes or there is no other trip.
  bool skipTrips(const FifoBalance& before, int64_t trips) {
    if (trips == 1) return false;
    bool changes = false;
    for (auto& [key, n] : fifo_) {
      const auto it = before.find(key);
      const int64_t change = n - (it == before.end() ? 0 : it->second);
      changes |= change != 0;
      n += change * (trips - 2);
    }
    return changes;
  }

  void whileLoop(const Stmt& s) {
    const FifoBalance fifo = fifo_;
    block(s.blocks[0]);
    use(isa::RegClass::kPred, s.reg);
    const Defined after = defined_;
    block(s.blocks[1]);
    defined_ = after;
    if (problem_.empty()) balanced(fifo_, fifo, "a loop's body");
  }

  void branch(const Stmt& s) {
    use(isa::RegClass::kPred, s.reg);
    const Defined before = defined_;
    const FifoBalance fifo = fifo_;
    block(s.blocks[0]);
    const Defined then = defined_;
    const FifoBalance then_fifo = fifo_;
    defined_ = before;
    fifo_ = fifo;
    if (s.blocks.size() > 1) block(s.blocks[1]);
    meet(then);
    if (problem_.empty()) balanced(then_fifo, fifo_, "a branch");
    if (problem_.empty()) balanced(fifo_, then_fifo, "a branch");
  }

  void call(const Stmt& s) {
    if (!driver_) return bad("only the driver calls kernels");
    if (s.index < 0 || s.index >= static_cast<int32_t>(m_.kernels.size()))
      return bad("call of a kernel that does not exist");
    const Kernel& k = m_.kernels[s.index];
    if (s.args.size() != k.params.size())
      return bad("call of " + k.name + " with " + std::to_string(s.args.size()) + " arguments, it has " +
                 std::to_string(k.params.size()));
    for (size_t i = 0; i < s.args.size(); ++i) {
      const CallArg& a = s.args[i];
      useScalar(a.offset);
      if (!a.is_buffer) {
        if (k.params[i].kind == KernelParam::kHbm)
          bad(k.params[i].name + " of " + k.name + " takes a buffer");
        continue;
      }
      constexpr isa::Space kSpaces[] = {isa::Space::kHbm, isa::Space::kSmem, isa::Space::kVmem};
      if (a.buffer < 0 || a.buffer >= static_cast<int32_t>(m_.buffers.size()))
        return bad("call with a buffer that does not exist");
      if (k.params[i].kind == KernelParam::kWord || m_.buffers[a.buffer].space != kSpaces[k.params[i].kind])
        bad("buffer " + m_.buffers[a.buffer].name + " is in another memory than " + k.params[i].name +
            " of " + k.name);
    }
    for (const auto& fifo : fifo_)
      if (fifo.second != 0) bad("a call with entries left in a FIFO");
  }

  void dma(const Stmt& s) {
    if (s.index < 0 || s.index >= static_cast<int32_t>(code_.dmas.size()))
      return bad("transfer that does not exist");
    const Dma& d = code_.dmas[s.index];
    for (int32_t r : d.src.regs) use(isa::RegClass::kScalar, r);
    for (int32_t r : d.dst.regs) use(isa::RegClass::kScalar, r);
    if (d.remote) useScalar(d.device);
    for (int32_t r : {d.src_sem_plus, d.dst_sem_plus})
      if (r >= 0) use(isa::RegClass::kScalar, r);
  }

  void transfer(const Dma& d) {
    if (d.run <= 0 || d.run % 4 != 0)
      bad("a transfer's run is a positive multiple of 4 bytes, found " + std::to_string(d.run));
    for (const DmaDim& dim : d.dims)
      if (dim.count < 1) bad("a transfer's counts are at least 1");
    for (int32_t sem : {d.src_sem, d.dst_sem})
      if (sem != -1) semaphore(sem);
    if ((d.src_sem < 0 && d.src_sem_plus >= 0) || (d.dst_sem < 0 && d.dst_sem_plus >= 0))
      bad("a transfer adds a register to a semaphore that it does not have");
    for (const Place* p : {&d.src, &d.dst}) {
      const size_t n = p->kind == Place::kBuffer  ? m_.buffers.size()
                       : !kernel_                 ? 0
                       : p->kind == Place::kParam ? kernel_->params.size()
                       : p->kind == Place::kBlock ? kernel_->blocks.size()
                                                  : kernel_->scratch.size();
      if (p->index < 0 || p->index >= static_cast<int64_t>(n))
        bad("a transfer names a place that does not exist");
    }
  }

  const Module& m_;
  const target::Chip& chip_;
  const Code& code_;
  const Kernel* kernel_;
  bool driver_;
  std::string where_, problem_, loc_;
  Defined defined_;
  FifoBalance fifo_;
  std::vector<int32_t> induction_;
};

llvm::Error verifyKernel(const Module& m, const target::Chip& chip, const Kernel& k) {
  const std::string where = "kernel " + k.name;
  auto bad = [&](const std::string& text) { return fail(tpu::Code::kBadLlo, "", where + ": " + text); };
  for (int64_t g : k.grid)
    if (g < 1 || g > INT32_MAX) return bad("grid dimension of " + std::to_string(g));
  for (const PipelineBlock& b : k.blocks) {
    if (b.step.size() != k.grid.size())
      return bad("block " + b.name + " has not one step per grid dimension");
    if (b.param < 0 || b.param >= static_cast<int32_t>(k.params.size()) ||
        k.params[b.param].kind != KernelParam::kHbm)
      return bad("block " + b.name + " does not move an HBM parameter");
    for (const Transfer& t : b.transfers) {
      if (t.run <= 0 || t.run % 4 != 0 || (t.run_edge_grid >= 0 && (t.run_edge <= 0 || t.run_edge % 4 != 0)))
        return bad("block " + b.name + ": a run is a positive multiple of 4 bytes");
      for (const TransferDim& d : t.dims)
        if (d.count < 1 || (d.edge_grid >= 0 && d.edge_count < 1))
          return bad("block " + b.name + ": counts are at least 1");
      int64_t end = t.vmem_offset + t.run;
      for (const TransferDim& d : t.dims) end += d.vmem_stride * (d.count - 1);
      if (t.vmem_offset < 0 || end > b.bytes)
        return bad("block " + b.name + ": a transfer reaches beyond the block");
    }
  }
  return CodeVerifier(m, chip, k.code, &k, false, where).run();
}

}  // namespace

llvm::Error verify(const Module& m, const target::Chip& chip) {
  auto bad = [&](const std::string& text) { return fail(tpu::Code::kBadLlo, "", text); };
  const auto buffers = static_cast<int32_t>(m.buffers.size());
  for (int32_t b = 0; b < buffers; ++b) {
    const Buffer& buffer = m.buffers[b];
    if (buffer.alias >= buffers || buffer.alias == b)
      return bad("buffer " + buffer.name + " has an alias that does not exist");
    int32_t end = buffer.alias;
    for (int32_t hops = 0; end >= 0; end = m.buffers[end].alias)
      if (++hops > buffers) return bad("buffer " + buffer.name + " is its own alias");
    if (buffer.alias >= 0 && m.buffers[buffer.alias].space != buffer.space)
      return bad("buffer " + buffer.name + " and its alias are in different memories");
    if (static_cast<int64_t>(buffer.data.size()) > buffer.bytes)
      return bad("buffer " + buffer.name + " has more data than bytes");
  }
  for (const auto* ports : {&m.args, &m.results})
    for (const Port& p : *ports)
      if (p.buffer < 0 || p.buffer >= buffers) return bad("port " + p.name + " has no buffer");
  if (static_cast<int64_t>(m.device_table.size()) != m.device_table_words * m.devices)
    return bad("the device table has not one row per device");
  for (const Kernel& k : m.kernels)
    if (llvm::Error e = verifyKernel(m, chip, k)) return e;
  for (const Companion& c : m.companions) {
    CodeVerifier v(m, chip, c.step, nullptr, false, "companion " + c.name);
    if (llvm::Error e = v.run()) return e;
    if (!v.defines(isa::RegClass::kPred, c.done))
      return bad("companion " + c.name + " does not always set its done predicate");
  }
  return CodeVerifier(m, chip, m.driver, nullptr, true, "driver").run();
}

}  // namespace tpu::llo
