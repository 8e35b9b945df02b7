// Accounts of a run, and the floors it is measured against.
#include "stats.h"

#include <algorithm>
#include <cmath>

#include "tpu/support/diagnostics.h"

namespace tpu::emulate {

double Floors::largest() const { return std::max({mxu_ns, hbm_ns, ici_ns, issue_ns}); }

namespace {

class Accounts {
 public:
  Accounts(const Machine& machine, const Chips& chips, RunResult* result)
      : machine_(machine),
        chip_(machine.target.chip),
        program_(*machine.program),
        chips_(chips),
        result_(*result),
        s_(result->stats) {}

  llvm::Error gather() {
    s_.target = machine_.target.text;
    s_.devices = program_.devices;
    s_.clock_hz = chip_.clock_hz;
    s_.half_chips = chip_.coresPerDevice() > 1;
    for (int64_t d = 0; d < program_.devices; ++d) device(d);
    s_.time_ns = nanoseconds(static_cast<double>(s_.cycles));
    links();
    requiredFloor();
    executedFloor();
    ratios();
    traces();
    return checkFloor();
  }

 private:
  double nanoseconds(double cycles) const { return cycles * 1e9 / static_cast<double>(chip_.clock_hz); }
  const ChipSim& chipOf(int64_t d) const {
    return *chips_[static_cast<size_t>(machine_.chip_of[static_cast<size_t>(d)])];
  }

  void device(int64_t d) {
    const ChipSim& chip = chipOf(d);
    const auto index = static_cast<size_t>(machine_.core_of[static_cast<size_t>(d)]);
    const Core& core = *chip.cores[index];
    const ChipSim::PerDevice& per = chip.devices[index];
    DeviceStats out;
    out.device = d;
    out.start_cycle = core.start_cycle;
    out.end_cycle = core.end_cycle;
    out.mxu_busy = core.mxu_busy;
    for (size_t m = 0; m < out.mxu_busy.size();
         ++m)  // rows nobody waited for may still be running at the end
      out.mxu_busy[m] -= std::max<int64_t>(0, core.mxu_until[m] - core.end_cycle);
    out.hbm_read_bytes = per.hbm_read;
    out.hbm_write_bytes = per.hbm_write;
    out.dma_starts = per.dma_starts;
    out.dma_bytes = per.dma_bytes;
    kernels(core, out);
    s_.cycles = std::max(s_.cycles, core.end_cycle);
    s_.hbm_peak_bytes = std::max({s_.hbm_peak_bytes, program_.hbm_bytes, per.hbm_top});
    s_.vmem_peak_bytes = std::max({s_.vmem_peak_bytes, program_.vmem_bytes, per.vmem_top});
    for (const ChipSim::Queue& q : per.queues)
      if (q.transfers)
        s_.queues.push_back(
            {d, q.name, q.transfers, q.bytes, static_cast<double>(q.busy_ticks) / kTicksPerCycle});
    s_.device.push_back(std::move(out));
  }

  void kernels(const Core& core, DeviceStats& out) {
    const Decoded& code = *machine_.code;
    std::vector<KernelStats> rows(code.kernels.size());
    int64_t insns = 0;
    for (size_t pc = 0; pc < code.bundles.size(); ++pc) {
      const Bundle& b = code.bundles[pc];
      const Profile& p = core.profile[pc];
      if (p.count == 0) continue;
      rows[b.kernel].bundles += p.count;
      rows[b.kernel].cycles += p.cycles;
      out.bundles += p.count;
      insns += p.count * b.num_insns;
      for (size_t s = 0; s < out.slots.size(); ++s) out.slots[s] += p.count * b.slots[s];
    }
    using isa::Slot;
    out.instructions = insns - core.skipped;
    out.vector_instructions = 0;
    for (const Slot slot :
         {Slot::kValu, Slot::kLoad, Slot::kStore, Slot::kMxu, Slot::kXlu, Slot::kEup, Slot::kPop})
      out.vector_instructions += out.slots[static_cast<size_t>(slot)];
    for (size_t k = 0; k < rows.size(); ++k) {
      for (int c = 0; c < kNumStalls; ++c)
        out.stalls[static_cast<size_t>(c)] += core.kernel_stalls[k][static_cast<size_t>(c)];
      if (rows[k].bundles == 0) continue;
      rows[k].device = core.device;
      rows[k].name = code.kernels[k];
      rows[k].calls = core.kernel_calls[k];
      rows[k].stalls = core.kernel_stalls[k];
      s_.kernels.push_back(std::move(rows[k]));
    }
  }

  void links() {
    for (size_t c = 0; c < chips_.size(); ++c)
      for (size_t l = 0; l < chips_[c]->links.size(); ++l) {
        const ChipSim::Link& link = chips_[c]->links[l];
        if (link.packets)
          s_.links.push_back({static_cast<int64_t>(c), static_cast<int>(l), link.packets, link.bytes,
                              static_cast<double>(link.busy_ticks) / kTicksPerCycle});
      }
  }

  // Peak of one device in multiply-add operations x 2 per second, from the bf16 rows that its matrix units
  // take.
  double peakFlops() const {
    for (const char* type : {"bf16", "f32"}) {
      if (!llvm::is_contained(chip_.mxu_types, type)) continue;
      const auto timing = chip_.timing(std::string("matmul_") + type);
      const double rows = type[0] == 'b' ? 16 : 8;
      const double per_row = static_cast<double>(timing.interval) * isa::mxuPanels(chip_.mxu_side) / rows;
      return 2.0 * chip_.mxus * chip_.coresPerDevice() * chip_.mxu_side * chip_.mxu_side / per_row *
             static_cast<double>(chip_.clock_hz);
    }
    return 0;
  }

