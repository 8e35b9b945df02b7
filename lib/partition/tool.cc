// One run of tpu-partition.
#include "tpu/partition/tool.h"

#include "check.h"
#include "passes.h"
#include "report.h"
#include "what_if.h"
#include "tpu/hlo/document.h"
#include "tpu/hlo/print.h"
#include "tpu/hlo/stablehlo.h"
#include "tpu/hlo/verify.h"
#include "tpu/sharding/text.h"
#include "tpu/support/units.h"

namespace tpu::partition {

std::vector<PassInfo> partitionPasses() { return passInfos(passList()); }

struct Partitioner::Impl : PassHooks {
  State state;
  PassOptions passes;
  bool check = false;
  std::vector<int64_t> device_order;

  llvm::Error verify() override { return hlo::verify(state.module); }
  void printText(llvm::raw_ostream& os) override { hlo::print(state.module, os); }
  void writeDocument(llvm::raw_ostream& os) override { llvm::cantFail(hlo::writeDocument(state.module, os)); }
};

Partitioner::Partitioner(PartitionRun run, DiagnosticSink& sink) : impl_(std::make_unique<Impl>()) {
  impl_->state.options = std::move(run.options);
  impl_->state.input_bytes = std::move(run.input_bytes);
  impl_->state.input_name = std::move(run.input_name);
  impl_->state.ctx.sink = &sink;
  impl_->state.ctx.explain = std::move(run.explain);
  impl_->passes = std::move(run.passes);
  impl_->check = run.check;
  impl_->state.keep_requests = run.find_removals;
  impl_->device_order = std::move(run.device_order);
}

Partitioner::~Partitioner() = default;

namespace {

llvm::Error applyOrder(hlo::Module& m, const std::vector<int64_t>& order) {
  std::vector<bool> seen(m.num_partitions, false);
  bool ok = static_cast<int64_t>(order.size()) == m.num_partitions;
  for (size_t i = 0; ok && i < order.size(); ++i) {
    ok = order[i] >= 0 && order[i] < m.num_partitions && !seen[order[i]];
    if (ok) seen[order[i]] = true;
  }
  if (!ok)
    return fail(Code::kBadMesh, "",
                "--device-order is no permutation of the " + llvm::Twine(m.num_partitions) + " devices");
  m.device_order = order;
  return llvm::Error::success();
}

}  // namespace

llvm::Error Partitioner::run() {
  llvm::Expected<bool> complete = runPasses<State>(passList(), impl_->state, *impl_, impl_->passes);
  if (!complete) return complete.takeError();
  hlo::Module& m = impl_->state.module;
  if (!impl_->device_order.empty()) {
    if (llvm::Error e = applyOrder(m, impl_->device_order)) return e;
  }
  if (!impl_->check || m.stage != hlo::Stage::kSpmd) return llvm::Error::success();
  llvm::Error errors = llvm::Error::success();
  for (Diagnostic& d : checkCollectives(m)) errors = llvm::joinErrors(std::move(errors), fail(std::move(d)));
  return errors;
}

const hlo::Module& Partitioner::module() const { return impl_->state.module; }

llvm::Error Partitioner::write(llvm::raw_ostream& os, llvm::StringRef emit, llvm::StringRef only) const {
  if (emit == "stablehlo")
    hlo::writeStableHlo(impl_->state.module, os);
  else if (emit == "text")
    hlo::print(impl_->state.module, os);
  else
    return hlo::writeDocument(impl_->state.module, os, only);
  return llvm::Error::success();
}

void Partitioner::writeSignature(llvm::raw_ostream& os) const {
  partition::writeSignature(impl_->state.module, false, os);
}

void Partitioner::writeMeshReport(llvm::raw_ostream& os) const {
  const State& s = impl_->state;
  if (!s.ctx.mesh) {
    os << "no mesh: one device\n";
    return;
  }
  const hlo::Mesh& mesh = s.ctx.meshOf(s.module);
  const target::Target& t = s.target;
  int64_t per_chip = t.chip.devicesPerChip();
  for (uint32_t a = 0; a < mesh.axes.size(); ++a) {
    // Neighbours along the axis: the chips they stand on and the hops between them.
    sharding::AxisRef axis = sharding::fullAxis(mesh, a);
    int64_t stride = sharding::stride(mesh, axis), hops = 0, longest = 0, slow = 0;
    int64_t chips_per_slice = t.numChips() / std::max(1, t.slices);
    for (int64_t i = 0; i + 1 < axis.size; ++i) {
      auto chip = [&](int64_t position) {
        int64_t device = position < static_cast<int64_t>(s.module.device_order.size())
                             ? s.module.device_order[position]
                             : position;
        return device / per_chip;
      };
      int64_t from = chip(i * stride), to = chip((i + 1) * stride);
      if (from / chips_per_slice != to / chips_per_slice) {
        ++slow;
        continue;
      }
      int64_t n = from == to ? 0 : static_cast<int64_t>(target::route(t, from, to).size());
      hops += n;
      longest = std::max(longest, n);
    }
    os << mesh.axes[a].name << '=' << axis.size << ": stride " << plural(stride, "device") << ", "
       << plural(hops, "hop") << " between neighbours in all, longest " << longest << ", "
       << formatBytes(t.chip.ici_sustained_bytes_per_s) << "/s per link and way";
    if (slow) os << ", " << plural(slow, "crossing") << " of the data-centre network";
    os << '\n';
  }
}

void Partitioner::writeExplanation(llvm::raw_ostream& os, bool json) const {
  const State& s = impl_->state;
  PartitionReport report = makeReport(s.module, s.target, s.unpartitioned_ops);
  if (s.requested) findRemovals(*s.requested, s, report);
  if (json) {
    writeJson(s.module, report, s.ctx, os);
  } else {
    writeText(s.module, report, s.ctx, os);
  }
}

std::string Partitioner::summary(size_t warnings) const {
  const State& s = impl_->state;
  return summaryText(s.module, makeReport(s.module, s.target, s.unpartitioned_ops), s.target, warnings);
}

}  // namespace tpu::partition
