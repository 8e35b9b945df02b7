#include "tpu/schedule/report.h"

#include "tpu/support/units.h"

namespace tpu::schedule {

std::optional<int64_t> parseSize(llvm::StringRef text) {
  int64_t number;
  if (text.consumeInteger(10, number) || number < 0) return std::nullopt;
  text = text.trim();
  if (text.empty() || text == "B") return number;
  const size_t power = llvm::StringRef("KMGT").find(text.front() == 'k' ? 'K' : text.front());
  if (power == llvm::StringRef::npos) return std::nullopt;
  const llvm::StringRef unit = text.drop_front();
  if (unit != "" && unit != "iB" && unit != "B") return std::nullopt;
  const int64_t base = unit == "B" ? 1000 : 1024;
  for (size_t k = 0; k <= power; ++k)
    if (__builtin_mul_overflow(number, base, &number)) return std::nullopt;
  return number;
}

void reportPeak(const State& state, llvm::raw_ostream& os, Report* report) {
  const Peak peak = hbmPeak(state.module);
  os << "HBM peak " << formatBinaryBytes(peak.bytes) << " of "
     << formatBinaryBytes(state.chip.hbmUsablePerDevice()) << " at statement " << peak.position
     << " of the driver\n";
  if (report) {
    report->begin("memory")
        .field("space", "hbm")
        .field("peak_bytes", peak.bytes)
        .field("placed_bytes", state.program.hbm_bytes)
        .field("position", peak.position);
    report->end();
  }
  for (const PeakBuffer& p : peak.buffers) {
    const llo::Buffer& b = state.module.buffers[p.buffer];
    const std::string loc = b.loc < state.module.locs.size() ? state.module.locs[b.loc] : "";
    os << "  " << formatBinaryBytes(p.bytes) << "  " << bufferText(b);
    if (!b.name.empty()) os << "  " << typeText(b.element, b.dims);
    if (p.real_bytes < p.bytes) os << "  (" << formatBinaryBytes(p.real_bytes) << " without padding)";
    if (!loc.empty()) os << "  " << loc;
    os << "\n";
    if (!report) continue;
    report->begin("buffer")
        .field("name", b.name)
        .field("bytes", p.bytes)
        .field("real_bytes", p.real_bytes)
        .field("loc", loc);
    report->end();
  }
}

void reportFunctions(const State& state, llvm::raw_ostream& os, Report* report) {
  for (const FunctionStats& f : state.stats.functions) {
    os << f.name << ": " << plural(f.bundles, "bundle") << ", " << plural(f.instructions, "instruction")
       << ", " << f.loops_pipelined << " of " << plural(f.loops_pipelined + f.loops_plain, "inner loop")
       << " pipelined, spills " << f.spilled[0] << " scalar, " << f.spilled[1] << " vector, " << f.spilled[2]
       << " mask, " << f.spilled[3] << " predicate, VMEM " << formatBinaryBytes(f.vmem_bytes)
       << (f.reduced_depth ? ", pipeline depth reduced" : "") << "\n";
    if (!report) continue;
    report->begin("function")
        .field("name", f.name)
        .field("bundles", f.bundles)
        .field("instructions", f.instructions)
        .field("loops_pipelined", f.loops_pipelined)
        .field("loops_plain", f.loops_plain)
        .field("spilled_scalars", f.spilled[0])
        .field("spilled_vectors", f.spilled[1])
        .field("spilled_masks", f.spilled[2])
        .field("spilled_predicates", f.spilled[3])
        .field("vmem_bytes", f.vmem_bytes)
        .field("reduced_depth", f.reduced_depth);
    report->end();
  }
}

std::string bufferText(const llo::Buffer& buffer) {
  if (!buffer.name.empty()) return buffer.name;
  return "a temporary " + typeText(buffer.element, buffer.dims);
}

std::string summary(const State& state, Report* report) {
  int pipelined = 0, loops = 0;
  int64_t bundles = 0;
  int spills = 0;
  for (const FunctionStats& f : state.stats.functions) {
    pipelined += f.loops_pipelined;
    loops += f.loops_pipelined + f.loops_plain;
    bundles += f.bundles;
    spills += f.spilled[1];
  }
  const uint64_t kernels = state.stats.functions.size() - 1;  // without the driver
  const isa::Program& p = state.program;
  if (report) {
    report->begin("summary")
        .field("kernels", kernels)
        .field("bundles", bundles)
        .field("loops", loops)
        .field("loops_pipelined", pipelined)
        .field("spilled_vectors", spills)
        .field("hbm_bytes", p.hbm_bytes)
        .field("vmem_bytes", p.vmem_bytes)
        .field("smem_bytes", p.smem_bytes);
    report->end();
  }
  std::string text = plural(kernels, "kernel") + ", " + plural(bundles, "bundle") + "; " +
                     std::to_string(pipelined) + " of " + plural(loops, "inner loop") + " software-pipelined";
  if (spills > 0) text += ", " + plural(spills, "vector register") + " spilled";
  text += "\nHBM " + formatBinaryBytes(p.hbm_bytes) + " of " +
          formatBinaryBytes(state.chip.hbmUsablePerDevice()) + ", VMEM " + formatBinaryBytes(p.vmem_bytes) +
          " of " + formatBinaryBytes(state.chip.vmem_bytes) + ", SMEM " + formatBinaryBytes(p.smem_bytes) + "\n";
  return text;
}

}  // namespace tpu::schedule
