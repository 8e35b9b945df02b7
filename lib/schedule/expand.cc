#include "expand.h"

#include "tpu/isa/dma.h"

namespace tpu::schedule {

using isa::Opcode;
using llo::Addr;
using llo::Arg;
using llo::S;

int64_t Context::placeDescriptor(const std::vector<uint32_t>& words, bool patched) {
  if (!patched) {
    auto it = descriptors.find(words);
    if (it != descriptors.end()) return it->second;
  }
  isa::Constant c;
  c.space = isa::Space::kSmem;
  c.address = allocSmem(static_cast<int64_t>(words.size()) * 4);
  for (uint32_t w : words)
    for (int k = 0; k < 4; ++k) c.bytes.push_back(static_cast<uint8_t>(w >> (8 * k)));
  const int64_t at = c.address;
  constants.push_back(std::move(c));
  if (!patched) descriptors.emplace(words, at);
  return at;
}

uint32_t appendLocs(Func& func, const llo::Code& code) {
  const auto base = static_cast<uint32_t>(func.op_locs.size());
  func.op_locs.insert(func.op_locs.end(), code.op_locs.begin(), code.op_locs.end());
  return base;
}

int32_t Callees::functionOf(const Callee& callee, int32_t locs) {
  auto [it, inserted] = index.emplace(callee, static_cast<int32_t>(order.size()) + 1);
  if (inserted) {
    order.push_back(callee);
    call_locs.push_back(locs);
  }
  return it->second;
}

std::vector<int64_t> paramWords(const llo::Kernel& kernel) {
  std::vector<int64_t> first;
  int64_t word = 0;
  for (const llo::KernelParam& p : kernel.params) {
    first.push_back(word);
    word += p.kind == llo::KernelParam::kHbm ? 2 : 1;
  }
  first.push_back(word);
  return first;
}

namespace {

void markOthers(const llo::Block& block, std::vector<char>& positive) {
  for (const llo::Stmt& s : block) {
    if (s.kind == llo::StmtKind::kPseudo || s.kind == llo::StmtKind::kSemRead ||
        s.kind == llo::StmtKind::kLoop)
      positive[s.reg] = 0;
    const bool constant = s.kind == llo::StmtKind::kInsn && s.insn.op == Opcode::smov &&
                          s.insn.operands[1].kind == isa::Operand::kImm && s.insn.operands[1].imm > 0;
    if (s.kind == llo::StmtKind::kInsn && !constant)
      isa::forEachRegister(s.insn, [&](isa::RegClass cls, int num, bool, bool, bool write) {
        if (write && cls == isa::RegClass::kScalar) positive[num] = 0;
      });
    for (const llo::Block& b : s.blocks) markOthers(b, positive);
  }
}

std::vector<char> positiveRegisters(const llo::Code& code) {
  std::vector<char> positive(code.num_s, 1);
  markOthers(code.body, positive);
  return positive;
}

}  // namespace

bool Expander::alwaysPositive(const llo::Scalar& s) const {
  return s.is_reg ? positive_[s.reg] != 0 : s.imm > 0;
}

void Expander::run(const llo::Code& code, uint32_t op_base) {
  const llo::Code* outer = code_;
  code_ = &code;
  const int32_t counts[kNumClasses] = {code.num_s, code.num_v, code.num_m, code.num_p};
  for (int c = 0; c < kNumClasses; ++c) {
    base_[c] = b_.func().num_regs[c];
    b_.func().num_regs[c] += counts[c];
  }
  int32_t* units = b_.func().num_units;
  unit_base_[0] = units[0], unit_base_[1] = units[1];
  units[0] += code.num_mxu, units[1] += code.num_xlu;
  op_base_ = op_base;
  positive_ = positiveRegisters(code);
  block(code.body);
  code_ = outer;
}

void Expander::block(const llo::Block& block) {
  for (const llo::Stmt& s : block) stmt(s);
}

void Expander::stmt(const llo::Stmt& s) {
  b_.setOp(op_base_ + s.op);
  switch (s.kind) {
    case llo::StmtKind::kInsn:
      return insn(s);
    case llo::StmtKind::kPseudo:
      return pseudo(s);
    case llo::StmtKind::kLoop:
      return loop(s);
    case llo::StmtKind::kWhile:
      return whileLoop(s);
    case llo::StmtKind::kIf:
      return branch(s);
    case llo::StmtKind::kCall:
      return call(s);
    case llo::StmtKind::kDma:
      return dma(code_->dmas[s.index]);
    case llo::StmtKind::kSemWait:
      b_.emit(Opcode::sem_wait, {semaphore(s), scalar(s.amount)});
      return;
    case llo::StmtKind::kSemAdd:
      b_.emit(Opcode::sem_add, {semaphore(s), scalar(s.amount)});
      return;
    case llo::StmtKind::kSemRead:
      b_.emit(Opcode::sem_read, {reg(s.reg), semaphore(s)});
      return;
    case llo::StmtKind::kSemSignal: {
      const S device = asReg(scalar(s.device)), sem = asReg(semaphore(s)), amount = asReg(scalar(s.amount));
      b_.emit(Opcode::sem_signal, {device, sem, amount});
      return;
    }
    case llo::StmtKind::kHook:
      return values_->companions();
    case llo::StmtKind::kDrain:
      return drain(ctx_.module.companions[s.index]);
  }
}

// The number of the semaphore, or a register that holds it.
Arg Expander::semaphore(const llo::Stmt& s) {
  return s.sem_plus < 0 ? Arg(s.index) : Arg(b_.s(Opcode::sadd, {reg(s.sem_plus), s.index}));
}

// Steps a companion until it says that it is done.
void Expander::drain(const llo::Companion& companion) {
  const int head = b_.begin();
  b_.enterLoop();
  const uint32_t op = b_.op();
  Expander e(ctx_, b_, nullptr, nullptr);
  e.run(companion.step, appendLocs(b_.func(), companion.step));
  b_.setOp(op);
  b_.branchBack(head, {e.pred(companion.done).id, true});
  b_.leaveLoop();
}

Arg Expander::scalar(const llo::Scalar& s) const { return s.is_reg ? Arg(reg(s.reg)) : Arg(s.imm); }

S Expander::asReg(Arg value) {
  if (value.o.kind == isa::Operand::kReg) return {value.o.reg};
  return b_.imm(value.o.imm);
}

void Expander::insn(const llo::Stmt& s) {
  isa::Instruction i = s.insn;
  const isa::InstructionInfo& row = isa::info(i.op);
  for (int k = 0; k < i.num_operands; ++k) {
    isa::Operand& o = i.operands[k];
    if (!o.virt) continue;
    if (o.kind == isa::Operand::kReg) o.reg += base_[classIndex(o.cls)];
    if (o.kind == isa::Operand::kMem) o.reg += base_[0];
    if (o.kind == isa::Operand::kUnit) o.reg += unit_base_[row.operands[k] == isa::OperandKind::Xlu];
  }
  if (i.pred_virt) i.pred += base_[3];
  b_.append(i);
}

void Expander::setBase(S r, int32_t object) {
  std::vector<int32_t>& objects = b_.func().base_object;
  if (static_cast<int32_t>(objects.size()) <= r.id) objects.resize(r.id + 1, kAnyObject);
  objects[r.id] = object;
}

void Expander::pseudo(const llo::Stmt& s) {
  const S to = reg(s.reg);
  switch (s.pseudo) {
    case llo::PseudoKind::kGrid:
      b_.setReg(to, values_->grid[s.index]);
      break;
    case llo::PseudoKind::kParam:
      b_.emit(Opcode::sld, {to, Addr{{}, ctx_.params + 4 * s.index}});
      break;
    case llo::PseudoKind::kBlock:
      b_.setReg(to, values_->blocks[s.index]);
      setBase(to, objectOfBlock(ctx_, s.index));
      break;
    case llo::PseudoKind::kScratch:
      b_.setReg(to, values_->scratch[s.index]);
      setBase(to, objectOfScratch(ctx_, *values_->kernel, s.index));
      break;
    case llo::PseudoKind::kVmem:
      setBase(to, objectOfBuffer(ctx_, s.index));
      [[fallthrough]];
    case llo::PseudoKind::kSmem:
      b_.setReg(to, ctx_.address[s.index]);
      break;
    case llo::PseudoKind::kHbmRow:
      b_.setReg(to, ctx_.address[s.index] / 512);
      break;
    case llo::PseudoKind::kDevice:
      b_.emit(Opcode::sld, {to, Addr{{}, isa::kDeviceIdAddress}});
      break;
    case llo::PseudoKind::kDeviceWord:
      b_.emit(Opcode::sld, {to, Addr{{}, isa::kDeviceTableAddress + 4 * s.index}});
      break;
  }
}

void Expander::loop(const llo::Stmt& s) {
  const S i = reg(s.reg);
  Arg trip = scalar(s.amount);
  if (!s.amount.is_reg && s.amount.imm <= 0) return;
  b_.setReg(i, 0);
  if (!s.amount.is_reg && s.amount.imm == 1) return block(s.blocks[0]);
  const int exit = b_.newLabel();
  if (s.amount.is_reg) {
    const S kept = b_.newS();
    b_.setReg(kept, trip);
    trip = kept;
    if (!alwaysPositive(s.amount)) b_.branchTo(exit, {b_.p(Opcode::scmp_le, {kept, 0}).id, false});
  }
  const int head = b_.begin();
  b_.enterLoop();
  block(s.blocks[0]);
  b_.setOp(op_base_ + s.op);
  b_.emit(Opcode::sadd, {i, i, 1});
  const llo::P again = b_.p(Opcode::scmp_lt, {i, trip});
  Block& last = b_.func().blocks[b_.current()];
  if (b_.current() == head) {
    last.loop_body = true;
    if (s.amount.is_reg)
      last.trip_reg = trip.o.reg;
    else
      last.trip_imm = s.amount.imm;
  }
  b_.branchBack(head, {again.id, false});
  b_.leaveLoop();
  b_.place(exit);
}

void Expander::whileLoop(const llo::Stmt& s) {
  const int exit = b_.newLabel();
  const int head = b_.begin();
  b_.enterLoop();
  block(s.blocks[0]);
  b_.setOp(op_base_ + s.op);
  b_.branchTo(exit, {pred(s.reg).id, !s.pred_neg});
  block(s.blocks[1]);
  b_.branchBack(head);
  b_.leaveLoop();
  b_.place(exit);
}

void Expander::branch(const llo::Stmt& s) {
  const int otherwise = b_.newLabel();
  const bool two_sided = s.blocks.size() > 1 && !s.blocks[1].empty();
  b_.branchTo(otherwise, {pred(s.reg).id, !s.pred_neg});
  block(s.blocks[0]);
  if (!two_sided) return b_.place(otherwise);
  const int end = b_.newLabel();
  b_.branchTo(end);
  b_.place(otherwise);
  block(s.blocks[1]);
  b_.place(end);
}

void Expander::storeWord(int64_t address, Arg value) {
  b_.emit(Opcode::sst, {Addr{{}, address}, asReg(value)});
}

// The parts of a place that are known only when running: *row and *offset are left without id where the
// constants in the descriptor are right.
void Expander::patchPlace(const llo::Place& place, S* row, S* offset) {
  auto add = [&](Arg more) { *offset = offset->id < 0 ? asReg(more) : b_.s(Opcode::sadd, {*offset, more}); };
  int64_t constant = place.offset;
  switch (place.kind) {
    case llo::Place::kBuffer:
      constant += ctx_.address[place.index] % 512;
      break;
    case llo::Place::kBlock:
      add(values_->blocks[place.index]);
      break;
    case llo::Place::kScratch:
      add(values_->scratch[place.index]);
      break;
    case llo::Place::kParam: {
      const int64_t word = ctx_.params + 4 * paramWords(*values_->kernel)[place.index];
      const bool hbm = values_->kernel->params[place.index].kind == llo::KernelParam::kHbm;
      if (hbm) *row = b_.s(Opcode::sld, {Addr{{}, word}});
      add(b_.s(Opcode::sld, {Addr{{}, hbm ? word + 4 : word}}));
      break;
    }
  }
  for (int32_t r : place.regs) add(reg(r));
  if (offset->id >= 0 && constant != 0) add(constant);
}

namespace {

isa::Space spaceOf(const Context& ctx, const llo::Place& place, const KernelValues* values) {
  switch (place.kind) {
    case llo::Place::kBuffer:
      return ctx.module.buffers[place.index].space;
    case llo::Place::kParam:
      switch (values->kernel->params[place.index].kind) {
        case llo::KernelParam::kSmem:
          return isa::Space::kSmem;
        case llo::KernelParam::kVmem:
          return isa::Space::kVmem;
        default:
          return isa::Space::kHbm;
      }
    default:
      return isa::Space::kVmem;
  }
}

}  // namespace

void Expander::dma(const llo::Dma& d) {
  S row[2], offset[2];
  patchPlace(d.src, &row[0], &offset[0]);
  patchPlace(d.dst, &row[1], &offset[1]);
  std::vector<uint32_t> w(isa::kDmaWords, 0);
  w[isa::kDmaSpaces] = static_cast<uint32_t>(spaceOf(ctx_, d.src, values_)) |
                       static_cast<uint32_t>(spaceOf(ctx_, d.dst, values_)) << 8;
  const uint32_t src_sem = d.src_sem < 0 ? isa::kNoSemaphore : d.src_sem;
  const uint32_t dst_sem = d.dst_sem < 0 ? isa::kNoSemaphore : d.dst_sem;
  w[isa::kDmaSems] = src_sem | dst_sem << 16;
  w[isa::kDmaDevice] = d.remote ? static_cast<uint32_t>(d.device.imm) : isa::kThisDevice;
  const llo::Place* places[2] = {&d.src, &d.dst};
  const int base_word[2] = {isa::kDmaSrcBase, isa::kDmaDstBase};
  for (int k = 0; k < 2; ++k) {
    if (places[k]->kind != llo::Place::kBuffer) continue;
    const int64_t address = ctx_.address[places[k]->index];
    w[base_word[k]] = static_cast<uint32_t>(address / 512);
    w[base_word[k] + 1] = static_cast<uint32_t>(address % 512 + places[k]->offset);
  }
  w[isa::kDmaRun] = static_cast<uint32_t>(d.run);
  for (int k = 0; k < 3; ++k) {
    w[isa::kDmaCount1 + 3 * k] = static_cast<uint32_t>(d.dims[k].count);
    w[isa::kDmaSrcStride1 + 3 * k] = static_cast<uint32_t>(d.dims[k].src_stride);
    w[isa::kDmaDstStride1 + 3 * k] = static_cast<uint32_t>(d.dims[k].dst_stride);
  }
  const bool device_reg = d.remote && d.device.is_reg;
  const bool patched = device_reg || d.src_sem_plus >= 0 || d.dst_sem_plus >= 0 || row[0].id >= 0 ||
                       row[1].id >= 0 || offset[0].id >= 0 || offset[1].id >= 0;
  const bool shared = ctx_.shared_descriptors >= 0;
  const int64_t at = shared ? ctx_.sharedDescriptor(0) : ctx_.placeDescriptor(w, patched);
  for (int k = 0; shared && k < isa::kDmaWords; ++k) storeWord(at + 4 * k, static_cast<int32_t>(w[k]));
  for (int k = 0; k < 2; ++k) {
    if (row[k].id >= 0) storeWord(at + 4 * base_word[k], row[k]);
    if (offset[k].id >= 0) storeWord(at + 4 * (base_word[k] + 1), offset[k]);
  }
  if (device_reg) storeWord(at + 4 * isa::kDmaDevice, reg(d.device.reg));
  if (d.src_sem_plus >= 0 || d.dst_sem_plus >= 0) patchSemaphores(d, at);
  b_.emit(Opcode::dma_start, {at});
}

// Both semaphores stand in one word, the destination's in its upper half.
void Expander::patchSemaphores(const llo::Dma& d, int64_t descriptor) {
  auto number = [&](int32_t sem, int32_t plus) {
    return plus < 0 ? Arg(sem < 0 ? int64_t{isa::kNoSemaphore} : sem)
                    : Arg(b_.s(Opcode::sadd, {reg(plus), sem}));
  };
  const S upper = b_.s(Opcode::sshl, {asReg(number(d.dst_sem, d.dst_sem_plus)), 16});
  storeWord(descriptor + 4 * isa::kDmaSems, b_.s(Opcode::sor, {upper, number(d.src_sem, d.src_sem_plus)}));
}

void Expander::callArg(const llo::CallArg& arg, llo::KernelParam::Kind kind, int64_t* word) {
  auto put = [&](Arg value) {
    storeWord(ctx_.params + 4 * *word, value);
    ++*word;
  };
  if (!arg.is_buffer) return put(scalar(arg.offset));
  const int64_t address = ctx_.address[arg.buffer];
  const int64_t rest = kind == llo::KernelParam::kHbm ? address % 512 : address;
  if (kind == llo::KernelParam::kHbm) put(address / 512);
  if (!arg.offset.is_reg) return put(rest + arg.offset.imm);
  put(rest == 0 ? Arg(reg(arg.offset.reg)) : Arg(b_.s(Opcode::sadd, {reg(arg.offset.reg), rest})));
}

void Expander::call(const llo::Stmt& s) {
  const llo::Kernel& kernel = ctx_.module.kernels[s.index];
  int64_t word = 0;
  for (size_t i = 0; i < s.args.size(); ++i) callArg(s.args[i], kernel.params[i].kind, &word);
  b_.call(callees_->functionOf({s.index, s.companions}, s.call_locs), ctx_.linkRegister());
}

}  // namespace tpu::schedule
