// Which rule judges which opcode: a switch without default, so that a row of ops.def without a rule does not
// compile.
#include "check.h"
#include "tpu/hlo/verify.h"

namespace tpu::hlo {

OpRule ruleOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::cbrt: case Opcode::ceil: case Opcode::cosine: case Opcode::count_leading_zeros:
    case Opcode::exponential: case Opcode::exponential_minus_one: case Opcode::floor: case Opcode::log:
    case Opcode::log_plus_one: case Opcode::logistic: case Opcode::negate: case Opcode::not_:
    case Opcode::popcnt:
    case Opcode::round_nearest_afz: case Opcode::round_nearest_even: case Opcode::rsqrt: case Opcode::sign:
    case Opcode::sine: case Opcode::sqrt: case Opcode::tan: case Opcode::tanh:
    case Opcode::chlo_acos: case Opcode::chlo_acosh: case Opcode::chlo_asin:
    case Opcode::chlo_asin_acos_kernel:
    case Opcode::chlo_asinh: case Opcode::chlo_atan: case Opcode::chlo_atanh: case Opcode::chlo_bessel_i1e:
    case Opcode::chlo_conj: case Opcode::chlo_cosh: case Opcode::chlo_digamma: case Opcode::chlo_erf:
    case Opcode::chlo_erf_inv: case Opcode::chlo_erfc: case Opcode::chlo_lgamma: case Opcode::chlo_sinh:
    case Opcode::chlo_square: case Opcode::chlo_tan: return ruleUnary;
    case Opcode::abs: case Opcode::real: case Opcode::imag: return ruleRealPart;
    case Opcode::convert: return ruleConvert;
    case Opcode::uniform_quantize: return ruleUniformQuantize;
    case Opcode::uniform_dequantize: return ruleUniformDequantize;
    case Opcode::bitcast_convert: return ruleBitcastConvert;
    case Opcode::is_finite: case Opcode::chlo_is_inf: case Opcode::chlo_is_neg_inf:
    case Opcode::chlo_is_pos_inf: return ruleUnaryToPred;
    case Opcode::reduce_precision: return ruleReducePrecision;
    case Opcode::add: case Opcode::and_: case Opcode::atan2: case Opcode::divide: case Opcode::maximum:
    case Opcode::minimum: case Opcode::multiply: case Opcode::or_: case Opcode::power: case Opcode::remainder:
    case Opcode::shift_left: case Opcode::shift_right_arithmetic: case Opcode::shift_right_logical:
    case Opcode::subtract: case Opcode::xor_: case Opcode::chlo_next_after: case Opcode::chlo_polygamma:
    case Opcode::chlo_zeta: return ruleBinary;
    case Opcode::compare: return ruleCompare;
    case Opcode::complex: return ruleComplex;
    case Opcode::clamp: return ruleClamp;
    case Opcode::select: return ruleSelect;
    case Opcode::map: return ruleMap;
    case Opcode::chlo_broadcast_add: case Opcode::chlo_broadcast_subtract:
    case Opcode::chlo_broadcast_multiply:
    case Opcode::chlo_broadcast_divide: case Opcode::chlo_broadcast_maximum:
    case Opcode::chlo_broadcast_minimum:
    case Opcode::chlo_broadcast_and:
    case Opcode::chlo_broadcast_or:
    case Opcode::chlo_broadcast_xor:
    case Opcode::chlo_broadcast_atan2:
    case Opcode::chlo_broadcast_complex:
    case Opcode::chlo_broadcast_next_after:
    case Opcode::chlo_broadcast_polygamma:
    case Opcode::chlo_broadcast_power:
    case Opcode::chlo_broadcast_remainder:
    case Opcode::chlo_broadcast_shift_left:
    case Opcode::chlo_broadcast_shift_right_arithmetic:
    case Opcode::chlo_broadcast_shift_right_logical:
    case Opcode::chlo_broadcast_zeta:
    case Opcode::chlo_broadcast_compare: case Opcode::chlo_broadcast_select: return ruleChloBroadcast;
    case Opcode::chlo_mulhi:
      return ruleBinary;
    case Opcode::chlo_constant_like:
      return ruleConstantLike;
    case Opcode::chlo_scan:
      return ruleScan;
    case Opcode::constant: case Opcode::chlo_constant: return ruleConstant;
    case Opcode::iota: return ruleIota;
    case Opcode::rng: return ruleRng;
    case Opcode::rng_bit_generator: return ruleRngBitGenerator;
    case Opcode::partition_id: case Opcode::replica_id: return ruleDeviceId;
    case Opcode::broadcast: return ruleBroadcast;
    case Opcode::broadcast_in_dim: return ruleBroadcastInDim;
    case Opcode::reshape: return ruleReshape;
    case Opcode::transpose: return ruleTranspose;
    case Opcode::slice: return ruleSlice;
    case Opcode::pad: return rulePad;
    case Opcode::concatenate: return ruleConcatenate;
    case Opcode::reverse: return ruleReverse;
    case Opcode::get_dimension_size: return ruleGetDimensionSize;
    case Opcode::set_dimension_size: return ruleSetDimensionSize;
    case Opcode::dynamic_slice: return ruleDynamicSlice;
    case Opcode::dynamic_update_slice: return ruleDynamicUpdateSlice;
    case Opcode::dynamic_iota: return ruleDynamicIota;
    case Opcode::dynamic_broadcast_in_dim: return ruleDynamicBroadcastInDim;
    case Opcode::dynamic_reshape: return ruleDynamicReshape;
    case Opcode::real_dynamic_slice: return ruleRealDynamicSlice;
    case Opcode::dynamic_pad: return ruleDynamicPad;
    case Opcode::gather: case Opcode::dynamic_gather: return ruleGather;
    case Opcode::scatter: return ruleScatter;
    case Opcode::torch_index_select: return ruleTorchIndexSelect;
    case Opcode::dot_general: return ruleDotGeneral;
    case Opcode::dot: return ruleDot;
    case Opcode::einsum: case Opcode::unary_einsum: return ruleEinsum;
    case Opcode::chlo_ragged_dot: return ruleRaggedDot;
    case Opcode::convolution: case Opcode::dynamic_conv: return ruleConvolution;
    case Opcode::reduce: return ruleReduce;
    case Opcode::reduce_window: return ruleReduceWindow;
    case Opcode::select_and_scatter: return ruleSelectAndScatter;
    case Opcode::sort: return ruleSort;
    case Opcode::chlo_top_k: return ruleTopK;
    case Opcode::cholesky: return ruleCholesky;
    case Opcode::triangular_solve: return ruleTriangularSolve;
    case Opcode::fft: return ruleFft;
    case Opcode::batch_norm_grad: case Opcode::batch_norm_inference: case Opcode::batch_norm_training:
      return ruleBatchNorm;
    case Opcode::while_: return ruleWhile;
    case Opcode::if_: case Opcode::case_: return ruleBranches;
    case Opcode::call: return ruleCall;
    case Opcode::return_: return ruleReturn;
    case Opcode::tuple: return ruleTuple;
    case Opcode::get_tuple_element: return ruleGetTupleElement;
    case Opcode::optimization_barrier: return ruleBarrier;
    case Opcode::after_all: case Opcode::create_token: return ruleToken;
    case Opcode::infeed: return ruleInfeed;
    case Opcode::outfeed: return ruleOutfeed;
    case Opcode::send: return ruleSend;
    case Opcode::recv: return ruleRecv;
    case Opcode::composite: return ruleComposite;
    case Opcode::custom_call: return ruleCustomCall;
    case Opcode::all_reduce: case Opcode::cross_replica_sum: return ruleAllReduce;
    case Opcode::all_gather: return ruleAllGather;
    case Opcode::reduce_scatter: return ruleReduceScatter;
    case Opcode::all_to_all: return ruleAllToAll;
    case Opcode::collective_permute: return ruleCollectivePermute;
    case Opcode::collective_broadcast: return ruleCollectiveBroadcast;
    case Opcode::sdy_sharding_constraint: case Opcode::sdy_reshard: return ruleShardingConstraint;
    case Opcode::sdy_manual_computation: return ruleManualComputation;
    case Opcode::sdy_named_computation: return ruleNamedComputation;
    case Opcode::sdy_sharding_group: return ruleShardingGroup;
    case Opcode::sdy_propagation_barrier: case Opcode::sdy_data_flow_edge: case Opcode::sdy_all_gather:
    case Opcode::sdy_all_slice: case Opcode::sdy_all_to_all: case Opcode::sdy_all_reduce:
    case Opcode::sdy_reduce_scatter: case Opcode::sdy_collective_permute: return ruleSameType;
  }
  llvm_unreachable("opcode without a rule");
}