  int linksPerChip() const {
    int least = chip_.ici_links;
    for (size_t c = 0; c < chips_.size(); ++c) {
      int have = 0;
      for (int l = 0; l < chip_.ici_links; ++l)
        have += target::neighbour(machine_.target, static_cast<int64_t>(c), l) >= 0;
      least = std::min(least, have);
    }
    return least;
  }

  double hbmRate() const {
    return static_cast<double>(chip_.hbm_sustained_bytes_per_s) / chip_.devicesPerChip();
  }
  double linkRate() const { return static_cast<double>(chip_.ici_sustained_bytes_per_s); }

  void requiredFloor() {
    Floors& f = s_.required;
    if (const double peak = peakFlops(); peak > 0)
      f.mxu_ns = static_cast<double>(program_.required_flops_bf16) / peak * 1e9;
    f.hbm_ns = static_cast<double>(program_.required_hbm_bytes) / hbmRate() * 1e9;
    const double sharing = chip_.devicesPerChip();  // the devices of a chip share its links
    if (linksPerChip() > 0)
      f.ici_ns =
          static_cast<double>(program_.required_ici_bytes) * sharing / (linksPerChip() * linkRate()) * 1e9;
  }

  void executedFloor() {
    Floors& f = s_.executed;
    for (const DeviceStats& d : s_.device) {
      for (const int64_t busy : d.mxu_busy)
        f.mxu_ns = std::max(f.mxu_ns, nanoseconds(static_cast<double>(busy)));
      f.issue_ns = std::max(f.issue_ns, nanoseconds(static_cast<double>(d.bundles)));
    }
    for (const auto& chip : chips_) {
      int64_t bytes = 0;
      for (const ChipSim::PerDevice& d : chip->devices) bytes += d.hbm_read + d.hbm_write;
      f.hbm_ns = std::max(
          f.hbm_ns, static_cast<double>(bytes) / static_cast<double>(chip_.hbm_sustained_bytes_per_s) * 1e9);
    }
    for (const LinkStats& l : s_.links)
      f.ici_ns = std::max(f.ici_ns, static_cast<double>(l.bytes) / linkRate() * 1e9);
  }

  void ratios() {
    if (s_.time_ns <= 0) return;
    s_.efficiency = s_.required.largest() / s_.time_ns;
    double mxu = 0, hbm = 0, ici = 0;
    for (const DeviceStats& d : s_.device) {
      for (const int64_t busy : d.mxu_busy)
        mxu += static_cast<double>(busy) /
               (static_cast<double>(s_.cycles) * static_cast<double>(d.mxu_busy.size()) *
                static_cast<double>(s_.devices));
      hbm += static_cast<double>(d.hbm_read_bytes + d.hbm_write_bytes) / hbmRate() * 1e9 / s_.time_ns /
             static_cast<double>(s_.devices);
    }
    for (const LinkStats& l : s_.links) ici += l.busy_cycles;
    const double all_links = static_cast<double>(chips_.size()) * std::max(1, linksPerChip());
    s_.mxu_utilization = mxu;
    s_.hbm_utilization = hbm;
    s_.ici_utilization = ici / all_links / static_cast<double>(std::max<int64_t>(1, s_.cycles));
    s_.mfu = s_.required.mxu_ns / s_.time_ns;
  }

  void traces() {
    if (!machine_.trace) return;
    for (const auto& chip : chips_)
      result_.trace.insert(result_.trace.end(), chip->trace.begin(), chip->trace.end());
    result_.trace_names = machine_.code->kernels;
    for (int q = 0; q < 26 + chip_.ici_links; ++q)
      result_.queue_names.push_back(chips_.front()->queueName(q));
  }

  // Partial granules may still be under way when the last core has halted, so bytes are only a floor where
  // all was awaited.
  llvm::Error checkFloor() const {
    const struct {
      const char* what;
      double ns;
    } floors[] = {{"matrix units", s_.executed.mxu_ns}, {"bundle issue", s_.executed.issue_ns}};
    for (const auto& floor : floors)
      if (floor.ns > s_.time_ns * (1 + 1e-9))
        return fail(Code::kEmuFloor, "",
                    "the run took " + std::to_string(s_.time_ns) + " ns, its " + floor.what + " need " +
                        std::to_string(floor.ns),
                    ExitStatus::kInternal);
    bool pending = false;
    for (const auto& chip : chips_)
      for (const ChipSim::PerDevice& d : chip->devices) pending |= !d.owners.empty();
    if (pending) return llvm::Error::success();
    for (const auto& [what, ns] :
         {std::pair{"HBM", s_.executed.hbm_ns}, std::pair{"links", s_.executed.ici_ns}})
      if (ns > s_.time_ns * (1 + 1e-9))
        return fail(
            Code::kEmuFloor, "",
            "the run took " + std::to_string(s_.time_ns) + " ns, its " + what + " need " + std::to_string(ns),
            ExitStatus::kInternal);
    return llvm::Error::success();
  }

  const Machine& machine_;
  const target::Chip& chip_;
  const isa::Program& program_;
  const Chips& chips_;
  RunResult& result_;
  RunStats& s_;
};

}  // namespace

llvm::Error gatherStats(const Machine& machine, const Chips& chips, RunResult* result) {
  return Accounts(machine, chips, result).gather();
}

}  // namespace tpu::emulate
