// The order of the work: buffers get addresses, the driver and every kernel that it calls become functions, each function is
// scheduled by itself, and all are laid out as one program.
#include "tpu/schedule/schedule.h"

#include <algorithm>

#include "address.h"
#include "emit.h"
#include "expand.h"
#include "list.h"
#include "pipeline.h"
#include "place.h"
#include "regalloc.h"
#include "simplify.h"
#include "tpu/isa/dma.h"
#include "units.h"

namespace tpu::schedule {
namespace {

void mapSmem(Context& ctx) {
  ctx.smem_end = isa::kDeviceTableAddress + 4 * ctx.module.device_table_words;
  int64_t words = 0;
  for (const llo::Kernel& k : ctx.module.kernels) words = std::max(words, paramWords(k).back());
  ctx.params = ctx.allocSmem(4 * words);
  ctx.link_word = ctx.allocSmem(4);
}

Func expandDriver(Context& ctx, Callees& callees) {
  Func func;
  func.name = "driver";
  func.op_locs = ctx.module.driver.op_locs;
  FuncBuilder b(func);
  Expander(ctx, b, &callees, nullptr).run(ctx.module.driver, 0);
  b.terminate(isa::Opcode::halt, {});
  b.finish();
  func.vmem_spill_base = func.vmem_spill_end = ctx.vmem_buffers_end;
  func.vmem_spill_limit = ctx.chip.vmem_bytes;
  return func;
}

class FunctionScheduler {
 public:
  FunctionScheduler(Context& ctx, const Machine& machine, const Options& options)
      : ctx_(ctx), machine_(machine), options_(options) {}

  llvm::Expected<Scheduled> run(Func func, FunctionStats* stats) {
    stats->name = func.name;
    findObjects(func);
    simplify(func);
    if (llvm::Error e = assignUnits(func, machine_)) return e;
    AllocStats alloc;
    bool unfix = false;
    if (llvm::Error e = allocateRegisters(func, ctx_, machine_, &alloc, &unfix)) return e;
    Scheduled result;
    for (const Block& block : func.blocks) {
      Bundles& out = result.blocks.emplace_back();
      if (block.fixed) {
        layOutFixed(block, machine_, &out);
        continue;
      }
      if (!listSchedule(block, machine_, &out))
        return fail(Code::kFifoOverflow, "", "a FIFO of " + ctx_.chip.name + " is too short for " + func.name);
    }
    for (const Bundles& b : result.blocks)
      for (const auto& bundle : b) stats->instructions += static_cast<int64_t>(bundle.size()), ++stats->bundles;
    std::copy(alloc.spilled, alloc.spilled + kNumClasses, stats->spilled.begin());
    ctx_.vmem_end = std::max(ctx_.vmem_end, func.vmem_spill_end);
    stats->vmem_bytes = func.vmem_spill_end;
    result.func = std::move(func);
    return result;
  }

 private:
  Context& ctx_;
  const Machine& machine_;
  const Options& options_;
};

}  // namespace

llvm::Expected<isa::Program> schedule(const llo::Module& module, const target::Chip& chip, const Options& options,
                                      Stats* stats) {
  Context ctx(module, chip);
  const Machine machine(chip);
  mapSmem(ctx);
  ctx.sems_used = module.num_sems;
  const int64_t usable = chip.hbmUsablePerDevice();
  if (llvm::Error e = placeBuffers(ctx, options.hbm_limit > 0 ? std::min(options.hbm_limit, usable) : usable)) return e;

  Callees callees;
  std::vector<Func> funcs;
  funcs.push_back(expandDriver(ctx, callees));
  std::vector<char> reduced(1, 0);
  for (size_t k = 0; k < callees.order.size(); ++k) {
    const llo::Kernel& kernel = module.kernels[callees.order[k].kernel];
    llvm::Expected<VmemPlan> plan = planVmem(ctx, kernel);
    if (!plan) return plan.takeError();
    funcs.push_back(expandKernel(ctx, callees.order[k], *plan, callees.call_locs[k]));
    funcs.back().vmem_spill_base = funcs.back().vmem_spill_end = plan->end;
    funcs.back().vmem_spill_limit = chip.vmem_bytes;
    reduced.push_back(plan->reduced);
  }
  std::vector<Scheduled> scheduled;
  FunctionScheduler scheduler(ctx, machine, options);
  for (size_t f = 0; f < funcs.size(); ++f) {
    FunctionStats function;
    llvm::Expected<Scheduled> result = scheduler.run(std::move(funcs[f]), &function);
    if (!result) return result.takeError();
    scheduled.push_back(std::move(*result));
    function.reduced_depth = reduced[f];
    if (stats) stats->functions.push_back(std::move(function));
  }
  if (ctx.sems_used > chip.semaphores)
    return fail(Code::kSemaphoresFull, "", "the program needs " + std::to_string(ctx.sems_used) + " semaphores, the chip has " +
                                               std::to_string(chip.semaphores));
  if (ctx.smem_end > chip.smem_bytes)
    return fail(Code::kSmemFull, "", "the program needs " + std::to_string(ctx.smem_end) + " bytes of SMEM, the chip has " +
                                         std::to_string(chip.smem_bytes), ExitStatus::kDoesNotFit);
  return emitProgram(ctx, scheduled);
}

}  // namespace tpu::schedule
