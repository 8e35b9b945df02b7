// The passes in order: buffers get addresses, the driver and every kernel that it calls become functions,
// each function is simplified, gets units, pipelined loops, registers and bundles by itself, and all are laid
// out as one program.
#include "tpu/schedule/schedule.h"

#include <algorithm>
#include <set>

#include "address.h"
#include "delay.h"
#include "fresh.h"
#include "list.h"
#include "modulo.h"
#include "pipeline.h"
#include "place.h"
#include "regalloc.h"
#include "simplify.h"
#include "tpu/isa/dma.h"
#include "tpu/llo/document.h"
#include "tpu/llo/verify.h"
#include "units.h"
#include "work.h"

namespace tpu::schedule {

State::State() = default;
State::~State() = default;

namespace {

llvm::Error importPass(State& s) {
  llvm::Expected<llo::Module> m = llo::readDocument(std::move(s.input), s.input_name);
  if (!m) return m.takeError();
  s.module = std::move(*m);
  llvm::Expected<target::Chip> chip = target::parseChip(s.module.chip_json, s.input_name);
  if (!chip) return chip.takeError();
  s.chip = std::move(*chip);
  return llvm::Error::success();
}

// Bytes of SMEM kept free for scalars that are spilled later.
constexpr int64_t kSpillRoom = 1024;

llvm::Error placeAll(State& s, bool share_descriptors) {
  s.work = std::make_unique<Work>(s);
  Context& ctx = s.work->ctx;
  ctx.smem_end = isa::kDeviceTableAddress + 4 * s.module.device_table_words;
  int64_t words = 0;
  for (const llo::Kernel& k : s.module.kernels) words = std::max(words, paramWords(k).back());
  ctx.params = ctx.allocSmem(4 * words);
  ctx.link_word = ctx.allocSmem(4);
  if (share_descriptors) {
    size_t most = 0;
    for (const llo::Kernel& k : s.module.kernels) {
      size_t n = 0;
      for (const llo::PipelineBlock& b : k.blocks) n += b.transfers.size();
      most = std::max(most, n);
    }
    ctx.shared_descriptors = ctx.allocSmem(4 * isa::kDmaWords * static_cast<int64_t>(most + 1));
  }
  ctx.sems_used = s.module.num_sems;
  const int64_t usable = s.chip.hbmUsablePerDevice();
  return placeBuffers(ctx, s.options.hbm_limit > 0 ? std::min(s.options.hbm_limit, usable) : usable);
}

llvm::Error placePass(State& s) { return placeAll(s, /*share_descriptors=*/false); }

Func expandDriver(Work& work) {
  Func func;
  func.name = "driver";
  func.op_locs = work.ctx.module.driver.op_locs;
  FuncBuilder b(func);
  Expander(work.ctx, b, &work.callees, nullptr).run(work.ctx.module.driver, 0);
  b.terminate(isa::Opcode::halt, {});
  b.finish();
  func.vmem_spill_end = work.ctx.vmem_buffers_end;
  return func;
}

llvm::Error expandAll(State& s) {
  Work& work = *s.work;
  work.funcs.push_back(expandDriver(work));
  s.stats.functions.emplace_back();
  // Kernels with companions may share a name; ranges and labels need distinct ones.
  std::set<std::string> taken = {"driver"};
  for (size_t k = 0; k < work.callees.order.size(); ++k) {
    const llo::Kernel& kernel = s.module.kernels[work.callees.order[k].kernel];
    llvm::Expected<VmemPlan> plan = planVmem(work.ctx, kernel);
    if (!plan) return plan.takeError();
    Func func = expandKernel(work.ctx, work.callees.order[k], *plan, work.callees.call_locs[k]);
    func.vmem_spill_end = plan->end;
    const std::string base = func.name;
    for (int n = 1; !taken.insert(func.name).second; ++n) func.name = base + "." + std::to_string(n);
    s.stats.functions.emplace_back();
    s.stats.functions.back().reduced_depth = plan->reduced;
    work.funcs.push_back(std::move(func));
  }
  for (size_t f = 0; f < work.funcs.size(); ++f) {
    s.stats.functions[f].name = work.funcs[f].name;
    work.funcs[f].vmem_spill_limit = s.chip.vmem_bytes;
    findObjects(work.funcs[f]);
    findFreshWrites(work.funcs[f]);
  }
  return llvm::Error::success();
}

llvm::Error expandPass(State& s) {
  if (llvm::Error e = expandAll(s)) return e;
  if (s.work->ctx.smem_end + kSpillRoom <= s.chip.smem_bytes) return llvm::Error::success();
  s.stats.functions.clear();
  if (llvm::Error e = placeAll(s, /*share_descriptors=*/true)) return e;
  return expandAll(s);
}

llvm::Error simplifyPass(State& s) {
  for (Func& f : s.work->funcs) simplify(f);
  return llvm::Error::success();
}

llvm::Error unitsPass(State& s) {
  for (Func& f : s.work->funcs)
    if (llvm::Error e = assignUnits(f, s.work->machine)) return e;
  return llvm::Error::success();
}

llvm::Error pipelinePass(State& s) {
  Work& work = *s.work;
  work.unpipelined = work.funcs;
  for (size_t f = 0; s.options.modulo && f < work.funcs.size(); ++f) {
    PipelineStats stats;
    pipelineLoops(work.funcs[f], work.machine, &stats);
    s.stats.functions[f].loops_pipelined = stats.pipelined;
    s.stats.functions[f].loops_plain = stats.plain;
  }
  return llvm::Error::success();
}

llvm::Error allocatePass(State& s) {
  Work& work = *s.work;
  for (size_t f = 0; f < work.funcs.size(); ++f) {
    Func& func = work.funcs[f];
    AllocStats alloc;
    bool unfix = false;
    if (llvm::Error e = allocateRegisters(func, work.ctx, work.machine, &alloc, &unfix)) return e;
    if (unfix) {
      FunctionStats& stats = s.stats.functions[f];
      stats.loops_plain += stats.loops_pipelined;
      stats.loops_pipelined = 0;
      func = work.unpipelined[f];
      if (llvm::Error e = allocateRegisters(func, work.ctx, work.machine, &alloc, &unfix)) return e;
    }
    std::copy(alloc.spilled, alloc.spilled + kNumClasses, s.stats.functions[f].spilled.begin());
    work.ctx.vmem_end = std::max(work.ctx.vmem_end, func.vmem_spill_end);
    s.stats.functions[f].vmem_bytes = func.vmem_spill_end;
  }
  return llvm::Error::success();
}

llvm::Error bundlePass(State& s) {
  Work& work = *s.work;
  for (size_t f = 0; f < work.funcs.size(); ++f) {
    Scheduled result;
    for (const Block& block : work.funcs[f].blocks) {
      Bundles& out = result.blocks.emplace_back();
      if (block.fixed)
        layOutFixed(block, work.machine, &out);
      else if (!listSchedule(block, work.machine, &out))
        return fail(Code::kFifoOverflow, "",
                    "a FIFO of " + s.chip.name + " is too short for " + work.funcs[f].name);
    }
    result.func = std::move(work.funcs[f]);
    fillDelayBundles(result, work.machine);
    FunctionStats& stats = s.stats.functions[f];
    for (const Bundles& b : result.blocks)
      for (const auto& bundle : b) stats.instructions += static_cast<int64_t>(bundle.size()), ++stats.bundles;
    work.scheduled.push_back(std::move(result));
  }
  work.funcs.clear();
  return llvm::Error::success();
}

llvm::Error emitPass(State& s) {
  Context& ctx = s.work->ctx;
  if (ctx.sems_used > s.chip.semaphores)
    return fail(Code::kSemaphoresFull, "",
                "the program needs " + std::to_string(ctx.sems_used) + " semaphores, the chip has " +
                    std::to_string(s.chip.semaphores),
                ExitStatus::kDoesNotFit);
  if (ctx.smem_end > s.chip.smem_bytes)
    return fail(Code::kSmemFull, "",
                "the program needs " + std::to_string(ctx.smem_end) + " bytes of SMEM, the chip has " +
                    std::to_string(s.chip.smem_bytes),
                ExitStatus::kDoesNotFit);
  s.program = emitProgram(ctx, s.work->scheduled);
  s.work.reset();
  return llvm::Error::success();
}

constexpr Pass<State> kPasses[] = {
    {"import", "read the llo document", importPass},
    {"place", "give buffers addresses in HBM, VMEM and SMEM", placePass},
    {"expand", "turn tile pipelines, loops, calls and transfers into machine code", expandPass},
    {"simplify", "fold constants and addresses, remove what is not used", simplifyPass},
    {"units", "give virtual matrix and cross-lane units physical ones", unitsPass},
    {"pipeline", "software-pipeline innermost loops", pipelinePass},
    {"allocate", "give virtual registers physical ones, spill what does not fit", allocatePass},
    {"bundle", "order each block into bundles, fill the delay bundles of branches", bundlePass},
    {"emit", "lay out the program", emitPass},
};

}  // namespace

llvm::ArrayRef<Pass<State>> passes() { return kPasses; }

llvm::Error Hooks::verify() {
  return state_.work ? llvm::Error::success() : llo::verify(state_.module, state_.chip);
}

void Hooks::printText(llvm::raw_ostream& os) {
  if (!state_.work || (state_.work->funcs.empty() && state_.work->scheduled.empty()))
    return llo::printText(state_.module, os);
  for (const Func& f : state_.work->funcs) printFunc(f, os);
  for (const Scheduled& f : state_.work->scheduled)
    for (size_t b = 0; b < f.blocks.size(); ++b) {
      os << f.func.name << " b" << b << ":\n";
      for (const auto& bundle : f.blocks[b]) {
        os << "  ";
        for (const Insn& i : bundle) os << isa::print(i.insn) << "; ";
        os << "\n";
      }
    }
}

void Hooks::writeDocument(llvm::raw_ostream& os) { llvm::cantFail(llo::writeDocument(state_.module, os)); }

llvm::Expected<isa::Program> schedule(const llo::Module& module, const target::Chip& chip,
                                      const Options& options, Stats* stats) {
  State state;
  state.module = module;
  state.chip = chip;
  state.options = options;
  for (const Pass<State>& pass : passes().drop_front())
    if (llvm::Error e = pass.run(state)) return e;
  if (stats) *stats = std::move(state.stats);
  return std::move(state.program);
}

}  // namespace tpu::schedule
