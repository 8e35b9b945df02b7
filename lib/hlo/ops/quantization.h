// Constraints on quantized tensors, which several families share: which scales, storage and expressed types
// the operands and results of one op may combine.
#pragma once
#include "check.h"
#include "tpu/hlo/quantized.h"

namespace tpu::hlo {

inline bool anyQuantized(OpCheck& c) {
  for (size_t i = 0; i < c.numIn(); ++i)
    if (isQuantized(c.in(i))) return true;
  for (size_t i = 0; i < c.numOut(); ++i)
    if (isQuantized(c.out(i))) return true;
  return false;
}

/// The one dimension that scales vary along; -1 for a scale per tensor or per block, and for types without.
int64_t quantizedDim(const Quantization& q);
int64_t scalesAlong(const Type& type);
bool isPerTensor(const Quantization& q);

/// Sums (add C2-C7): all quantized, of one storage and expressed type, results along the operands' dimension.
llvm::Error needSumQuantization(OpCheck& c);
/// Movement of values (broadcast_in_dim C1, reshape C1, transpose C1 ...): operand 0 and the result are
/// quantized alike, except for the dimension that scales vary along.
llvm::Error needSameQuantization(OpCheck& c, Label label);
/// Where scales vary along one dimension, movement carries it along: broadcast_in_dim C6, reshape C3,
/// transpose C4.
llvm::Error needScalesBroadcast(OpCheck& c);
llvm::Error needScalesReshape(OpCheck& c);
llvm::Error needScalesTranspose(OpCheck& c);
/// Contractions: the six rows from `first` on (convolution C28, C31-C34; dot_general C14, C17-C20). The first
/// says which of the three are quantized, the others start at `next`.
llvm::Error needContractionQuantization(OpCheck& c, Label first, size_t next);

}  // namespace tpu::hlo
