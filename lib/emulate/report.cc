// A run told to programs (JSON Lines, a Perfetto trace) and to people.
#include <algorithm>
#include <cmath>

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/emulate/emulate.h"
#include "tpu/isa/isa.h"
#include "tpu/serial/json_writer.h"

namespace tpu::emulate {
namespace {

void stalls(JsonWriter& json, const std::array<int64_t, kNumStalls>& cycles) {
  json.key("stalls").beginObject();
  for (int i = 0; i < kNumStalls; ++i)
    if (cycles[static_cast<size_t>(i)])
      json.field(stallName(static_cast<Stall>(i)), cycles[static_cast<size_t>(i)]);
  json.endObject();
}

void floors(JsonWriter& json, llvm::StringRef name, const Floors& f, bool issue) {
  json.key(name).beginObject().field("mxu", f.mxu_ns).field("hbm", f.hbm_ns).field("ici", f.ici_ns);
  if (issue) json.field("issue", f.issue_ns);
  json.endObject();
}

void runRecord(JsonWriter& json, const RunStats& s) {
  json.beginObject()
      .field("type", "run")
      .field("target", s.target)
      .field("devices", s.devices)
      .field("cycles", s.cycles)
      .field("time_ns", s.time_ns);
  floors(json, "required_floor_ns", s.required, false);
  floors(json, "executed_floor_ns", s.executed, true);
  // A program that states nothing it needs has no efficiency.
  const bool known = s.required.largest() > 0;
  json.key("efficiency");
  known ? json.number(s.efficiency) : json.null();
  json.field("mxu_utilization", s.mxu_utilization)
      .field("hbm_utilization", s.hbm_utilization)
      .field("ici_utilization", s.ici_utilization);
  json.key("mfu");
  known ? json.number(s.mfu) : json.null();
  json.field("hbm_peak_bytes", s.hbm_peak_bytes).field("vmem_peak_bytes", s.vmem_peak_bytes).endObject();
}

}  // namespace

void writeReport(const RunResult& result, llvm::raw_ostream& os) {
  const RunStats& s = result.stats;
  const auto record = [&](auto fill) {
    JsonWriter json(os);
    fill(json);
    os << '\n';
  };
  record([&](JsonWriter& json) { runRecord(json, s); });
  for (const DeviceStats& d : s.device)
    record([&](JsonWriter& json) {
      json.beginObject()
          .field("type", "device")
          .field("device", d.device)
          .field("start_cycle", d.start_cycle)
          .field("end_cycle", d.end_cycle)
          .field("bundles", d.bundles)
          .field("instructions", d.instructions)
          .field("vector_instructions", d.vector_instructions);
      json.key("slots").beginObject();
      for (int i = 0; i < isa::kNumSlots; ++i)
        if (d.slots[static_cast<size_t>(i)])
          json.field(isa::slotName(static_cast<isa::Slot>(i)), d.slots[static_cast<size_t>(i)]);
      json.endObject().field("mxu_busy_cycles", llvm::ArrayRef<int64_t>(d.mxu_busy));
      stalls(json, d.stalls);
      json.field("hbm_read_bytes", d.hbm_read_bytes)
          .field("hbm_write_bytes", d.hbm_write_bytes)
          .field("dma_starts", d.dma_starts)
          .field("dma_bytes", d.dma_bytes)
          .endObject();
    });
  for (const KernelStats& k : s.kernels)
    record([&](JsonWriter& json) {
      json.beginObject()
          .field("type", "kernel")
          .field("device", k.device)
          .field("name", k.name)
          .field("calls", k.calls)
          .field("bundles", k.bundles)
          .field("cycles", k.cycles);
      stalls(json, k.stalls);
      json.endObject();
    });
  for (const QueueStats& q : s.queues)
    record([&](JsonWriter& json) {
      json.beginObject()
          .field("type", "queue")
          .field("device", q.device)
          .field("name", q.name)
          .field("transfers", q.transfers)
          .field("bytes", q.bytes)
          .field("busy_cycles", q.busy_cycles)
          .endObject();
    });
  for (const LinkStats& l : s.links)
    record([&](JsonWriter& json) {
      json.beginObject()
          .field("type", "link")
          .field("chip", l.chip)
          .field("link", l.link)
          .field("packets", l.packets)
          .field("bytes", l.bytes)
          .field("busy_cycles", l.busy_cycles)
          .endObject();
    });
}

namespace {

// Lanes of a process in the trace: kernels, waits, then queues; links stand in a process per chip behind the
// devices.
constexpr int kKernelLane = 0, kWaitLane = 1, kFirstQueueLane = 2, kLinkProcesses = 1 << 20;

class Trace {
 public:
  Trace(const RunResult& result, llvm::raw_ostream& os) : r_(result), os_(os), json_(os) {}

  void write() {
    os_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    names();
    for (const TraceSpan& span : r_.trace) event(span);
    os_ << "\n]}\n";
  }

