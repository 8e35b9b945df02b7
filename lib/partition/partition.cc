// The order of the passes, and the target that a mesh must fit.
#include "tpu/partition/partition.h"

#include "llvm/ADT/STLExtras.h"

#include "collectives.h"
#include "passes.h"
#include "report.h"
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/verify.h"
#include "tpu/sharding/text.h"

namespace tpu::partition {

namespace {

constexpr int64_t kLoopShare = 16;  // what is gathered in front of loops may hold a sixteenth of a device's memory

bool sharded(const State& s) { return s.ctx.mesh.valid() && s.module.stage == hlo::Stage::kHlo; }

llvm::Error importPass(State& s) {
  if (!s.input_bytes.empty()) {
    auto module = frontend::readProgram(s.input_bytes, s.input_name, *s.ctx.sink);
    if (!module) return module.takeError();
    s.module = std::move(*module);
    s.input_bytes.clear();
  }
  if (s.module.stage == hlo::Stage::kSpmd) return llvm::Error::success();
  if (llvm::Error e = importShardings(s.module, s.ctx, {s.options.mesh, s.options.shardings})) return e;
  if (s.ctx.mesh && s.ctx.sink) warnUneven(s.module, s.ctx);
  return llvm::Error::success();
}

/// A mesh must have as many devices as the target; a program without a mesh runs on device 0 of any.
llvm::Error targetPass(State& s) {
  int64_t devices = s.ctx.mesh ? s.ctx.meshOf(s.module).numDevices() : std::max<int64_t>(1, s.module.num_partitions);
  auto target = !s.options.target.empty()  ? target::parseTarget(s.options.target)
                : !s.module.target.empty() ? target::targetFromDocument(s.module.target, s.module.chip_json)
                                           : target::defaultTarget(devices);
  if (!target) return target.takeError();
  if (s.ctx.mesh && devices != target->numDevices()) {
    std::string fitting;
    for (const std::string& t : target::topologiesFor(target->chip, devices))
      fitting += (fitting.empty() ? "" : ", ") + t;
    return fail(Code::kMeshTarget, "",
                "mesh " + sharding::printMesh(s.ctx.meshOf(s.module)) + " has " + llvm::Twine(devices) +
                    " devices, " + target->text + " has " + llvm::Twine(target->numDevices()) +
                    (fitting.empty() ? llvm::Twine("") : "; fitting: " + llvm::Twine(fitting)));
  }
  s.target = std::move(*target);
  s.ctx.loop_budget = s.target.chip.hbmUsablePerDevice() / kLoopShare;
  s.module.target = s.target.text;
  bool builtin = llvm::is_contained(target::builtinChips(), s.target.chip.name);
  if (builtin) {
    auto same = target::loadChip(s.target.chip.name);
    if (!same) return same.takeError();
    builtin = same->json == s.target.chip.json;
  }
  s.module.chip_json = builtin ? "" : s.target.chip.json;
  return llvm::Error::success();
}

llvm::Error inlinePass(State& s) {
  if (s.module.stage == hlo::Stage::kSpmd) return llvm::Error::success();
  if (llvm::Error e = inlineAll(s.module, s.ctx)) return e;
  s.unpartitioned_ops = contractionOps(s.module);
  return llvm::Error::success();
}

llvm::Error propagatePass(State& s) {
  if (s.keep_requests && sharded(s)) s.requested = std::make_unique<hlo::Module>(s.module.clone());
  return sharded(s) ? propagateShardings(s.module, s.ctx) : llvm::Error::success();
}
llvm::Error reshardPass(State& s) {
  return sharded(s) ? insertReshards(s.module, s.ctx) : llvm::Error::success();
}

llvm::Error localisePass(State& s) {
  if (sharded(s)) return localise(s.module, s.ctx);
  // One device: local is global.
  hlo::Module& m = s.module;
  if (m.stage == hlo::Stage::kSpmd) return llvm::Error::success();
  m.stage = hlo::Stage::kSpmd;
  hlo::Func& entry = m.funcs[m.entry.v];
  const std::vector<hlo::ValueId>& args = m.region(entry.body).args;
  entry.arg_ports.resize(args.size());
  entry.result_ports.resize(entry.result_types.size());
  for (size_t i = 0; i < args.size(); ++i) entry.arg_ports[i].global_type = m.value(args[i]).type;
  for (size_t i = 0; i < entry.result_types.size(); ++i)
    entry.result_ports[i].global_type = entry.result_types[i];
  return llvm::Error::success();
}

llvm::Error cleanUpPass(State& s) { return cleanUp(s.module, s.ctx); }

/// The passes on collectives work on programs that this tool divided; others keep theirs as they came.
template <class Fn>
llvm::Error onCollectives(State& s, Fn&& pass) {
  if (s.module.stage == hlo::Stage::kSpmd && s.ctx.mesh) pass(s.module);
  return llvm::Error::success();
}
llvm::Error sharePass(State& s) {
  return onCollectives(s, [&](hlo::Module& m) { llvm::cantFail(shareCollectives(m, s.ctx)); });
}
llvm::Error reassociatePass(State& s) { return onCollectives(s, reassociateCollectives); }
llvm::Error reduceScatterPass(State& s) { return onCollectives(s, formReduceScatters); }
llvm::Error hoistPass(State& s) {
  return onCollectives(s, [&](hlo::Module& m) { hoistCollectives(m, s.ctx.loop_budget); });
}
llvm::Error sinkPass(State& s) { return onCollectives(s, sinkGathers); }
llvm::Error combinePass(State& s) {
  return onCollectives(s, [&](hlo::Module& m) { combineCollectives(m, s.target); });
}

constexpr Pass<State> kPasses[] = {
    {"import", "read the program and bring its shardings to one mesh", importPass},
    {"target", "choose or check the topology that the mesh runs on", targetPass},
    {"inline", "replace calls, composites and named computations by their bodies", inlinePass},
    {"propagate", "give every value a sharding", propagatePass},
    {"reshard", "choose how every operation is divided and state each change of sharding", reshardPass},
    {"localise", "per-device shapes, collectives, exchanged borders, masked padding", localisePass},
    {"clean-up", "equal operations once, dead ones dropped", cleanUpPass},
    {"share", "equal collectives of equal values once", sharePass},
    {"reassociate", "add before an all-reduce rather than after it", reassociatePass},
    {"reduce-scatter", "all-reduce and a slice become reduce-scatter", reduceScatterPass},
    {"hoist", "collectives of what a loop does not change go in front of it", hoistPass},
    {"sink", "all-gathers next to their first use, those of scanned layers into the loop", sinkPass},
    {"combine", "small all-reduces and all-gathers over the same devices become one", combinePass},
};

}  // namespace

llvm::ArrayRef<Pass<State>> passList() { return kPasses; }

llvm::Error partitionModule(hlo::Module& module, const PartitionOptions& options, DiagnosticSink& sink) {
  State s;
  s.module = std::move(module);
  s.options = options;
  s.ctx.sink = &sink;
  llvm::Error error = llvm::Error::success();
  for (const Pass<State>& pass : passList()) {
    if (error) break;
    if (llvm::is_contained(options.without, pass.name)) continue;
    error = pass.run(s);
    if (!error) error = hlo::verify(s.module);
  }
  module = std::move(s.module);
  return error;
}

}  // namespace tpu::partition
