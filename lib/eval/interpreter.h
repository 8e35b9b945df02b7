// Runs functions on all devices in lock step.
//
// A value is held once where it is the same on all devices that run, else once per device. Regions are
// interpreted for the devices of a Team together; where a predicate differs, each side goes on with a smaller
// team and the results are joined.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "fused.h"
#include "tpu/eval/evaluate.h"

namespace tpu::eval {

/// A value on all devices: one copy for all, or one per device (indexed by device; empty for those outside
/// the team that made it). A token has no copies; a tuple has elements instead.
struct Lanes {
  llvm::SmallVector<Tensor, 1> copies;
  std::shared_ptr<std::vector<Lanes>> tuple;

  Lanes() = default;
  explicit Lanes(Tensor t) : copies{std::move(t)} {}
  bool uniform() const { return copies.size() <= 1; }
  Tensor at(int64_t device) const {
    return copies.empty() ? nullptr : copies.size() == 1 ? copies[0] : copies[device];
  }
};
using LaneList = std::vector<Lanes>;
using LanesOutcome = llvm::Expected<LaneList>;

/// The devices that execute an op, ascending.
struct Team {
  std::vector<int64_t> devices;
  bool has(int64_t device) const;
};

/// A set of devices that a collective joins, in order of their position in it.
using DeviceGroup = std::vector<int64_t>;

class Grid;

/// What programs say to whoever runs them, from all their processes.
struct Host {
  const RunOptions& options;
  std::vector<Probe> probes;
};

class Interpreter {
 public:
  Interpreter(const hlo::Module& module, DiagnosticSink* sink, Host& host);
  /// One process of a grid.
  Interpreter(const hlo::Module& module, DiagnosticSink* sink, Host& host, Grid& grid);
  int64_t numDevices() const { return devices_; }
  int64_t numReplicas() const { return replicas_; }
  LanesOutcome runFunction(hlo::FuncId func, LaneList args, const Team& team);
  Team everyone() const;
  /// Called after each op that the whole team has run outside of manual computations.
  void observe(llvm::function_ref<void(hlo::OpId, const Lanes&)> observer) { observer_ = observer; }
  /// Position of a device in a mesh (they differ where the mesh lists its devices in another order).
  int64_t positionIn(const hlo::Mesh& mesh, int64_t device) const;

 private:
  // Which values of a region are used for the last time where, and which ops run together.
  struct Plan {
    std::vector<hlo::ValueId> unused_args;
    FusionPlan fusion;
    struct Step {
      std::vector<hlo::ValueId> operands;  // of the op, or of the chain that ends here; none: a constant's element
      std::vector<bool> takes;           // by operand: the value's last use, which the op may take over
      std::vector<hlo::ValueId> after;   // dropped once the op has run
    };
    std::vector<Step> steps;
  };

