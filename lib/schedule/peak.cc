// The moment when most HBM is in use, and by whom.
#include <algorithm>
#include <map>

#include "place.h"
#include "tpu/schedule/schedule.h"

namespace tpu::schedule {

Peak hbmPeak(const llo::Module& module) {
  const std::vector<LiveRange> ranges = bufferRanges(module);
  std::map<int64_t, int64_t> change;  // bytes more at a position
  std::vector<int64_t> bytes(module.buffers.size(), 0);
  for (size_t b = 0; b < module.buffers.size(); ++b) {
    int64_t& s = bytes[storageOf(module, static_cast<int32_t>(b))];
    if (module.buffers[b].space == isa::Space::kHbm) s = std::max(s, module.buffers[b].bytes);
  }
  for (size_t b = 0; b < module.buffers.size(); ++b) {
    if (module.buffers[b].alias >= 0 || ranges[b].begin < 0) continue;
    change[ranges[b].begin] += bytes[b];
    if (ranges[b].end < INT64_MAX) change[ranges[b].end + 1] -= bytes[b];
  }
  Peak peak;
  int64_t now = 0;
  for (const auto& [position, delta] : change) {
    now += delta;
    if (now > peak.bytes) peak.bytes = now, peak.position = position;
  }
  for (size_t b = 0; b < module.buffers.size(); ++b)
    if (bytes[b] > 0 && ranges[b].overlaps({peak.position, peak.position}))
      peak.buffers.push_back({static_cast<int32_t>(b), bytes[b], module.buffers[b].real_bytes});
  std::stable_sort(peak.buffers.begin(), peak.buffers.end(),
                   [](const PeakBuffer& a, const PeakBuffer& b) { return a.bytes > b.bytes; });
  return peak;
}

}  // namespace tpu::schedule
