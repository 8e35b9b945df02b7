// What the partitioner's passes share beside the module: the mesh, the memo of plans, and the reasons of
// shardings.
#pragma once
#include <memory>

#include "plan.h"
#include "propagate.h"
#include "tpu/support/diagnostics.h"

namespace tpu::partition {

struct Context {
  hlo::MeshId mesh;  // none: a program for one device
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
/// A custom call @SPMDFullToShardShape or @SPMDShardToFullShape; its outer sharding stands in attribute
/// `sharding`.
bool isManualBorder(const hlo::Module& m, hlo::OpId op);
/// A verdict where a request of the user cannot be met evenly: a warning at the line that asked.
void warnUneven(const hlo::Module& m, Context& ctx);
/// Calls, named computations and composites are replaced by their bodies.
llvm::Error inlineAll(hlo::Module& m, Context& ctx);
/// Gives every value a sharding.
llvm::Error propagateShardings(hlo::Module& m, Context& ctx);
/// Makes every operation agree with its operands and results by sdy.reshard; manual regions stay.
llvm::Error insertReshards(hlo::Module& m, Context& ctx);
/// Reshards of reshards become one where that is cheaper; part of insertReshards.
void foldReshardChains(hlo::Module& m, Context& ctx);
/// Per-device types, collectives for reshards, borders exchanged, padding masked. The module becomes stage
/// spmd.
llvm::Error localise(hlo::Module& m, Context& ctx);
/// Equal ops once, dead ones dropped, all-reduce + slice to reduce-scatter.
llvm::Error cleanUp(hlo::Module& m, Context& ctx);

}  // namespace tpu::partition
