// Which kernel evaluates which op.
#include "kernel.h"
#include "values.h"

namespace tpu::eval {
namespace {

using Kernel = Outcome (*)(Call&);

Kernel findKernel(Opcode op) {
  switch (op) {
    case Opcode::iota:
    case Opcode::broadcast:
    case Opcode::broadcast_in_dim:
    case Opcode::reshape:
    case Opcode::transpose:
    case Opcode::slice:
    case Opcode::dynamic_slice:
    case Opcode::dynamic_update_slice:
    case Opcode::pad:
    case Opcode::concatenate:
    case Opcode::reverse:
    case Opcode::bitcast_convert:
      return movement;
    case Opcode::dynamic_iota:
    case Opcode::dynamic_broadcast_in_dim:
    case Opcode::dynamic_reshape:
    case Opcode::real_dynamic_slice:
    case Opcode::dynamic_pad:
    case Opcode::get_dimension_size:
    case Opcode::set_dimension_size:
      return dynamicShape;
    case Opcode::gather:
    case Opcode::dynamic_gather:
      return gather;
    case Opcode::scatter:
      return scatter;
    case Opcode::dot_general:
    case Opcode::dot:
      return dotGeneral;
    case Opcode::convolution:
      return convolution;
    case Opcode::reduce:
      return reduce;
    case Opcode::reduce_window:
      return reduceWindow;
    case Opcode::select_and_scatter:
      return selectAndScatter;
    case Opcode::sort:
      return sortOp;
    case Opcode::chlo_top_k:
      return topK;
    case Opcode::cholesky:
      return cholesky;
    case Opcode::triangular_solve:
      return triangularSolve;
    case Opcode::fft:
      return fft;
    case Opcode::rng_bit_generator:
      return randomBits;
    case Opcode::batch_norm_grad:
    case Opcode::batch_norm_inference:
    case Opcode::batch_norm_training:
      return batchNorm;
    case Opcode::map:
      return mapOp;
    case Opcode::custom_call:
      return customCall;
    case Opcode::chlo_constant_like:
      return constantLike;
    case Opcode::chlo_ragged_dot:
      return raggedDot;
    case Opcode::einsum:
    case Opcode::unary_einsum:
      return einsum;
    case Opcode::torch_index_select:
      return torchIndexSelect;
    case Opcode::dynamic_conv:
      return convolution;
    case Opcode::rng:
      return rng;
    default:
      if (hlo::opInfo(op).name.starts_with("chlo.broadcast_")) return broadcasting;
      return hlo::hasTrait(op, hlo::kElementwise) ? elementwise : nullptr;
  }
}

}  // namespace

// The region on all elements at once.
Outcome mapOp(Call& call) {
  const Dims dims = call.in[0]->dims;
  llvm::SmallVector<Tensor, 4> args;
  for (Tensor& t : call.in) args.push_back(reshaped(t, {t->numElements()}));
  Outcome out = runBatched(call, call.region(), args);
  if (!out) return out;
  return Tensors{reshaped((*out)[0], dims)};
}

bool isKernel(Opcode opcode) { return findKernel(opcode) != nullptr; }

Outcome runKernel(Call& call) {
  const Kernel kernel = findKernel(call.opcode());
  if (!kernel) return fail(Code::kEvalUnsupported, call.loc(), "the evaluator does not take " + call.name());
  return call.given.empty() && isQuantizedCall(call) ? quantizedOp(call) : kernel(call);
}

}  // namespace tpu::eval
