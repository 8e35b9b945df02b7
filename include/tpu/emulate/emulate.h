// Runs an assembled program on emulated chips: values, time, and the checks that silicon would not make.
//
// Arguments and results are global arrays; they are cut and assembled by the program's signature. Time is
// counted in core cycles; how it comes about is stated in tpu/emulate/timing.h. A run is the same, bit for
// bit, for any number of threads.
//
// A program that breaks a rule of the machine (bounds, alignment, FIFO limits, ownership of memory by a
// transfer, ...) fails with a code of area 08xx, exit 1, and the location of the source line. One that can
// make no progress fails with exit 5.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "tpu/isa/program.h"
#include "tpu/support/host_tensor.h"

namespace llvm {
class raw_ostream;
}

namespace tpu::emulate {

struct RunOptions {
  int threads = 1;          // host threads; changes nothing but the time it takes
  bool strict = false;      // definedness of every bit, semaphores zero and transfers awaited at the end
  bool trace = false;       // keep RunResult::trace
  bool start_skew = false;  // devices start 0 to 50 us apart, drawn from skew_seed
  uint64_t skew_seed = 0;
  bool timing_only =
      false;  // scalar code only: arguments may be left out, results are empty; a branch on vector data fails
  int64_t max_cycles = 0;  // give up (exit 5) beyond; 0: no limit
};

/// Why a bundle did not issue in the cycle after the one before it.
enum class Stall : uint8_t {
  kScalar,
  kVector,
  kMask,
  kUnit,
  kEup,
  kXlu,
  kMxu,
  kWeights,
  kV2s,
  kBranch,
  kBank,
  kImem,
  kStore,
  kDmaQueue,
  kSemaphore,
};
inline constexpr int kNumStalls = 15;
llvm::StringRef stallName(Stall stall);  // "scalar", "vector", ... "semaphore"

struct KernelStats {  // one code range on one device
  int64_t device = 0;
  std::string name;
  int64_t calls = 0, bundles = 0, cycles = 0;
  std::array<int64_t, kNumStalls> stalls{};  // cycles
};
struct DeviceStats {
  int64_t device = 0;  // mesh position
  int64_t start_cycle = 0, end_cycle = 0;
  int64_t bundles = 0, instructions = 0, vector_instructions = 0;
  std::array<int64_t, 9> slots{};  // instructions by isa::Slot
  std::vector<int64_t> mxu_busy;   // cycles in which each matrix unit took rows
  std::array<int64_t, kNumStalls> stalls{};
  int64_t hbm_read_bytes = 0,
          hbm_write_bytes = 0;  // whole granules, of transfers this device started or received
  int64_t dma_starts = 0, dma_bytes = 0;
};
struct QueueStats {  // one DMA queue
  int64_t device = 0;
  std::string name;  // "hbm>vmem", "link0"
  int64_t transfers = 0, bytes = 0;
  double busy_cycles = 0;
};
struct LinkStats {
  int64_t chip = 0;
  int link = 0;  // 2 * dimension + (0: up, 1: down)
  int64_t packets = 0, bytes = 0;
  double busy_cycles = 0;
};
struct Floors {
  double mxu_ns = 0, hbm_ns = 0, ici_ns = 0, issue_ns = 0;
  double largest() const;
};

struct RunStats {
  std::string target;
  int64_t devices = 0, clock_hz = 0;
  int64_t cycles = 0;  // until the last core halted
  double time_ns = 0;
  Floors required, executed;
  double efficiency = 0;  // largest required floor / time
  double mxu_utilization = 0, hbm_utilization = 0, ici_utilization = 0, mfu = 0;
  int64_t hbm_peak_bytes = 0, vmem_peak_bytes = 0;
  bool half_chips = false;  // only one of two cores of each device is used
  std::vector<DeviceStats> device;
  std::vector<KernelStats> kernels;
  std::vector<QueueStats> queues;
  std::vector<LinkStats> links;
};

/// Something that happened on a lane of the trace, in cycles.
struct TraceSpan {
  enum Lane : uint8_t { kKernel, kQueue, kLink, kWait } lane;
  int32_t device = 0;  // device, or chip for kLink
  int32_t row = 0;     // queue or link index; for kKernel and kWait: 0
  int32_t name = 0;    // RunResult::trace_names
  double begin = 0, end = 0;
  int64_t bytes = 0;
};

struct RunResult {
  std::vector<HostTensor> results;  // global, in the order of Program::results
  RunStats stats;
  std::vector<TraceSpan> trace;  // with RunOptions::trace
  std::vector<std::string> trace_names;
  std::vector<std::string> queue_names;
};

/// Fails with kHostMemory where the arrays that the program places in device memory, of all devices and with the
/// global arrays, need more memory than this host has available; at the source line of the largest buffer. A strict
/// run keeps the definedness of every bit beside it. (A timing-only run touches none of them.)
llvm::Error requireMemory(const isa::Program& program, bool strict);

/// Runs `program` with global arguments in the order of Program::args.
llvm::Expected<RunResult> run(const isa::Program& program, llvm::ArrayRef<HostTensor> args,
                              const RunOptions& options);

/// The report, one JSON object per line: run, then device, kernel, queue and link records.
void writeReport(const RunResult& result, llvm::raw_ostream& os);
/// A trace for ui.perfetto.dev: a process per device, lanes for kernels, waits, DMA queues, and links.
void writeTrace(const RunResult& result, llvm::raw_ostream& os);
/// One to three lines for people, each with its line end.
std::string summary(const RunResult& result);

}  // namespace tpu::emulate