 private:
  // The lanes that occur, in order.
  void names() {
    std::vector<std::pair<int, int>> lanes;
    for (const TraceSpan& s : r_.trace) lanes.push_back(lane(s));
    std::sort(lanes.begin(), lanes.end());
    lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
    int last = -1;
    for (const auto& [process, row] : lanes) {
      if (process != last)
        name("process_name", process, 0,
             process < kLinkProcesses ? "device " + std::to_string(process)
                                      : "links of chip " + std::to_string(process - kLinkProcesses));
      last = process;
      name("thread_name", process, row, laneName(process, row));
    }
  }

  std::pair<int, int> lane(const TraceSpan& s) const {
    switch (s.lane) {
      case TraceSpan::kKernel:
        return {s.device, kKernelLane};
      case TraceSpan::kWait:
        return {s.device, kWaitLane};
      case TraceSpan::kQueue:
        return {s.device, kFirstQueueLane + s.row};
      case TraceSpan::kLink:
        return {kLinkProcesses + s.device, s.row};
    }
    return {0, 0};
  }
  std::string laneName(int process, int row) const {
    if (process >= kLinkProcesses) return "link " + std::to_string(row) + (row % 2 ? " (down)" : " (up)");
    if (row == kKernelLane) return "kernels";
    if (row == kWaitLane) return "waits";
    return "dma " + r_.queue_names[static_cast<size_t>(row - kFirstQueueLane)];
  }

  void begin() {
    if (!first_) os_ << ",\n";
    first_ = false;
  }
  void name(const char* kind, int process, int row, const std::string& text) {
    begin();
    JsonWriter json(os_);
    json.beginObject().field("ph", "M").field("name", kind).field("pid", process).field("tid", row);
    json.key("args").beginObject().field("name", text).endObject().endObject();
  }
  void event(const TraceSpan& s) {
    begin();
    const double us = 1e6 / static_cast<double>(r_.stats.clock_hz);
    const auto [process, row] = lane(s);
    JsonWriter json(os_);
    json.beginObject()
        .field("ph", "X")
        .field("name", eventName(s))
        .field("pid", process)
        .field("tid", row)
        .field("ts", s.begin * us)
        .field("dur", (s.end - s.begin) * us);
    if (s.bytes) json.key("args").beginObject().field("bytes", s.bytes).endObject();
    json.endObject();
  }
  std::string eventName(const TraceSpan& s) const {
    switch (s.lane) {
      case TraceSpan::kKernel:
        return r_.trace_names[static_cast<size_t>(s.name)];
      case TraceSpan::kWait:
        return s.name < 0 ? "queue full" : "semaphore " + std::to_string(s.name);
      case TraceSpan::kQueue:
        return "dma at bundle " + std::to_string(s.name);
      case TraceSpan::kLink:
        return "to device " + std::to_string(s.name);
    }
    return "";
  }

  const RunResult& r_;
  llvm::raw_ostream& os_;
  JsonWriter json_;
  bool first_ = true;
};

std::string duration(double ns) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (ns < 1e3)
    os << llvm::format("%.0f ns", ns);
  else if (ns < 1e6)
    os << llvm::format("%.2f us", ns / 1e3);
  else if (ns < 1e9)
    os << llvm::format("%.3f ms", ns / 1e6);
  else
    os << llvm::format("%.3f s", ns / 1e9);
  return text;
}
std::string bytes(int64_t n) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const auto x = static_cast<double>(n);
  if (n < 1 << 20)
    os << llvm::format("%.1f KiB", x / 1024);
  else if (n < 1 << 30)
    os << llvm::format("%.1f MiB", x / (1 << 20));
  else
    os << llvm::format("%.2f GiB", x / (1 << 30));
  return text;
}

}  // namespace

void writeTrace(const RunResult& result, llvm::raw_ostream& os) { Trace(result, os).write(); }

std::string summary(const RunResult& result) {
  const RunStats& s = result.stats;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << s.devices << (s.devices == 1 ? " device" : " devices") << " of " << s.target << ": " << s.cycles
     << " cycles, " << duration(s.time_ns);
  if (s.required.largest() > 0) {
    const Floors& f = s.required;
    const char* bound = f.largest() == f.mxu_ns   ? "the matrix units"
                        : f.largest() == f.hbm_ns ? "HBM"
                                                  : "the links";
    os << llvm::format("; efficiency %.1f %%, bound by ", s.efficiency * 100) << bound << " ("
       << duration(f.largest()) << ")";
  }
  os << llvm::format("\nMXU %.1f %%, HBM %.1f %%, links %.1f %% busy; ", s.mxu_utilization * 100,
                     s.hbm_utilization * 100, s.ici_utilization * 100)
     << "HBM peak " << bytes(s.hbm_peak_bytes) << ", VMEM peak " << bytes(s.vmem_peak_bytes);
  if (s.half_chips) os << "\none of the two cores of each device is used";
  os << '\n';
  return text;
}

}  // namespace tpu::emulate
