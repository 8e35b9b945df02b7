// How many slots each block of a kernel gets, and where they lie in VMEM.
#include "motion.h"
#include "pipeline.h"
#include "tpu/support/units.h"

namespace tpu::schedule {

std::vector<ActiveDim> activeDims(const llo::Kernel& kernel) {
  std::vector<ActiveDim> dims;
  for (size_t d = 0; d < kernel.grid.size(); ++d)
    if (kernel.grid[d] > 1) dims.push_back({static_cast<int>(d), kernel.grid[d]});
  return dims;
}

Motion motionOf(const llo::PipelineBlock& block, const std::vector<ActiveDim>& dims) {
  Motion m;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t delta = block.step[dims[d].index];
    for (size_t e = d + 1; e < dims.size(); ++e) delta -= (dims[e].size - 1) * block.step[dims[e].index];
    m.delta.push_back(delta);
  }
  return m;
}

namespace {

// A third slot for inputs, where VMEM has room to spare and the grid is long enough to need it.
template <class Total>
void deepen(const Context& ctx, const llo::Kernel& kernel, const std::vector<ActiveDim>& dims, Total&& total,
            std::vector<int>& slots, VmemPlan& plan) {
  int64_t steps = 1;
  for (const ActiveDim& d : dims) steps *= d.size;
  bool inputs = false, outputs = false;
  for (size_t b = 0; b < slots.size(); ++b)
    (kernel.blocks[b].direction == llo::Direction::kIn ? inputs : outputs) |= slots[b] == 2;
  if (steps < 3 || !inputs || !outputs) return;
  const std::vector<int> before = slots;
  for (size_t b = 0; b < slots.size(); ++b)
    if (slots[b] == 2 && kernel.blocks[b].direction == llo::Direction::kIn) slots[b] = 3;
  plan.two_ahead = total() <= ctx.chip.vmem_bytes / 4 * 3;
  if (!plan.two_ahead) slots = before;
}

}  // namespace

llvm::Expected<VmemPlan> planVmem(const Context& ctx, const llo::Kernel& kernel) {
  const std::vector<ActiveDim> dims = activeDims(kernel);
  std::vector<int> slots;
  auto total = [&] {
    int64_t bytes = ctx.vmem_buffers_end;
    for (size_t b = 0; b < kernel.blocks.size(); ++b)
      bytes += slots[b] * ((kernel.blocks[b].bytes + 4095) / 4096 * 4096);
    for (int64_t s : kernel.scratch) bytes += (s + 4095) / 4096 * 4096;
    return bytes;
  };
  for (const llo::PipelineBlock& block : kernel.blocks)
    slots.push_back(motionOf(block, dims).moves() ? 2 : 1);
  VmemPlan plan;
  deepen(ctx, kernel, dims, total, slots, plan);
  while (total() > ctx.chip.vmem_bytes) {
    int largest = -1;
    for (size_t b = 0; b < slots.size(); ++b)
      if (slots[b] == 2 && (largest < 0 || kernel.blocks[b].bytes > kernel.blocks[largest].bytes))
        largest = static_cast<int>(b);
    if (largest < 0) {
      std::string text = "kernel " + kernel.name + " needs " + formatBinaryBytes(total()) +
                         " of VMEM with one slot for each block, the chip has " +
                         formatBinaryBytes(ctx.chip.vmem_bytes) + "; tiles:";
      for (const llo::PipelineBlock& block : kernel.blocks)
        text += " " + block.name + " " + formatBinaryBytes(block.bytes) + ",";
      text.pop_back();
      return fail(Code::kVmemFull, "", text, ExitStatus::kDoesNotFit);
    }
    slots[largest] = 1;
    plan.reduced = true;
  }
  int64_t at = ctx.vmem_buffers_end;
  auto place = [&](int64_t bytes) {
    const int64_t address = at;
    at += (bytes + 4095) / 4096 * 4096;
    return address;
  };
  for (size_t b = 0; b < slots.size(); ++b) {
    plan.slots.emplace_back();
    for (int k = 0; k < slots[b]; ++k) plan.slots.back().push_back(place(kernel.blocks[b].bytes));
  }
  for (int64_t s : kernel.scratch) plan.scratch.push_back(place(s));
  plan.end = at;
  return plan;
}

}  // namespace tpu::schedule
