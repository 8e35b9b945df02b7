// The walk over the program: what each op becomes.
#include "lowering.h"

#include "decompose.h"
#include "donation.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/literal.h"

namespace tpu::lower {

using HloOp = hlo::Opcode;

llvm::Error Lowering::refuse(hlo::OpId id, const llvm::Twine& why) {
  std::string tail = why.str();
  const hlo::Op& op = m_.op(id);
  for (llvm::ArrayRef<hlo::ValueId> values : {llvm::ArrayRef<hlo::ValueId>(op.operands), llvm::ArrayRef<hlo::ValueId>(op.results)})
    for (hlo::ValueId v : values)
      if (const hlo::Type& type = typeOf(v); tail.empty() && type.kind == hlo::TypeKind::kTensor && !supportedType(type.element))
        tail = "the element type " + elementTypeName(type.element).str() + " is not on the machine";
  return fail(Code::kLowerOp, locOf(id), "'" + hlo::opInfo(m_.op(id).opcode).name + "' is not lowered to the machine" + (tail.empty() ? "" : ": " + tail));
}

// Ops that only make arrays without elements need no code. Control flow does: its regions may do more.
bool Lowering::isEmpty(hlo::OpId id) const {
  const hlo::Op& op = m_.op(id);
  if (op.results.empty() || hlo::hasTrait(op.opcode, hlo::kControl)) return false;
  return llvm::all_of(op.results, [&](hlo::ValueId v) {
    return typeOf(v).kind == hlo::TypeKind::kTensor && typeOf(v).numElements() == 0;
  });
}

llvm::Error Lowering::lowerOp(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  for (hlo::ValueId v : op.results)
    if (typeOf(v).kind != hlo::TypeKind::kTensor && op.opcode != HloOp::tuple && op.opcode != HloOp::after_all && op.opcode != HloOp::create_token)
      return refuse(id, "a result that is no tensor");
  b_.setOp(static_cast<uint32_t>(out_.driver.op_locs.size()));
  out_.driver.op_locs.push_back(internLoc(locOf(id)));
  if (!op.results.empty() && root(op.results[0]) != op.results[0]) return llvm::Error::success();  // a view
  if (isEmpty(id)) {
    for (hlo::ValueId v : op.results) addForm(v, resultBuffer(v, typeOf(v).dims), typeOf(v).dims);
    return llvm::Error::success();
  }
  if (driverScalar(id)) return lowerDriverScalar(id);
  if (fusable(id)) {
    // Joined to another kernel, or rebuilt where it is read.
    if (!isRoot(id)) return llvm::Error::success();
    return lowerElementwise(id);
  }
  if (Handler handler = handlerOf(op.opcode)) return (this->*handler)(id);
  return refuse(id);
}

Lowering::Handler Lowering::handlerOf(HloOp opcode) {
  switch (opcode) {
    case HloOp::tuple: return &Lowering::lowerNothing;
    case HloOp::reduce: return &Lowering::lowerReduce;
    case HloOp::dot: case HloOp::dot_general: return &Lowering::lowerDot;
    case HloOp::transpose: return &Lowering::lowerTranspose;
    case HloOp::slice: return &Lowering::lowerSlice;
    case HloOp::pad: return &Lowering::lowerPad;
    case HloOp::concatenate: return &Lowering::lowerConcatenate;
    case HloOp::reverse: return &Lowering::lowerReverse;
    case HloOp::dynamic_slice: return &Lowering::lowerDynamicSlice;
    case HloOp::dynamic_update_slice: return &Lowering::lowerDynamicUpdateSlice;
    case HloOp::while_: return &Lowering::lowerWhile;
    case HloOp::if_: case HloOp::case_: return &Lowering::lowerBranch;
    case HloOp::all_reduce: return &Lowering::lowerAllReduce;
    case HloOp::all_gather: return &Lowering::lowerAllGather;
    case HloOp::reduce_scatter: return &Lowering::lowerReduceScatter;
    case HloOp::all_to_all: return &Lowering::lowerAllToAll;
    case HloOp::collective_permute: return &Lowering::lowerPermute;
    case HloOp::partition_id: case HloOp::replica_id: return &Lowering::lowerDeviceNumber;
    case HloOp::custom_call: return &Lowering::refuseCall;
    default: return nullptr;
  }
}

bool Lowering::lowers(HloOp opcode) {
  switch (opcode) {
    case HloOp::custom_call: return false;  // its handler refuses by name
    // Read by their users, views, or gone before the walk.
    case HloOp::constant: case HloOp::iota: case HloOp::broadcast_in_dim: case HloOp::bitcast_convert: case HloOp::reshape:
    case HloOp::optimization_barrier: case HloOp::sdy_sharding_constraint: case HloOp::sdy_propagation_barrier:
    case HloOp::get_tuple_element: case HloOp::call: case HloOp::composite: case HloOp::return_: return true;
    default: return handlerOf(opcode) != nullptr;
  }
}

llvm::Error Lowering::lowerNothing(hlo::OpId) { return llvm::Error::success(); }

llvm::Error Lowering::lowerDeviceNumber(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  const int32_t word = resultBuffer(op.results[0], {});
  const bool partition = op.opcode == HloOp::partition_id;
  storeScalar(word, partition ? b_.pseudo(llo::PseudoKind::kDevice, 0) : b_.imm(0));
  addForm(op.results[0], word, {});
  return llvm::Error::success();
}

llvm::Error Lowering::refuseCall(hlo::OpId id) {
  const llvm::StringRef target = m_.getString(id, hlo::AttrKey::call_target_name);
  if (target == hlo::kElidedConstant) return fail(Code::kBadLiteral, locOf(id), hlo::kElidedAdvice);
  return refuse(id, "a call of '" + target + "'");
}

llvm::Error Lowering::lowerRegion(hlo::RegionId region, std::vector<hlo::ValueId>* results) {
  planFusion(region);
  for (hlo::OpId id : m_.region(region).ops) {
    const hlo::Op& op = m_.op(id);
    if (op.opcode == HloOp::return_) {
      results->assign(op.operands.begin(), op.operands.end());
      continue;
    }
    if (auto err = lowerOp(id)) return err;
  }
  return llvm::Error::success();
}

llvm::Expected<llo::Module> Lowering::run() {
  out_.target = target_.text;
  out_.chip_json = target_.chip.json;
  out_.devices = m_.stage == hlo::Stage::kSpmd ? std::max<int64_t>(1, m_.num_partitions) : 1;
  out_.device_order = m_.device_order;
  out_.options = m_.options;
  local_sem_ = out_.num_sems++;
  prepareRoots();
  if (auto err = declarePorts()) return err;
  std::vector<hlo::ValueId> results;
  if (auto err = lowerRegion(m_.func(m_.entry).body, &results)) return err;
  // Results stand in the entry's result buffers; what was not written there is copied.
  for (size_t i = 0; i < results.size(); ++i)
    if (auto err = copyValue(results[i], result_buffers_[i])) return err;
  if (out_.driver.op_locs.empty()) out_.driver.op_locs.push_back(0);
  llvm::SmallVector<bool> donated(out_.args.size(), false);
  const std::vector<hlo::Port>& ports = m_.func(m_.entry).arg_ports;
  for (size_t i = 0; i < donated.size() && i < ports.size(); ++i) donated[i] = ports[i].donated;
  shareDonated(out_, donated);
  return std::move(out_);
}

llvm::Expected<llo::Module> lower(hlo::Module module, const target::Target& target, const LowerOptions& options, DiagnosticSink& sink) {
  if (module.stage == hlo::Stage::kHlo && module.num_partitions > 1)
    return fail(Code::kLowerStage, module.source_file, "the program asks for " + llvm::Twine(module.num_partitions) + " partitions and is not partitioned; tpu-partition makes the stage that tpu-lower reads");
  if (auto err = hlo::inlineCalls(module, /*composites=*/true)) return err;
  decompose(module);
  hlo::eliminateDeadCode(module);
  Lowering lowering(module, target, options, sink);
  return lowering.run();
}

}  // namespace tpu::lower
