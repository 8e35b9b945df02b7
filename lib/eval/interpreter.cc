// Regions, ops and the lifetime of values.
#include "interpreter.h"

#include <algorithm>

#include "grid.h"
#include "tpu/eval/evaluate.h"
#include "tpu/eval/literal.h"
#include "tpu/sharding/gspmd.h"
#include "tpu/support/parallel.h"

namespace tpu::eval {
namespace {

constexpr int kMaxCallDepth = 1000;
constexpr int64_t kParallelElements = 1 << 14;  // below this much work devices run one after the other

}  // namespace

int64_t numDevices(const hlo::Module& module) {
  int64_t count = std::max<int64_t>(1, module.num_partitions) * std::max<int64_t>(1, module.num_replicas);
  for (const hlo::Mesh& mesh : module.meshes) count = std::max(count, mesh.numDevices());
  for (uint32_t i = 0; i < module.numOps(); ++i)
    count = std::max(count, sharding::gspmdDevices(module.getString(hlo::OpId(i), AttrKey::mhlo_sharding)));
  return count;
}

bool Team::has(int64_t device) const { return std::binary_search(devices.begin(), devices.end(), device); }

Interpreter::Interpreter(const hlo::Module& module, DiagnosticSink* sink, Host& host)
    : module_(module),
      sink_(sink),
      host_(host),
      devices_(eval::numDevices(module)),
      replicas_(std::max<int64_t>(1, module.num_replicas)),
      values_(module.numValues()),
      plans_(module.numRegions()),
      literals_(module.numLiterals()),
      literal_elements_(module.numLiterals()),
      running_(module.funcs.size()) {}

Interpreter::Interpreter(const hlo::Module& module, DiagnosticSink* sink, Host& host, Grid& grid)
    : Interpreter(module, sink, host) {
  grid_ = &grid;
  devices_ = grid.replicas() * grid.partitions();
  replicas_ = grid.replicas();
}

Tensor Interpreter::literalAt(hlo::LiteralId literal) {
  Tensor& cached = literals_[literal.v];
  if (!cached) cached = std::make_shared<HostTensor>(literalTensor(module_, literal));
  return cached;
}

Team Interpreter::everyone() const {
  Team team;
  for (int64_t d = 0; d < devices_; ++d) team.devices.push_back(d);
  return team;
}

int64_t Interpreter::positionIn(const hlo::Mesh& mesh, int64_t device) const {
  const auto at = std::find(mesh.device_ids.begin(), mesh.device_ids.end(), device);
  return at == mesh.device_ids.end() ? device : at - mesh.device_ids.begin();
}

void Interpreter::collectUses(hlo::OpId id, std::vector<hlo::ValueId>& out) const {
  const hlo::Op& op = module_.op(id);
  out.insert(out.end(), op.operands.begin(), op.operands.end());
  for (hlo::RegionId r : op.regions)
    for (hlo::OpId inner : module_.region(r).ops) collectUses(inner, out);
}

const Interpreter::Plan& Interpreter::planOf(hlo::RegionId id) {
  if (plans_[id.v]) return *plans_[id.v];
  auto plan = std::make_unique<Plan>();
  const size_t ops = module_.region(id).ops.size();
  plan->steps.resize(ops);
  if (observer_ || host_.options.stepwise) {  // every op is seen, or has arithmetic of its own
    plan->fusion.chains.resize(ops);
    plan->fusion.inside.resize(ops);
  } else {
    plan->fusion = planFusion(module_, id);
  }
  planUses(id, *plan);
  plans_[id.v] = std::move(plan);
  return *plans_[id.v];
}

void Interpreter::planUses(hlo::RegionId id, Plan& plan) const {
  const hlo::Region& region = module_.region(id);
  std::vector<std::vector<hlo::ValueId>> uses(region.ops.size());
  for (size_t i = 0; i < region.ops.size(); ++i) {
    if (plan.fusion.inside[i]) continue;
    const hlo::Op& op = module_.op(region.ops[i]);
    std::vector<hlo::ValueId>& operands = plan.steps[i].operands;
    if (const FusedChain* chain = plan.fusion.chains[i].get()) {
      for (const FusedSource& s : chain->sources) operands.push_back(s.value);
      uses[i] = operands;
      llvm::erase_if(uses[i], [](hlo::ValueId v) { return !v.valid(); });
    } else {
      operands.assign(op.operands.begin(), op.operands.end());
      collectUses(region.ops[i], uses[i]);
    }
    std::sort(uses[i].begin(), uses[i].end());
  }
  // Backwards: the first time a value is met is its last use. `seen` holds the values met so far.
  std::vector<bool> seen(module_.numValues());
  const auto isLocal = [&](hlo::ValueId v) {
    const hlo::Value& value = module_.value(v);
    return value.def.valid() ? module_.op(value.def).parent == id : value.region == id;
  };
  for (size_t i = region.ops.size(); i-- > 0;) {
    if (plan.fusion.inside[i]) continue;
    const std::vector<hlo::ValueId>& operands = plan.steps[i].operands;
    plan.steps[i].takes.resize(operands.size());
    for (hlo::ValueId v : module_.op(region.ops[i]).results)
      if (!seen[v.v]) plan.steps[i].after.push_back(v);
    for (hlo::ValueId v : uses[i]) {
      if (seen[v.v] || !isLocal(v)) continue;
      seen[v.v] = true;
      const bool only_operand =
          std::count(uses[i].begin(), uses[i].end(), v) == std::count(operands.begin(), operands.end(), v);
      if (!only_operand) {
        plan.steps[i].after.push_back(v);
        continue;
      }
      const auto last = std::find(operands.rbegin(), operands.rend(), v);
      plan.steps[i].takes[operands.rend() - last - 1] = true;
    }
  }
  for (hlo::ValueId v : region.args)
    if (!seen[v.v]) plan.unused_args.push_back(v);
}

LaneList Interpreter::takeOperands(const Plan& plan, size_t step) {
  const Plan::Step& s = plan.steps[step];
  const FusedChain* chain = plan.fusion.chains[step].get();
  LaneList in;
  in.reserve(s.operands.size());
  for (size_t o = 0; o < s.operands.size(); ++o) {
    if (chain && chain->sources[o].literal.valid()) {
      Tensor& element = literal_elements_[chain->sources[o].literal.v];
      if (!element) {
        element = makeTensor(chain->sources[o].element, {});
        element->bytes = module_.literal(chain->sources[o].literal).bytes;
      }
      in.emplace_back(element);
      continue;
    }
    Lanes& value = values_[s.operands[o].v];
    if (s.takes[o]) {
      in.push_back(std::move(value));
      value = Lanes();
    } else {
      in.push_back(value);
    }
  }
  return in;
}

LanesOutcome Interpreter::runStep(const Plan& plan, size_t step, hlo::OpId op, LaneList in,
                                  const Team& team) {
  const FusedChain* chain = plan.fusion.chains[step].get();
  if (!chain) return runOp(op, std::move(in), team);
  const auto kernel = [&](int64_t, llvm::MutableArrayRef<Tensor> operands) -> Outcome {
    for (size_t i = 0; i < operands.size(); ++i)
      if (chain->sources[i].count == 0 && operands[i]->dims != chain->dims)
        return fail(
            Code::kEvalBadOperand, locOf(op),
            hlo::opInfo(module_.op(op).opcode).name + ": an operand has other dims than its type states");
    return Tensors{chain->run(operands)};
  };
  return runOnLanes(kernel, 1, std::move(in), team);
}

LanesOutcome Interpreter::runRegion(hlo::RegionId id, LaneList args, const Team& team) {
  const hlo::Region& region = module_.region(id);
  const Plan& plan = planOf(id);
  for (size_t i = 0; i < args.size(); ++i) values_[region.args[i].v] = std::move(args[i]);
  for (hlo::ValueId v : plan.unused_args) values_[v.v] = Lanes();
  for (size_t i = 0; i < region.ops.size(); ++i) {
    if (plan.fusion.inside[i]) continue;
    const hlo::OpId op_id = region.ops[i];
    const hlo::Op& op = module_.op(op_id);
    LaneList in = takeOperands(plan, i);
    if (op.opcode == Opcode::return_) return in;
    LanesOutcome out = runStep(plan, i, op_id, std::move(in), team);
    if (!out) return out;
    if (observer_ && manual_depth_ == 0 && !out->empty() &&
        static_cast<int64_t>(team.devices.size()) == devices_)
      observer_(op_id, out->front());
    for (size_t r = 0; r < op.results.size(); ++r) values_[op.results[r].v] = std::move((*out)[r]);
    for (hlo::ValueId v : plan.steps[i].after) values_[v.v] = Lanes();
  }
  return LaneList{};
}

LanesOutcome Interpreter::runFunction(hlo::FuncId func, LaneList args, const Team& team) {
  const hlo::Func& f = module_.func(func);
  if (running_[func.v])
    return fail(Code::kEvalUnsupported, module_.loc(f.loc),
                "function '" + module_.string(f.name) + "' calls itself");
  if (call_depth_ == kMaxCallDepth)
    return fail(Code::kEvalUnsupported, module_.loc(f.loc),
                "calls nest deeper than " + llvm::Twine(kMaxCallDepth) + " functions");
  running_[func.v] = true;
  ++call_depth_;
  LanesOutcome out = runRegion(f.body, std::move(args), team);
  --call_depth_;
  running_[func.v] = false;
  return out;
}

// What the interpreter does with an op.
enum class Duty : uint8_t {
  kNone,  // refuses it
  kLiteral, kTransfer, kTuple, kElement, kToken, kDeviceNumber,
  kSame,     // whole arrays do not change by where they lie
  kReshard,  // as kSame before partitioning, refused after it
  kNothing, kCustomCall, kControl, kCollective, kKernel,
};

Duty dutyOf(Opcode op) {
  switch (op) {
    case Opcode::constant:
    case Opcode::chlo_constant:
      return Duty::kLiteral;
    case Opcode::infeed:
    case Opcode::outfeed:
    case Opcode::send:
    case Opcode::recv:
      return Duty::kTransfer;
    case Opcode::tuple:
      return Duty::kTuple;
    case Opcode::get_tuple_element:
      return Duty::kElement;
    case Opcode::after_all:
    case Opcode::create_token:
      return Duty::kToken;
    case Opcode::partition_id:
    case Opcode::replica_id:
      return Duty::kDeviceNumber;
    case Opcode::optimization_barrier:
    case Opcode::sdy_sharding_constraint:
    case Opcode::sdy_reshard:
    case Opcode::sdy_propagation_barrier:
    case Opcode::sdy_data_flow_edge:
      return Duty::kSame;
    case Opcode::sdy_all_gather:
    case Opcode::sdy_all_slice:
    case Opcode::sdy_all_to_all:
    case Opcode::sdy_all_reduce:
    case Opcode::sdy_reduce_scatter:
    case Opcode::sdy_collective_permute:
      return Duty::kReshard;
    case Opcode::sdy_sharding_group:
    case Opcode::return_:  // its region's reader takes the operands
      return Duty::kNothing;
    case Opcode::custom_call:
      return Duty::kCustomCall;
    default:
      if (hlo::hasTrait(op, hlo::kControl)) return Duty::kControl;
      if (hlo::hasTrait(op, hlo::kCollective)) return Duty::kCollective;
      return isKernel(op) ? Duty::kKernel : Duty::kNone;
  }
}

bool evaluates(Opcode op) { return dutyOf(op) != Duty::kNone; }

LanesOutcome Interpreter::runOp(hlo::OpId id, LaneList in, const Team& team) {
  const Duty duty = dutyOf(module_.op(id).opcode);
  switch (duty) {
    case Duty::kLiteral:
      return LaneList{Lanes(literalAt(module_.findAttr(id, AttrKey::value)->literal))};
    case Duty::kTransfer:
      return runTransfer(id, std::move(in), team);
    case Duty::kTuple: {
      Lanes t;
      t.tuple = std::make_shared<LaneList>(std::move(in));
      return LaneList{std::move(t)};
    }
    case Duty::kElement:
      return LaneList{(*in[0].tuple)[module_.getInt(id, AttrKey::index)]};
    case Duty::kToken:
      return LaneList{Lanes()};
    case Duty::kDeviceNumber:
      return LaneList{deviceNumber(id)};
    case Duty::kReshard:
      if (module_.stage != hlo::Stage::kHlo) return runKernelOnLanes(id, std::move(in), team);
      return in;
    case Duty::kSame:
      return in;
    case Duty::kNothing:
      return LaneList{};
    case Duty::kCustomCall:
      return runCustomCall(id, std::move(in), team);
    case Duty::kControl:
      return runControl(id, std::move(in), team);
    case Duty::kCollective:
      return grid_ ? meetCollective(id, std::move(in), team.devices.front())
                   : runCollective(id, std::move(in), team);
    case Duty::kKernel:
    case Duty::kNone:  // refused there, by name
      return runKernelOnLanes(id, std::move(in), team);
  }
  llvm_unreachable("a duty without a case");
}

LanesOutcome Interpreter::runKernelOnLanes(hlo::OpId id, LaneList in, const Team& team) {
  const auto kernel = [&](int64_t device, llvm::MutableArrayRef<Tensor> operands) {
    const auto captures = [&, device](hlo::ValueId v) { return values_[v.v].at(device); };
    Call call{module_, id, operands, captures, host_.options.stepwise};
    return runKernel(call);
  };
  return runOnLanes(kernel, module_.op(id).results.size(), std::move(in), team);
}

LanesOutcome Interpreter::runOnLanes(LaneKernel kernel, size_t results, LaneList in, const Team& team) {
  bool uniform = true;
  int64_t elements = 0;
  for (const Lanes& l : in) {
    uniform = uniform && l.uniform();
    if (const Tensor t = l.at(team.devices.front())) elements += t->numElements();
  }
  LaneList out(results);
  if (uniform) {
    llvm::SmallVector<Tensor, 4> operands;
    for (Lanes& l : in) operands.push_back(l.copies.empty() ? nullptr : std::move(l.copies[0]));
    Outcome one = kernel(team.devices.front(), operands);
    if (!one) return one.takeError();
    for (size_t r = 0; r < results; ++r) out[r] = Lanes(std::move((*one)[r]));
    return out;
  }
  for (Lanes& l : out) l.copies.resize(devices_);
  std::vector<std::optional<llvm::Error>> errors(team.devices.size());
  const auto lane = [&](size_t i) {
    const int64_t device = team.devices[i];
    llvm::SmallVector<Tensor, 4> operands;
    for (Lanes& l : in) operands.push_back(l.copies.size() > 1 ? std::move(l.copies[device]) : l.at(device));
    Outcome one = kernel(device, operands);
    if (!one) {
      errors[i].emplace(one.takeError());
      return;
    }
    for (size_t r = 0; r < results; ++r) out[r].copies[device] = std::move((*one)[r]);
  };
  if (elements * static_cast<int64_t>(team.devices.size()) < kParallelElements) {
    for (size_t i = 0; i < team.devices.size(); ++i) lane(i);
  } else {
    parallelFor(team.devices.size(), lane);
  }
  std::optional<llvm::Error> first;
  for (auto& e : errors) {
    if (!e) continue;
    if (!first) {
      first.emplace(std::move(*e));
    } else {
      llvm::consumeError(std::move(*e));
    }
  }
  if (first) return std::move(*first);
  return out;
}

Lanes Interpreter::deviceNumber(hlo::OpId id) const {
  const int64_t partitions = std::max<int64_t>(1, devices_ / replicas_);
  const bool replica = module_.op(id).opcode == Opcode::replica_id;
  Lanes out;
  for (int64_t d = 0; d < devices_; ++d) {
    Tensor t = makeTensor(ElementType::kU32, {});
    *t->data<uint32_t>() = static_cast<uint32_t>(replica ? d / partitions : d % partitions);
    out.copies.push_back(std::move(t));
  }
  return out;
}

}  // namespace tpu::eval
