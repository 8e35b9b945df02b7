// What the partitioner's passes share beside the module: the mesh, the memo of plans, and the reasons of
// shardings.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "plan.h"
#include "propagate.h"
#include "tpu/support/diagnostics.h"

namespace tpu::partition {

/// What became of a sharding that the program asks for.
struct Request {
  std::string what;  // "argument 0", "result 1", "constraint"
  std::string loc, asked, got;
  std::string verdict;  // honoured, padded, replicated, moved
  std::string sizes;    // per shard along the padded dimension, "3,3,3,3,3,2,0,0"
};

/// A step that holds more on a device than its source, its destination and the operation itself need.
struct FullCopy {
  std::string loc, before, after, reason;
  int64_t bytes = 0;  // per device, of the largest step
};

/// Of a packed tensor; 0 for what is none.
inline int64_t bitsOf(const hlo::Type& t) {
  return t.kind == hlo::TypeKind::kTensor ? t.numElements() * elementBits(t.element) : 0;
}
inline int64_t bytesOf(const hlo::Type& t) { return (bitsOf(t) + 7) / 8; }

/// What one operation was turned into: the largest value on a device against what it reads, gives and needs itself (its
/// own shard with borders, candidates of all shards), in bits.
struct Held {
  hlo::OpId op;
  std::string loc;
  hlo::Opcode opcode, largest_op;  // the operation as it was, and what makes the largest value
  int64_t largest = 0, source = 0, destination = 0, need = 0;
  bool reported = false;  // among full_copies
};

struct Context {
  hlo::MeshId mesh;  // none: a program for one device
  std::vector<Request> requests;
  std::vector<FullCopy> full_copies;
  std::vector<Held>* held = nullptr;  // of every operation, where somebody asks
  std::string explain;          // --explain=VALUE: the value asked about
  hlo::ValueId explain_value;   // found by propagation
  std::string explanation;      // where its sharding comes from, and how its operation may be divided
  int64_t loop_budget = 0;      // bytes of a device that values gathered in front of loops may still take
  std::unique_ptr<Planner> planner;
  std::unique_ptr<Propagated> propagated;
  DiagnosticSink* sink = nullptr;

  const hlo::Mesh& meshOf(const hlo::Module& m) const { return m.meshes[mesh.v]; }
  Planner& plans(const hlo::Module& m) {
    if (!planner) planner = std::make_unique<Planner>(meshOf(m));
    return *planner;
  }
};

// The passes, in order. Each leaves a program that verifies.

/// Brings every form of sharding to one mesh and to Value::sharding and the ports: sdy attributes,
/// constraints, GSPMD strings and custom calls, overrides from the command line.
struct ImportOptions {
  std::string mesh;                                            // --mesh
  std::vector<std::pair<std::string, std::string>> shardings;  // --sharding NAME=TEXT
};
llvm::Error importShardings(hlo::Module& m, Context& ctx, const ImportOptions& options);
/// A verdict where a request of the user cannot be met evenly: a warning at the line that asked.
void warnUneven(const hlo::Module& m, Context& ctx);
/// Where the sharding of the value ctx.explain comes from, back to the user's lines. Values are named as
/// --stop-after=propagate --emit=text prints them (%12, %a0), arguments also by their names, or by their source
/// location file:line.
llvm::Error explainValue(const hlo::Module& m, Context& ctx);
/// Verdicts on the requests of a program whose shardings were just propagated, before they are written to it.
void judgeRequests(const hlo::Module& m, Context& ctx);
/// Manual axes are not used again inside of their regions, and lead at the borders.
llvm::Error checkManualAxes(const hlo::Module& m, const Context& ctx);
/// Calls, named computations and composites are replaced by their bodies.
llvm::Error inlineAll(hlo::Module& m, Context& ctx);
/// Gives every value a sharding.
llvm::Error propagateShardings(hlo::Module& m, Context& ctx);
/// Makes every operation agree with its operands and results by sdy.reshard; manual regions stay.
llvm::Error insertReshards(hlo::Module& m, Context& ctx);
/// Concatenations of slices of sharded values become shifted copies laid over each other; part of insertReshards.
void joinSlices(hlo::Module& m);
/// Body arguments that loops are now given whole, because they read them slice by slice; their shardings are changed.
std::vector<hlo::ValueId> wholeWhereLoopsSlice(hlo::Module& m, Context& ctx);
/// Reshards of reshards become one where that is cheaper; part of insertReshards.
void foldReshardChains(hlo::Module& m, Context& ctx);
/// Per-device types, collectives for reshards, borders exchanged, padding masked. The module becomes stage
/// spmd.
llvm::Error localise(hlo::Module& m, Context& ctx);
/// Equal ops once, dead ones dropped; collectives stay as they are.
llvm::Error cleanUp(hlo::Module& m, Context& ctx);
/// Equal collectives of equal values once.
llvm::Error shareCollectives(hlo::Module& m, Context& ctx);

}  // namespace tpu::partition
