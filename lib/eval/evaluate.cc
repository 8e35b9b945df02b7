// The evaluator's entry: inputs checked and cut, the program run, results put together.
#include "tpu/eval/evaluate.h"

#include <map>
#include <utility>

#include "interpreter.h"
#include "tpu/eval/literal.h"
#include "tpu/sharding/shard.h"

namespace tpu::eval {
namespace {

const hlo::Func& entryOf(const hlo::Module& module) { return module.func(module.entry); }

llvm::Error checkInputs(const hlo::Module& module, llvm::ArrayRef<HostTensor> inputs) {
  const hlo::Func& entry = entryOf(module);
  const size_t want = module.region(entry.body).args.size();
  if (inputs.size() != want)
    return fail(Code::kEvalWrongInputs, module.loc(entry.loc),
                llvm::Twine("the program takes ") + llvm::Twine(want) + " inputs, " +
                    llvm::Twine(inputs.size()) + " were given");
  for (size_t i = 0; i < want; ++i) {
    const hlo::Type& type = argumentType(module, i);
    const HostTensor& t = inputs[i];
    bool same = type.element == t.element && type.dims.size() == t.dims.size();
    for (size_t d = 0; same && d < type.dims.size(); ++d)
      same = type.dims[d] == t.dims[d] || type.dims[d] == hlo::kDynamicDim;
    if (!same)
      return fail(Code::kEvalWrongInputs, module.loc(entry.loc),
                  "input " + llvm::Twine(i) + " is " + typeText(t.element, t.dims) + ", the program takes " +
                      typeText(type.element, type.dims));
  }
  return llvm::Error::success();
}

// The parts of an input on all devices; parts at the same place are one tensor.
Lanes cutInput(const hlo::Module& module, const Interpreter& interpreter, HostTensor whole,
               hlo::ShardingId sharding) {
  if (!sharding.valid()) return Lanes(std::make_shared<HostTensor>(std::move(whole)));
  const hlo::Sharding& s = module.sharding(sharding);
  const hlo::Mesh& mesh = module.meshes[s.mesh.v];
  std::map<std::vector<int64_t>, Tensor> parts;
  Lanes out;
  for (int64_t d = 0; d < interpreter.numDevices(); ++d) {
    const ShardExtent extent = shardOf(mesh, s, whole.dims, interpreter.positionIn(mesh, d));
    Tensor& part = parts[std::vector<int64_t>(extent.offset.begin(), extent.offset.end())];
    if (!part) part = std::make_shared<HostTensor>(cutBox(whole, extent, localDims(s, whole.dims)));
    out.copies.push_back(part);
  }
  if (parts.size() == 1) return Lanes(out.copies.front());
  return out;
}

// The whole array of a value that devices hold by parts (spmd: by its sharding); of parts that should be equal the lowest
// device's, the difference in `mismatch`.
HostTensor assemble(const hlo::Module& module, const Interpreter& interpreter, const Lanes& lanes,
                    hlo::ShardingId sharding, llvm::ArrayRef<int64_t> dims,
                    std::optional<ReplicaMismatch>* mismatch) {
  const bool cut = module.stage == hlo::Stage::kSpmd && sharding.valid();
  if (lanes.uniform() && !cut) return *lanes.copies.front();
  std::vector<HostTensor> shards(interpreter.numDevices());
  for (int64_t d = 0; d < interpreter.numDevices(); ++d) {
    const int64_t p = cut ? interpreter.positionIn(module.meshes[module.sharding(sharding).mesh.v], d) : d;
    shards[p] = *lanes.at(d);
  }
  const hlo::Dims whole = cut ? hlo::Dims(dims) : hlo::Dims(shards[0].dims);
  return assembleShards(module, shards, whole, cut ? sharding : hlo::ShardingId(), mismatch);
}

HostTensor assembleResult(const hlo::Module& module, const Interpreter& interpreter, Lanes lanes, size_t index,
                          DiagnosticSink* sink) {
  const hlo::ShardingId sharding = entryOf(module).result_ports[index].sharding;
  const bool cut = module.stage == hlo::Stage::kSpmd && sharding.valid();
  if (lanes.uniform() && !cut && lanes.copies.front().use_count() == 1) return std::move(*lanes.copies.front());
  std::optional<ReplicaMismatch> mismatch;
  HostTensor out = assemble(module, interpreter, lanes, sharding, resultType(module, index).dims, &mismatch);
  if (mismatch && sink) {
    std::string at;
    for (int64_t i : mismatch->index) at += (at.empty() ? "" : ",") + std::to_string(i);
    sink->warn(Code::kEvalReplicasDiffer, module.loc(entryOf(module).loc),
               "result " + llvm::Twine(index) + ": devices " + llvm::Twine(mismatch->first_position) +
                   " and " + llvm::Twine(mismatch->second_position) + " differ at [" + at + "]");
  }
  return out;
}

}  // namespace

const hlo::Type& argumentType(const hlo::Module& module, size_t index) {
  const hlo::Func& entry = entryOf(module);
  if (index < entry.arg_ports.size() && entry.arg_ports[index].global_type.valid())
    return module.type(entry.arg_ports[index].global_type);
  return module.typeOf(module.region(entry.body).args[index]);
}

const hlo::Type& resultType(const hlo::Module& module, size_t index) {
  const hlo::Func& entry = entryOf(module);
  if (index < entry.result_ports.size() && entry.result_ports[index].global_type.valid())
    return module.type(entry.result_ports[index].global_type);
  return module.type(entry.result_types[index]);
}

llvm::Expected<std::vector<HostTensor>> evaluate(const hlo::Module& module, std::vector<HostTensor> inputs,
                                                 DiagnosticSink* sink, const RunOptions& options) {
  if (llvm::Error e = checkInputs(module, inputs)) return e;
  Host host{options, options.probes ? *options.probes : std::vector<Probe>()};
  Interpreter interpreter(module, sink, host);
  const auto show = [&](hlo::OpId op, const Lanes& lanes) {
    if (lanes.copies.empty()) return;
    const auto dims = options.observer->wants(op);
    if (!dims) return;
    const hlo::ShardingId sharding = module.value(module.op(op).results[0]).sharding;
    options.observer->see(op, assemble(module, interpreter, lanes, sharding, *dims, nullptr));
  };
  if (options.observer) interpreter.observe(show);
  const hlo::Func& entry = entryOf(module);
  LaneList args;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool cut = module.stage == hlo::Stage::kSpmd && i < entry.arg_ports.size();
    args.push_back(cutInput(module, interpreter, std::move(inputs[i]),
                            cut ? entry.arg_ports[i].sharding : hlo::ShardingId()));
  }
  inputs.clear();
  LanesOutcome results = interpreter.runFunction(module.entry, std::move(args), interpreter.everyone());
  if (options.probes) *options.probes = std::move(host.probes);
  if (!results) return results.takeError();
  std::vector<HostTensor> out;
  for (size_t i = 0; i < results->size(); ++i) {
    if (options.any_results && (*results)[i].copies.empty()) {
      out.emplace_back();
      continue;
    }
    if ((*results)[i].copies.empty())
      return fail(Code::kEvalUnsupported, module.loc(entry.loc),
                  "result " + llvm::Twine(i) + " is not an array");
    out.push_back(assembleResult(module, interpreter, std::exchange((*results)[i], Lanes()), i, sink));
  }
  return out;
}

std::vector<hlo::FuncId> selfContainedFunctions(const hlo::Module& module) {
  std::vector<bool> used(module.funcs.size());
  const auto use = [&](llvm::StringRef name) {
    if (const hlo::FuncId func = module.findFunc(name)) used[func.v] = true;
  };
  for (uint32_t i = 0; i < module.numOps(); ++i) {
    const hlo::OpId op(i);
    if (!module.op(op).parent) continue;
    for (AttrKey key : {AttrKey::callee, AttrKey::decomposition})
      if (module.has(op, key)) use(module.getString(op, key));
    for (AttrKey key : {AttrKey::programs, AttrKey::infeed, AttrKey::called_computations})
      if (const hlo::Attr* names = module.findAttr(op, key))
        for (const std::string& name : names->strs) use(name);
  }
  std::vector<hlo::FuncId> out;
  for (uint32_t i = 0; i < module.funcs.size(); ++i)
    if (!used[i] && module.region(module.funcs[i].body).args.empty()) out.emplace_back(i);
  return out;
}

}  // namespace tpu::eval
