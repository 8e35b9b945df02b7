// Control of one device: frames, kernels with their grid and blocks, DMAs and semaphores.
#include "device.h"

#include <algorithm>
#include <cstring>

#include "tpu/support/diagnostics.h"

namespace tpu::emulate::llo_run {

using llo::StmtKind;
using llvm::Error;
using llvm::Expected;

static bool isSemaphore(StmtKind kind) {
  return kind == StmtKind::kSemWait || kind == StmtKind::kSemSignal || kind == StmtKind::kSemAdd ||
         kind == StmtKind::kSemRead;
}

Device::Device(Pod& pod, int64_t position)
    : pod_(pod), position_(position), hbm_(pod.options.garbage), vmem_(pod.options.garbage), smem_(pod.options.garbage) {}

AddressSpace& Device::space(isa::Space space) {
  return space == isa::Space::kHbm ? hbm_ : space == isa::Space::kVmem ? vmem_ : smem_;
}

std::string Device::where() const {
  if (stack_.empty()) return "";
  const Context& c = *stack_.back();
  const llo::Module* m = pod_.module;
  if (!m) return "";
  uint32_t row = 0;
  if (c.call && c.call->call_locs >= 0) {
    const auto& map = m->call_locs[c.call->call_locs];
    if (op_ < map.size()) row = map[op_];
  } else if (op_ < c.code->op_locs.size()) {
    row = c.code->op_locs[op_];
  }
  return row < m->locs.size() ? m->locs[row] : "";
}

Error Device::bad(Code code, const llvm::Twine& text) const {
  const Context& c = *stack_.back();
  const std::string in = c.kernel ? "kernel " + c.kernel->name : "driver";
  return fail(code, where(), llvm::Twine("device ") + llvm::Twine(position_) + ", " + in + ": " + text);
}

void Device::placeBuffers() {
  const auto& buffers = pod_.module->buffers;
  buffer_address_.assign(buffers.size(), -1);
  for (size_t b = 0; b < buffers.size(); ++b) {
    size_t root = b;
    while (buffers[root].alias >= 0) root = buffers[root].alias;
    if (buffer_address_[root] < 0) {
      int64_t bytes = buffers[root].bytes;
      for (size_t other = 0; other < buffers.size(); ++other)
        if (buffers[other].alias == static_cast<int32_t>(root)) bytes = std::max(bytes, buffers[other].bytes);
      buffer_address_[root] = space(buffers[root].space).add(bytes);
    }
    buffer_address_[b] = buffer_address_[root];
    if (!buffers[b].data.empty())
      std::memcpy(space(buffers[b].space).at(buffer_address_[b], buffers[b].data.size()), buffers[b].data.data(),
                  buffers[b].data.size());
  }
  sems.assign(pod_.module->num_sems, 0);
}

std::unique_ptr<Context> Device::makeContext(const llo::Code& code) const {
  auto c = std::make_unique<Context>();
  c->code = &code;
  c->s.assign(code.num_s, 0);
  c->p.assign(code.num_p, 0);
  c->v.resize(code.num_v);
  c->m.resize(code.num_m);
  c->xlu.resize(code.num_xlu);
  c->trf.resize(code.num_xlu);
  c->xpose.resize(code.num_xlu);
  for (int i = 0; i < code.num_mxu; ++i)
    c->mxu.push_back(std::make_unique<MatrixUnit>(pod_.chip->mxu_side, pod_.chip->mrb_entries));
  c->frames.push_back({&code.body});
  return c;
}

void Device::startDriver() {
  stack_.push_back(makeContext(pod_.module->driver));
}

void Device::enterKernel(const llo::Kernel& kernel, std::vector<uint32_t> params, const llo::Stmt* call) {
  auto c = makeContext(kernel.code);
  c->kernel = &kernel;
  c->call = call;
  c->params = std::move(params);
  c->has_hook = llo::hasHook(kernel.code);
  c->grid.assign(kernel.grid.size(), 0);
  for (const llo::PipelineBlock& b : kernel.blocks) c->block_address.push_back(vmem_.add(b.bytes));
  c->block_offset.assign(kernel.blocks.size(), INT64_MIN);
  for (int64_t bytes : kernel.scratch) c->scratch_address.push_back(vmem_.add(bytes));
  c->frames.clear();
  stack_.push_back(std::move(c));
}

Vector& Device::vec(const isa::Operand& o) {
  const bool is_mask = o.cls == isa::RegClass::kMask;
  auto& slot = is_mask ? top().m[o.reg] : top().v[o.reg];
  if (!slot) {
    slot = std::make_unique<Vector>();
    std::fill(std::begin(slot->w), std::end(slot->w), is_mask ? 0 : pod_.options.garbage);
  }
  return *slot;
}

Expected<Progress> Device::run() {
  bool ran = false;
  const int64_t effects = effects_;
  while (!stack_.empty()) {
    Expected<Progress> p = step();
    if (!p) return p;
    // The others have their turn; where none of them changes anything, this companion waits for ever.
    if (*p == Progress::kIdle) return effects_ != effects ? Progress::kRan : Progress::kBlocked;
    if (*p == Progress::kBlocked) return ran ? Progress::kRan : Progress::kBlocked;
    ran = true;
    if (pod_.options.max_statements && ++statements_ > pod_.options.max_statements)
      return fail(Code::kLloLimit, where(), "device " + llvm::Twine(position_) + " executed " +
                  llvm::Twine(pod_.options.max_statements) + " statements", ExitStatus::kHangs);
  }
  return Progress::kDone;
}

// ---------------------------------------------------------------- kernels

static int64_t stepOffset(const llo::PipelineBlock& b, const std::vector<int64_t>& at) {
  int64_t offset = 0;
  for (size_t d = 0; d < b.step.size(); ++d) offset += b.step[d] * at[d];
  return offset;
}

Error Device::transferBlock(int b, int64_t offset, const std::vector<int64_t>& at) {
  Context& c = top();
  const llo::PipelineBlock& block = c.kernel->blocks[b];
  size_t word = 0;
  for (int p = 0; p < block.param; ++p) word += c.kernel->params[p].kind == llo::KernelParam::kHbm ? 2 : 1;
  const int64_t base = int64_t{c.params[word]} * 512 + static_cast<int32_t>(c.params[word + 1]) + offset;
  auto atEdge = [&](int grid_dim) { return grid_dim >= 0 && at[grid_dim] == c.kernel->grid[grid_dim] - 1; };
  for (const llo::Transfer& t : block.transfers) {
    const int64_t run = atEdge(t.run_edge_grid) ? t.run_edge : t.run;
    int64_t n[3];
    for (int d = 0; d < 3; ++d) n[d] = atEdge(t.dims[d].edge_grid) ? t.dims[d].edge_count : t.dims[d].count;
    for (int64_t k = 0; k < n[2]; ++k)
      for (int64_t j = 0; j < n[1]; ++j)
        for (int64_t i = 0; i < n[0]; ++i) {
          const int64_t h = base + t.hbm_offset + i * t.dims[0].hbm_stride + j * t.dims[1].hbm_stride + k * t.dims[2].hbm_stride;
          const int64_t v = c.block_address[b] + t.vmem_offset + i * t.dims[0].vmem_stride + j * t.dims[1].vmem_stride + k * t.dims[2].vmem_stride;
          uint8_t* hbm = hbm_.at(h, run);
          uint8_t* vmem = vmem_.at(v, run);
          if (!hbm) return bad(Code::kLloAccess, "block " + block.name + ": " + llvm::Twine(run) + " bytes outside its buffer in HBM");
          if (!vmem) return bad(Code::kLloAccess, "block " + block.name + ": " + llvm::Twine(run) + " bytes outside its slot in VMEM");
          if (block.direction == llo::Direction::kIn) std::memcpy(vmem, hbm, run);
          else std::memcpy(hbm, vmem, run);
        }
  }
  return Error::success();
}

// Before a grid step: inputs whose offset changed are fetched.
Error Device::startStep() {
  Context& c = top();
  for (size_t b = 0; b < c.kernel->blocks.size(); ++b) {
    const llo::PipelineBlock& block = c.kernel->blocks[b];
    const int64_t offset = stepOffset(block, c.grid);
    if (offset == c.block_offset[b]) continue;
    c.block_offset[b] = offset;
    if (block.direction == llo::Direction::kOut) vmem_.refill(c.block_address[b]);
    else if (Error e = transferBlock(static_cast<int>(b), offset, c.grid)) return e;
  }
  c.frames.push_back({&c.code->body});
  return Error::success();
}

// After a grid step: outputs whose offset is about to change are written.
Error Device::finishStep(bool last) {
  Context& c = top();
  std::vector<int64_t> next = c.grid;
  for (size_t d = next.size(); d-- > 0;) {
    if (++next[d] < c.kernel->grid[d]) break;
    next[d] = 0;
  }
  for (size_t b = 0; b < c.kernel->blocks.size(); ++b) {
    const llo::PipelineBlock& block = c.kernel->blocks[b];
    if (block.direction != llo::Direction::kOut) continue;
    if (!last && stepOffset(block, next) == c.block_offset[b]) continue;
    if (Error e = transferBlock(static_cast<int>(b), c.block_offset[b], c.grid)) return e;
  }
  c.grid = next;
  return Error::success();
}

void Device::stepCompanion(int32_t id, bool drain) {
  auto next = makeContext(pod_.module->companions[id].step);
  next->companion = id;
  next->drained = drain;
  next->effects_before = effects_;
  stack_.push_back(std::move(next));
}

// Steps the next companion of the call; false where all have had their turn.
bool Device::hook(Context& kernel) {
  if (kernel.call && kernel.next_companion < kernel.call->companions.size()) {
    stepCompanion(kernel.call->companions[kernel.next_companion++], false);
    return true;
  }
  kernel.next_companion = 0;
  return false;
}

Expected<Progress> Device::endOfBody() {
  Context& c = top();
  if (!c.kernel) {
    const bool again = c.drained && !c.p[pod_.module->companions[c.companion].done];
    const bool idle = again && c.effects_before == effects_;
    const int32_t id = c.companion;
    stack_.pop_back();
    if (again) stepCompanion(id, true);
    return idle ? Progress::kIdle : Progress::kRan;
  }
  if (!c.has_hook && hook(c)) return Progress::kRan;
  bool last = true;
  for (size_t d = 0; d < c.grid.size(); ++d) last &= c.grid[d] == c.kernel->grid[d] - 1;
  if (Error e = finishStep(last)) return e;
  if (!last) {
    if (Error e = startStep()) return e;
    return Progress::kRan;
  }
  if (!c.v2s.empty() || !c.eup.empty()) return bad(Code::kLloFifo, "entries left in a FIFO at the end");
  for (int64_t a : c.block_address) vmem_.remove(a);
  for (int64_t a : c.scratch_address) vmem_.remove(a);
  vmem_.forget();
  stack_.pop_back();
  return Progress::kRan;
}

// ---------------------------------------------------------------- statements

Expected<Progress> Device::endOfFrame() {
  Context& c = top();
  Frame frame = c.frames.back();
  c.frames.pop_back();
  if (!frame.owner) return endOfBody();
  const llo::Stmt& st = *frame.owner;
  if (st.kind == StmtKind::kLoop && ++frame.index < frame.trip) {
    c.s[st.reg] = frame.index;
    frame.pc = 0;
    c.frames.push_back(frame);
  } else if (st.kind == StmtKind::kWhile) {
    if (frame.which == 1) {
      c.frames.push_back({&st.blocks[0], 0, &st});
    } else if ((c.p[st.reg] != 0) != st.pred_neg) {
      Frame body{&st.blocks[1], 0, &st};
      body.which = 1;
      c.frames.push_back(body);
    }
  }
  return Progress::kRan;
}

Expected<Progress> Device::step() {
  Context& c = top();
  if (c.frames.empty()) {  // a kernel that begins
    bool empty = false;
    for (int64_t g : c.kernel->grid) empty |= g == 0;
    if (empty) {
      stack_.pop_back();
      return Progress::kRan;
    }
    if (Error e = startStep()) return e;
    return Progress::kRan;
  }
  Frame& frame = c.frames.back();
  if (frame.pc == frame.block->size()) return endOfFrame();
  const llo::Stmt& st = (*frame.block)[frame.pc];
  op_ = st.op;
  int64_t sem = 0;
  if (isSemaphore(st.kind))
    if (Error e = semaphore(st.index, st.sem_plus, &sem)) return e;
  if (st.kind == StmtKind::kSemWait) {
    const int64_t amount = static_cast<int32_t>(value(st.amount));
    if (sems[sem] < amount) return Progress::kBlocked;
    sems[sem] -= amount;
    ++effects_;
  }
  // A hook is left when all companions have had their turn.
  if (st.kind == StmtKind::kHook && hook(c)) return Progress::kRan;
  ++frame.pc;
  switch (st.kind) {
    case StmtKind::kInsn:
      if (Error e = execute(st.insn)) return e;
      break;
    case StmtKind::kPseudo: c.s[st.reg] = pseudo(st); break;
    case StmtKind::kLoop: {
      const uint32_t trip = value(st.amount);
      if (static_cast<int32_t>(trip) <= 0) break;
      c.s[st.reg] = 0;
      c.frames.push_back({&st.blocks[0], 0, &st, 0, trip});
      break;
    }
    case StmtKind::kWhile: c.frames.push_back({&st.blocks[0], 0, &st}); break;
    case StmtKind::kIf: {
      const size_t arm = (c.p[st.reg] != 0) != st.pred_neg ? 0 : 1;
      if (arm < st.blocks.size()) c.frames.push_back({&st.blocks[arm], 0, &st});
      break;
    }
    case StmtKind::kCall: enterKernel(pod_.module->kernels[st.index], callWords(st), &st); break;
    case StmtKind::kDma:
      if (Error e = dma(c.code->dmas[st.index])) return e;
      break;
    case StmtKind::kSemWait: break;
    case StmtKind::kSemSignal:
      ++effects_;
      pod_.devices[value(st.device)]->sems[sem] += static_cast<int32_t>(value(st.amount));
      break;
    case StmtKind::kSemAdd: ++effects_, sems[sem] += static_cast<int32_t>(value(st.amount)); break;
    case StmtKind::kSemRead: c.s[st.reg] = static_cast<uint32_t>(sems[sem]); break;
    case StmtKind::kHook: break;
    case StmtKind::kDrain: stepCompanion(st.index, true); break;
  }
  return Progress::kRan;
}

std::vector<uint32_t> Device::callWords(const llo::Stmt& st) {
  std::vector<uint32_t> words;
  for (const llo::CallArg& a : st.args) {
    if (!a.is_buffer) {
      words.push_back(value(a.offset));
      continue;
    }
    const int64_t address = buffer_address_[a.buffer];
    if (pod_.module->buffers[a.buffer].space == isa::Space::kHbm) {
      words.push_back(static_cast<uint32_t>(address / 512));
      words.push_back(value(a.offset));
    } else {
      words.push_back(static_cast<uint32_t>(address) + value(a.offset));
    }
  }
  return words;
}

uint32_t Device::pseudo(const llo::Stmt& st) {
  Context& c = top();
  switch (st.pseudo) {
    case llo::PseudoKind::kGrid: return static_cast<uint32_t>(c.grid[st.index]);
    case llo::PseudoKind::kParam: return c.params[st.index];
    case llo::PseudoKind::kBlock: return static_cast<uint32_t>(c.block_address[st.index]);
    case llo::PseudoKind::kScratch: return static_cast<uint32_t>(c.scratch_address[st.index]);
    case llo::PseudoKind::kSmem:
    case llo::PseudoKind::kVmem: return static_cast<uint32_t>(buffer_address_[st.index]);
    case llo::PseudoKind::kHbmRow: return static_cast<uint32_t>(buffer_address_[st.index] / 512);
    case llo::PseudoKind::kDevice: return static_cast<uint32_t>(position_);
    case llo::PseudoKind::kDeviceWord:
      return pod_.module->device_table[position_ * pod_.module->device_table_words + st.index];
  }
  return 0;
}

Device::Spot Device::spotOf(const llo::Place& place) {
  Context& c = top();
  Spot spot{isa::Space::kVmem, place.offset};
  for (int32_t r : place.regs) spot.address += static_cast<int32_t>(c.s[r]);
  switch (place.kind) {
    case llo::Place::kBuffer:
      spot.space = pod_.module->buffers[place.index].space;
      spot.address += buffer_address_[place.index];
      break;
    case llo::Place::kParam: {
      size_t word = 0;
      for (int p = 0; p < place.index; ++p) word += c.kernel->params[p].kind == llo::KernelParam::kHbm ? 2 : 1;
      const auto kind = c.kernel->params[place.index].kind;
      spot.space = kind == llo::KernelParam::kHbm ? isa::Space::kHbm : kind == llo::KernelParam::kVmem ? isa::Space::kVmem : isa::Space::kSmem;
      if (kind == llo::KernelParam::kHbm) spot.address += int64_t{c.params[word]} * 512 + static_cast<int32_t>(c.params[word + 1]);
      else spot.address += c.params[word];
      break;
    }
    case llo::Place::kBlock: spot.address += c.block_address[place.index]; break;
    case llo::Place::kScratch: spot.address += c.scratch_address[place.index]; break;
  }
  return spot;
}

// The semaphore of that number, one of a row where a register is added to it.
Error Device::semaphore(int32_t index, int32_t plus, int64_t* number) const {
  *number = index + (plus >= 0 ? int64_t{static_cast<int32_t>(stack_.back()->s[plus])} : 0);
  if (*number >= 0 && *number < static_cast<int64_t>(sems.size())) return Error::success();
  return bad(Code::kLloAccess, "there is no semaphore " + llvm::Twine(*number));
}

Error Device::dma(const llo::Dma& d) {
  ++effects_;
  Device& to = d.remote ? *pod_.devices[value(d.device)] : *this;
  const Spot src = spotOf(d.src);
  const Spot dst = spotOf(d.dst);
  for (int64_t k = 0; k < d.dims[2].count; ++k)
    for (int64_t j = 0; j < d.dims[1].count; ++j)
      for (int64_t i = 0; i < d.dims[0].count; ++i) {
        const uint8_t* a = space(src.space).at(src.address + i * d.dims[0].src_stride + j * d.dims[1].src_stride + k * d.dims[2].src_stride, d.run);
        uint8_t* b = to.space(dst.space).at(dst.address + i * d.dims[0].dst_stride + j * d.dims[1].dst_stride + k * d.dims[2].dst_stride, d.run);
        if (!a) return bad(Code::kLloAccess, "a DMA of " + llvm::Twine(d.run) + "-byte runs reads outside its source");
        if (!b) return bad(Code::kLloAccess, "a DMA of " + llvm::Twine(d.run) + "-byte runs writes outside its destination");
        std::memmove(b, a, d.run);
      }
  for (const bool at_source : {true, false}) {
    if ((at_source ? d.src_sem : d.dst_sem) < 0) continue;
    int64_t sem;
    if (Error e = semaphore(at_source ? d.src_sem : d.dst_sem, at_source ? d.src_sem_plus : d.dst_sem_plus, &sem))
      return e;
    (at_source ? *this : to).sems[sem] += d.totalBytes();
  }
  return Error::success();
}

}  // namespace tpu::emulate::llo_run