bool resultsFollow(Opcode opcode) {
  switch (opcode) {
    case Opcode::convert: case Opcode::uniform_quantize: case Opcode::uniform_dequantize:
    case Opcode::bitcast_convert:
    case Opcode::iota: case Opcode::rng: case Opcode::rng_bit_generator: case Opcode::broadcast_in_dim:
    case Opcode::reshape: case Opcode::dynamic_iota: case Opcode::dynamic_broadcast_in_dim:
    case Opcode::dynamic_reshape: case Opcode::real_dynamic_slice: case Opcode::dynamic_pad:
    case Opcode::dynamic_conv: case Opcode::torch_index_select: case Opcode::einsum:
    case Opcode::unary_einsum:
    case Opcode::chlo_ragged_dot:
    case Opcode::chlo_constant_like:
    case Opcode::chlo_scan:
    case Opcode::composite:
    case Opcode::custom_call:
    case Opcode::infeed:
    case Opcode::recv: case Opcode::sdy_manual_computation: return false;
    default: return true;
  }
}

bool isSpecified(Opcode opcode) {
  switch (opcode) {
    case Opcode::broadcast: case Opcode::create_token: case Opcode::cross_replica_sum: case Opcode::dot:
    case Opcode::einsum: case Opcode::unary_einsum: case Opcode::torch_index_select:
    case Opcode::real_dynamic_slice: case Opcode::set_dimension_size: return false;
    default: return opInfo(opcode).name.starts_with("stablehlo.");
  }
}

