// The walk over the program: what each op becomes.
#include "lowering.h"

#include "decompose.h"
#include "donation.h"
#include "tpu/hlo/analysis.h"

namespace tpu::lower {

using HloOp = hlo::Opcode;

llvm::Error Lowering::refuse(hlo::OpId id, const llvm::Twine& why) {
  std::string tail = why.str();
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
  switch (op.opcode) {
    case HloOp::tuple: return llvm::Error::success();
    case HloOp::reduce: return lowerReduce(id);
    case HloOp::dot: case HloOp::dot_general: return lowerDot(id);
    case HloOp::transpose: return lowerTranspose(id);
    case HloOp::slice: return lowerSlice(id);
    case HloOp::pad: return lowerPad(id);
    case HloOp::concatenate: return lowerConcatenate(id);
    case HloOp::reverse: return lowerReverse(id);
    case HloOp::dynamic_slice: return lowerDynamicSlice(id);
    case HloOp::dynamic_update_slice: return lowerDynamicUpdateSlice(id);
    case HloOp::while_: return lowerWhile(id);
    case HloOp::if_: case HloOp::case_: return lowerBranch(id);
    case HloOp::all_reduce: return lowerAllReduce(id);
    case HloOp::all_gather: return lowerAllGather(id);
    case HloOp::reduce_scatter: return lowerReduceScatter(id);
    case HloOp::all_to_all: return lowerAllToAll(id);
    case HloOp::collective_permute: return lowerPermute(id);
    case HloOp::partition_id: case HloOp::replica_id: {
      int32_t word = resultBuffer(op.results[0], {});
      storeScalar(word, op.opcode == HloOp::partition_id ? b_.pseudo(llo::PseudoKind::kDevice, 0) : b_.imm(0));
      addForm(op.results[0], word, {});
      return llvm::Error::success();
    }
    default: return refuse(id);
  }
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
