#include "place.h"

#include <algorithm>

#include "tpu/schedule/report.h"
#include "tpu/support/units.h"

namespace tpu::schedule {
namespace {

constexpr int64_t kHbmAlign = 4096;

int64_t aligned(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

llvm::Error tooLarge(const Context& ctx, int64_t needed, int64_t limit) {
  const llo::Module& m = ctx.module;
  const Peak peak = hbmPeak(m);
  Diagnostic d;
  d.code = Code::kHbmFull;
  d.exit = ExitStatus::kDoesNotFit;
  d.text = "the program needs " + formatBinaryBytes(needed) + " of HBM, " + formatBinaryBytes(limit) +
           " are there: " + formatBinaryBytes(needed - limit) + " too much";
  if (!peak.buffers.empty()) d.loc = ctx.locOf(m.buffers[peak.buffers[0].buffer].loc);
  for (size_t k = 0; k < peak.buffers.size() && k < 5; ++k) {
    const llo::Buffer& b = m.buffers[peak.buffers[k].buffer];
    Diagnostic note;
    note.severity = Severity::kNote;
    note.code = Code::kHbmFull;
    note.loc = ctx.locOf(b.loc);
    note.text = bufferText(b) + " takes " + formatBinaryBytes(peak.buffers[k].bytes) + " (" +
                formatBinaryBytes(b.real_bytes) + " without padding)";
    d.notes.push_back(std::move(note));
  }
  return fail(std::move(d));
}

}  // namespace

llvm::Error placeBuffers(Context& ctx, int64_t limit) {
  const llo::Module& m = ctx.module;
  const std::vector<LiveRange> ranges = bufferRanges(m);
  ctx.address.assign(m.buffers.size(), 0);
  std::vector<int64_t> bytes(m.buffers.size(), 0);  // by storage: the largest of those that share it
  for (size_t b = 0; b < m.buffers.size(); ++b) {
    int64_t& s = bytes[storageOf(m, static_cast<int32_t>(b))];
    s = std::max(s, m.buffers[b].bytes);
  }
  // HBM: larger buffers first, each at the lowest address where nothing that lives at the same time is in the
  // way.
  std::vector<int32_t> order;
  for (size_t b = 0; b < m.buffers.size(); ++b)
    if (m.buffers[b].alias < 0 && m.buffers[b].space == isa::Space::kHbm && ranges[b].begin >= 0)
      order.push_back(static_cast<int32_t>(b));
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return bytes[a] > bytes[b]; });
  struct Placed {
    int64_t begin, end;
    int32_t buffer;
  };
  std::vector<Placed> placed;  // ascending by address
  for (int32_t b : order) {
    const int64_t size = aligned(bytes[b], kHbmAlign);
    int64_t at = 0;
    for (const Placed& p : placed) {
      if (p.begin >= at + size) break;
      if (p.end > at && ranges[p.buffer].overlaps(ranges[b])) at = p.end;
    }
    ctx.address[b] = at;
    ctx.hbm_end = std::max(ctx.hbm_end, at + size);
    const Placed now{at, at + size, b};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), now,
                                   [](const Placed& x, const Placed& y) { return x.begin < y.begin; }),
                  now);
  }
  // Zero would say that nobody knows how much the program uses.
  ctx.hbm_end = std::max(ctx.hbm_end, kHbmAlign);
  if (ctx.hbm_end > limit) return tooLarge(ctx, ctx.hbm_end, limit);
  for (size_t b = 0; b < m.buffers.size(); ++b) {
    if (m.buffers[b].alias >= 0) continue;
    if (m.buffers[b].space == isa::Space::kSmem)
      ctx.address[b] = ctx.allocSmem(std::max<int64_t>(bytes[b], 4));
    if (m.buffers[b].space == isa::Space::kVmem) {
      ctx.address[b] = ctx.vmem_buffers_end;
      ctx.vmem_buffers_end += aligned(bytes[b], 4096);
    }
  }
  for (size_t b = 0; b < m.buffers.size(); ++b)
    ctx.address[b] = ctx.address[storageOf(m, static_cast<int32_t>(b))];
  ctx.vmem_end = ctx.vmem_buffers_end;
  if (ctx.vmem_buffers_end > ctx.chip.vmem_bytes)
    return fail(Code::kVmemFull, "",
                "buffers in VMEM take " + formatBinaryBytes(ctx.vmem_buffers_end) + ", the chip has " +
                    formatBinaryBytes(ctx.chip.vmem_bytes),
                ExitStatus::kDoesNotFit);
  return llvm::Error::success();
}

}  // namespace tpu::schedule