namespace {

// The constraint that an operation of any number of operands has at least one.
Label countLabel(Opcode opcode) {
  switch (opcode) {
    case Opcode::concatenate: case Opcode::reduce: return C(3);
    case Opcode::map: return C(2);
    case Opcode::scatter: return C(5);
    case Opcode::sort: case Opcode::reduce_window: return C(1);
    default: return Label();
  }
}

llvm::Error checkCounts(OpCheck& c) {
  const OpInfo& info = opInfo(c.op.opcode);
  size_t in = c.numIn();
  if (in < static_cast<size_t>(info.min_operands) ||
      (info.max_operands >= 0 && in > static_cast<size_t>(info.max_operands)))
    return c.fail(countLabel(c.op.opcode),
                  "has " + llvm::Twine(in) + " operands, expected " + llvm::Twine(info.min_operands) +
                      (info.max_operands == info.min_operands ? "" : " or more"));
  if (info.regions >= 0 && c.op.regions.size() != static_cast<size_t>(info.regions))
    return c.fail("has " + llvm::Twine(c.op.regions.size()) + " regions, expected " +
                  llvm::Twine(info.regions));
  return llvm::Error::success();
}

llvm::Error wrongResult(OpCheck& c, const Type& given, const Type& expected) {
  const bool other_element = given.kind == TypeKind::kTensor && given.element != expected.element;
  const Label label = other_element ? c.element_label : c.shape_label;
  return c.failAs(Code::kTypeMismatch, label,
                  "result is " + c.text(given) + ", operands give " + c.text(expected));
}

}  // namespace

llvm::Error inferTypes(const Module& module, OpId op, llvm::SmallVectorImpl<Type>& types) {
  OpCheck check(module, op);
  if (auto e = checkCounts(check)) return e;
  if (auto e = ruleOf(check.op.opcode)(check)) return e;
  types.assign(check.results.begin(), check.results.end());
  return llvm::Error::success();
}

llvm::Error verifyOp(const Module& module, OpId op) {
  OpCheck check(module, op);
  if (auto e = checkCounts(check)) return e;
  if (auto e = ruleOf(check.op.opcode)(check)) return e;
  if (check.results.size() != check.numOut())
    return check.fail(check.count_label, "has " + llvm::Twine(check.numOut()) + " results, expected " +
                                             llvm::Twine(check.results.size()));
  for (size_t i = 0; i < check.numOut(); ++i)
    if (!compatible(check.results[i], check.out(i))) return wrongResult(check, check.out(i), check.results[i]);
  return llvm::Error::success();
}

}  // namespace tpu::hlo
