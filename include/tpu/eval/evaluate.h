// The reference evaluator: what a program means, on any host, for hlo and spmd modules alike.
//
// Values. Integers wrap at their width. f32 is computed in f32, functions beyond + - * / and the square root
// in f64 and rounded once (math.h); bf16, f16 and narrower floats are computed in f32 and rounded once per
// op. Sums accumulate in f32 (f64 for f64); sums of narrow floats are rounded once at the end. A dot product
// is one f32 FMA chain, k ascending. Out-of-bounds starts of dynamic_slice, dynamic_update_slice and gather
// are clamped, scatter drops what falls outside.
//
// Devices. All devices run together: an op whose operands are the same everywhere is computed once, else once
// per device. Where a predicate differs between devices they part, and a collective then needs all its group
// on the same path: one that can never complete is refused (exit status 5). In stage hlo arrays are whole;
// sdy.manual_computation runs its body on every device of the mesh. In stage spmd arguments are cut by the
// input shardings and results assembled by the output shardings.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/hlo/module.h"
#include "tpu/support/diagnostics.h"
#include "tpu/support/host_tensor.h"

namespace tpu::eval {

/// The type of a whole argument or result: the port's global type where it has one (spmd), else the value's.
const hlo::Type& argumentType(const hlo::Module& module, size_t index);
const hlo::Type& resultType(const hlo::Module& module, size_t index);
/// Devices that the program runs on: those of its mesh, its partitions times replicas, or its GSPMD shardings.
int64_t numDevices(const hlo::Module& module);
/// The memory that evaluating a program needs at least, by its types, and the place that takes most of it.
struct MemoryNeed {
  int64_t bytes = 0;  // INT64_MAX: that or more
  std::string loc;
};
MemoryNeed memoryNeed(const hlo::Module& module);
/// Fails with kHostMemory where that is more than this host has available. Asked before inputs are made.
llvm::Error requireMemory(const hlo::Module& module);

/// What a program recorded by interpreter.probe: MLIR's text of the type, and the value.
struct Probe {
  std::string id, type;
  HostTensor value;
};

/// Sees what ops compute, in the order in which they run; in loops every trip.
class Observer {
 public:
  virtual ~Observer() = default;
  /// The dims of the whole array, as the program means it, of an op's first result; none where it is not asked for.
  /// (Per-device arrays of an spmd module carry padding where a dimension does not divide.)
  virtual std::optional<hlo::Dims> wants(hlo::OpId op) = 0;
  /// The whole array, put together from all devices.
  virtual void see(hlo::OpId op, const HostTensor& whole) = 0;
};

/// Programs that run in place of custom calls, by nameOfCall().
using Replacements = std::map<std::string, hlo::Module, std::less<>>;
/// The kernel's name of a Pallas call, else the target of a custom_call.
std::string nameOfCall(const hlo::Module& module, hlo::OpId op);

/// What a program exchanges with its host, one entry per operation that runs. Every device reads the same; of what devices
/// give, that of device 0 is kept. Arrays are checked against the operation that reads them when it runs.
struct HostTransfers {
  using Values = std::vector<HostTensor>;
  std::vector<Values> infeed;                      // what infeed reads, in order
  std::map<int64_t, std::vector<Values>> receive;  // by channel: what recv of a host transfer reads, in order
  std::vector<Values> outfed;
  std::map<int64_t, std::vector<Values>> sent;  // by channel: what send of a host transfer gave
};

struct RunOptions {
  llvm::raw_ostream* print = nullptr;    // what interpreter.print writes; none: nothing is written
  std::vector<Probe>* probes = nullptr;  // takes the probes in the order in which they ran
  Observer* observer = nullptr;
  const Replacements* replacements = nullptr;
  HostTransfers* transfers = nullptr;
  /// Products and sums of dots and convolutions round one by one, steps of a windowed reduction in its own
  /// type: the arithmetic of StableHLO's interpreter, which expected values inside programs were made for.
  bool stepwise = false;
  bool any_results = false;  // results that are no arrays become empty tensors instead of an error
};

/// Runs the entry function on whole arrays and gives whole results. Replicas that disagree are reported to
/// `sink` as a warning (kEvalReplicasDiffer); the lowest device's value is taken.
llvm::Expected<std::vector<HostTensor>> evaluate(const hlo::Module& module, std::vector<HostTensor> inputs,
                                                 DiagnosticSink* sink = nullptr,
                                                 const RunOptions& options = {});

/// Functions that take no inputs and that no other function calls or runs, in order: what a program that
/// checks itself is made of.
std::vector<hlo::FuncId> selfContainedFunctions(const hlo::Module& module);

/// False for ops that evaluate() refuses whatever their operands are.
bool evaluates(hlo::Opcode opcode);

}  // namespace tpu::eval
