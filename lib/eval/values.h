// Small helpers on tensors that several kernels use.
#pragma once
#include "kernel.h"

namespace tpu::eval {

/// Calls fn(first, count) over [0, n), on several threads where that pays.
void forChunks(int64_t n, llvm::function_ref<void(int64_t, int64_t)> fn);

/// The rules of stablehlo.convert; the tensor itself where the type is the same.
Tensor convertTo(Tensor in, ElementType to);
/// One element, real, as f64.
double numberAt(const HostTensor& t, int64_t i);
/// A scalar spread over dims; other tensors as they are.
Tensor splatTo(const Tensor& t, llvm::ArrayRef<int64_t> dims);
/// a <op> b on tensors of one type and shape; null where the op is not defined on the type.
Tensor binaryOf(Opcode op, Tensor a, Tensor b);
/// An elementwise op on one operand, giving its type; null where the op is not defined on it.
Tensor unaryOf(Opcode op, Tensor a);
/// A tensor filled with one element's bytes.
void fillWith(HostTensor& t, const uint8_t* element);
Tensor scalarOf(ElementType element, double value);
/// The same bytes under other dims.
Tensor reshaped(Tensor t, llvm::ArrayRef<int64_t> dims);
/// Dims permuted: result dim d is operand dim permutation[d].
Tensor transposed(const Tensor& t, llvm::ArrayRef<int64_t> permutation);

/// stablehlo.broadcast_in_dim.
Tensor broadcastInDim(const Tensor& in, llvm::ArrayRef<int64_t> map, llvm::ArrayRef<int64_t> dims);
/// stablehlo.slice; an empty `step` is 1 everywhere.
Tensor sliced(const Tensor& in, llvm::ArrayRef<int64_t> start, llvm::ArrayRef<int64_t> limit,
              llvm::ArrayRef<int64_t> step);
/// Pairs of dims contracted, in the result's type; dims of the result are batch, then free ones of both
/// sides.
struct Contraction {
  Dims lhs_batch, rhs_batch, lhs_contract, rhs_contract;
};
Tensor contract(const Tensor& lhs, const Tensor& rhs, const Contraction& c, ElementType result, bool fused);

/// stablehlo.pad; `value` is the bytes of one element.
Tensor padded(const Tensor& in, const uint8_t* value, llvm::ArrayRef<int64_t> low,
              llvm::ArrayRef<int64_t> high, llvm::ArrayRef<int64_t> interior);

/// Copies dims[...] elements of `width` bytes between strided arrays (strides in elements).
void stridedCopy(llvm::ArrayRef<int64_t> dims, int width, const uint8_t* from,
                 llvm::ArrayRef<int64_t> from_strides, uint8_t* to, llvm::ArrayRef<int64_t> to_strides);

/// The one op of a region that is just `op(arg0, arg1)`, when it is.
std::optional<Opcode> singleOp(const hlo::Module& module, hlo::RegionId region);
/// True where a region of two arguments returns its second (the usual scatter).
bool returnsSecond(const hlo::Module& module, hlo::RegionId region);

/// One op folded over dims of `in`, starting from init; in init's type. Null where there is no fast path.
Tensor foldSingle(Opcode op, Tensor in, llvm::ArrayRef<int64_t> reduced, Tensor init);

/// A region of scalars applied to many elements at once: arguments and results are vectors of one length.
Outcome runBatched(const Call& call, hlo::RegionId region, llvm::ArrayRef<Tensor> args);

}  // namespace tpu::eval