  LanesOutcome runRegion(hlo::RegionId region, LaneList args, const Team& team);
  LanesOutcome runOp(hlo::OpId op, LaneList in, const Team& team);
  // A kernel on the operands of each device, or once where they are the same on all.
  using LaneKernel = llvm::function_ref<Outcome(int64_t device, llvm::MutableArrayRef<Tensor> in)>;
  LanesOutcome runOnLanes(LaneKernel kernel, size_t results, LaneList in, const Team& team);
  LanesOutcome runKernelOnLanes(hlo::OpId op, LaneList in, const Team& team);
  LanesOutcome runStep(const Plan& plan, size_t step, hlo::OpId op, LaneList in, const Team& team);
  LaneList takeOperands(const Plan& plan, size_t step);
  LanesOutcome runControl(hlo::OpId op, LaneList in, const Team& team);
  LanesOutcome runWhile(hlo::OpId op, LaneList carried, const Team& team);
  LanesOutcome runBranches(hlo::OpId op, const Lanes& index, const Team& team);
  LanesOutcome runScan(hlo::OpId op, LaneList in, const Team& team);
  LanesOutcome runCall(hlo::OpId op, llvm::StringRef callee, LaneList in, const Team& team);
  LanesOutcome runManual(hlo::OpId op, LaneList in, const Team& team);
  // GSPMD's borders of a manual region: @SPMDFullToShardShape and @SPMDShardToFullShape.
  LanesOutcome runShapeBorder(hlo::OpId op, Lanes in, bool enters, const Team& team);
  // The devices' parts of a value.
  Lanes cutLanes(Lanes whole, const hlo::Sharding& sharding, const hlo::Mesh& mesh, const Team& team) const;
  // One result of a manual computation from its parts; for a nested one the value of each group of devices.
  Lanes assembleManual(hlo::OpId op, const Lanes& parts, const hlo::Sharding& sharding,
                       llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<hlo::AxisRef> manual,
                       const hlo::Mesh& mesh, const Team& team, bool outermost);
  void warnIfDifferent(hlo::OpId op, const Lanes& parts, int64_t first, int64_t second);
  LanesOutcome runCustomCall(hlo::OpId op, LaneList in, const Team& team);
  LanesOutcome runReplacement(hlo::OpId op, const hlo::Module& with, const LaneList& in, const Team& team);
  LanesOutcome runCheck(hlo::OpId op, const LaneList& in, const Team& team);
  // print, probe, run_parallel and the check of what was probed.
  LanesOutcome runInterpreterOp(hlo::OpId op, LaneList in, const Team& team);
  LanesOutcome runParallel(hlo::OpId op, LaneList in);
  LanesOutcome runProbe(hlo::OpId op, LaneList in, const Team& team);
  LanesOutcome runCollective(hlo::OpId op, LaneList in, const Team& team);
  // The same for a process of a grid: its groups' members are brought together first.
  LanesOutcome meetCollective(hlo::OpId op, LaneList in, int64_t me);
  // infeed, outfeed, send, recv.
  /// What the host has for this device, the next of a queue; none where there is nothing left.
  std::optional<LaneList> fromHost(const std::vector<HostTransfers::Values>& queue, std::map<int64_t, size_t>& taken,
                                   const Team& team);
  LanesOutcome received(hlo::OpId op, LaneList got) const;
  LanesOutcome runTransfer(hlo::OpId op, LaneList in, const Team& team);
  Tensor literalAt(hlo::LiteralId literal);
  Lanes deviceNumber(hlo::OpId op) const;
  const Plan& planOf(hlo::RegionId region);
  void planUses(hlo::RegionId region, Plan& plan) const;
  void collectUses(hlo::OpId op, std::vector<hlo::ValueId>& out) const;
  llvm::StringRef locOf(hlo::OpId op) const { return module_.loc(module_.op(op).loc); }

  const hlo::Module& module_;
  DiagnosticSink* sink_;
  Host& host_;
  Grid* grid_ = nullptr;
  int64_t devices_, replicas_;
  std::map<std::string, int64_t> rounds_;          // collectives met so far, by group and channel
  std::map<int64_t, size_t> infed_;                         // by device: how often it has read
  std::map<int64_t, std::map<int64_t, size_t>> received_;  // by channel and device
  std::map<int64_t, std::vector<LaneList>> sent_;  // by channel, where all devices run together
  llvm::function_ref<void(hlo::OpId, const Lanes&)> observer_;
  int call_depth_ = 0;                        // nesting of calls
  int manual_depth_ = 0;                      // nesting of manual computations
  std::vector<Lanes> values_;                 // by value id
  std::vector<std::unique_ptr<Plan>> plans_;  // by region id
  std::vector<Tensor> literals_;              // by literal id
  std::vector<Tensor> literal_elements_;      // of splat literals, by literal id
  std::vector<bool> running_;                 // functions on the call stack
};

/// Joins what parts of a team computed: each part's lanes for its own devices.
LaneList joinParts(int64_t devices, llvm::ArrayRef<std::pair<Team, LaneList>> parts);

/// The groups of a collective, from its mesh axes or its lists of replicas.
llvm::Expected<std::vector<DeviceGroup>> collectiveGroups(const Interpreter& interpreter,
                                                          const hlo::Module& module, hlo::OpId op);

}  // namespace tpu::eval
