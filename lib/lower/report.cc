// What tpu-lower says about its result: kernels and their VMEM, buffers that padding bloats, the summary line.
#include <algorithm>
#include <functional>

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "tpu/lower/passes.h"
#include "tpu/support/units.h"

namespace tpu::lower {
namespace {

struct Counts {
  std::vector<int64_t> calls;
  uint64_t dmas = 0, remote = 0;
};

void count(const llo::Block& block, const llo::Code& code, Counts& c) {
  for (const llo::Stmt& s : block) {
    if (s.kind == llo::StmtKind::kCall) ++c.calls[s.index];
    if (s.kind == llo::StmtKind::kDma) (code.dmas[s.index].remote ? c.remote : c.dmas) += 1;
    for (const llo::Block& b : s.blocks) count(b, code, c);
  }
}

Counts countDriver(const llo::Module& m) {
  Counts c;
  c.calls.assign(m.kernels.size(), 0);
  count(m.driver.body, m.driver, c);
  return c;
}

// A dimension moved to the front, so that no small one stands in the tile.
std::string advice(llvm::ArrayRef<int64_t> dims, ElementType type) {
  int64_t best = isa::layoutBytes(isa::defaultLayout(type, dims), type, dims);
  std::string text;
  for (size_t d = 0; d < dims.size(); ++d) {
    llvm::SmallVector<int64_t, 6> moved(dims.begin(), dims.end());
    int64_t x = moved[d];
    moved.erase(moved.begin() + d);
    moved.insert(moved.begin(), x);
    int64_t bytes = isa::layoutBytes(isa::defaultLayout(type, moved), type, moved);
    if (bytes >= best) continue;
    best = bytes;
    text = "move dimension " + std::to_string(d) + " (size " + std::to_string(x) + ") to the front: " + formatBinaryBytes(bytes);
  }
  return text;
}

}  // namespace

void reportKernels(const llo::Module& m, llvm::raw_ostream& os, Report* report) {
  Counts c = countDriver(m);
  for (size_t k = 0; k < m.kernels.size(); ++k) {
    const llo::Kernel& kernel = m.kernels[k];
    int64_t blocks = 0, scratch = 0;
    for (const llo::PipelineBlock& b : kernel.blocks) blocks += b.bytes;
    for (int64_t s : kernel.scratch) scratch += s;
    os << kernel.name << ": " << plural(static_cast<uint64_t>(c.calls[k]), "call") << ", grid " << dimsText(kernel.grid) << ", blocks " << formatBinaryBytes(blocks) << " a slot, scratch "
       << formatBinaryBytes(scratch) << ", VMEM budget " << formatBinaryBytes(kernel.vmem_budget) << "\n";
    if (!report) continue;
    JsonWriter& w = report->begin("kernel");
    w.field("name", kernel.name).field("calls", c.calls[k]).field("block_bytes", blocks).field("scratch_bytes", scratch).field("vmem_budget_bytes", kernel.vmem_budget);
    report->end();
  }
}

void reportPadding(const llo::Module& m, llvm::raw_ostream& os, Report* report) {
  std::vector<const llo::Buffer*> wasteful;
  for (const llo::Buffer& b : m.buffers)
    if (b.space == isa::Space::kHbm && b.real_bytes > 0 && b.bytes >= 2 * b.real_bytes) wasteful.push_back(&b);
  llvm::stable_sort(wasteful, [](const llo::Buffer* a, const llo::Buffer* b) { return a->bytes - a->real_bytes > b->bytes - b->real_bytes; });
  for (const llo::Buffer* b : wasteful) {
    std::string help = advice(b->dims, b->element);
    os << m.locs[b->loc] << (m.locs[b->loc].empty() ? "" : ": ") << typeText(b->element, b->dims) << (b->name.empty() ? "" : " '" + b->name + "'") << " takes "
       << formatBinaryBytes(b->bytes) << " for " << formatBinaryBytes(b->real_bytes) << ", " << llvm::formatv("{0:f1}", static_cast<double>(b->bytes) / b->real_bytes).str()
       << " x (tile " << b->layout.tile_rows << "x128)" << (help.empty() ? "" : "; " + help) << "\n";
    if (!report) continue;
    JsonWriter& w = report->begin("padding");
    w.field("name", b->name).field("loc", m.locs[b->loc]).field("bytes", b->bytes).field("real_bytes", b->real_bytes).field("advice", help);
    report->end();
  }
}

std::string summary(const State& state, Report* report) {
  const llo::Module& m = state.llo;
  const Counts c = countDriver(m);
  const uint64_t kernels = m.kernels.size();
  uint64_t calls = 0, temporaries = 0;
  for (int64_t n : c.calls) calls += n;
  for (const llo::Buffer& b : m.buffers)
    if (b.role == llo::Role::kTemp && b.space == isa::Space::kHbm) temporaries += b.bytes;
  if (report) {
    report->begin("summary")
        .field("kernels", kernels)
        .field("calls", calls)
        .field("copies", c.dmas)
        .field("sends", c.remote)
        .field("temporary_bytes", temporaries);
    report->end();
  }
  std::string text = plural(kernels, "kernel") + " in " + plural(calls, "call") + ", " + (c.dmas == 1 ? "1 copy" : plural(c.dmas, "copie")) +
                     ", " + plural(c.remote, "send") + "; " + formatBinaryBytes(temporaries) +
                     " of temporaries before sharing\n";
  if (const int64_t cores = state.target->chip.coresPerDevice(); cores > 1)
    text += "one of the " + std::to_string(cores) + " cores of each device is used\n";
  return text;
}

}  // namespace tpu::lower
