// What an op's evaluation gets and gives: tensors of one device in, tensors of one device out.
//
// Tensors are shared; a kernel may overwrite an operand that nobody else holds (own), which is how loops
// update their state in place.
#pragma once
#include <memory>
#include <optional>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"
#include "tpu/support/diagnostics.h"
#include "tpu/support/host_tensor.h"

namespace tpu::eval {

using hlo::AttrKey;
using hlo::Dims;
using hlo::Opcode;
using Tensor = std::shared_ptr<HostTensor>;
using Tensors = llvm::SmallVector<Tensor, 2>;
using Outcome = llvm::Expected<Tensors>;
/// Finds a value that a region takes from around it; null when unknown.
using Captures = llvm::function_ref<Tensor(hlo::ValueId)>;

struct Call {
  const hlo::Module& module;
  hlo::OpId id;
  llvm::MutableArrayRef<Tensor> in;
  Captures captures;
  /// Each operation of a sum rounds for itself, as the specification writes it, also where the machine would
  /// fuse or keep more bits.
  bool stepwise = false;
  /// Result types instead of the op's own: what a quantized op is computed in.
  llvm::ArrayRef<hlo::Type> given = {};
  /// The op that is computed, where another stands for it.
  std::optional<Opcode> as = std::nullopt;

  const hlo::Op& op() const { return module.op(id); }
  Opcode opcode() const { return as ? *as : op().opcode; }
  llvm::StringRef loc() const { return module.loc(op().loc); }
  const hlo::Type& resultType(size_t i = 0) const {
    return given.empty() ? module.typeOf(op().results[i]) : given[i];
  }
  ElementType resultElement(size_t i = 0) const { return resultType(i).element; }
  llvm::ArrayRef<int64_t> ints(AttrKey key) const { return module.getInts(id, key); }
  int64_t integer(AttrKey key, int64_t otherwise = 0) const { return module.getInt(id, key, otherwise); }
  llvm::StringRef name() const { return hlo::opInfo(opcode()).name; }
  hlo::RegionId region(size_t i = 0) const { return op().regions[i]; }
};

inline Tensor makeTensor(ElementType element, llvm::ArrayRef<int64_t> dims) {
  return std::make_shared<HostTensor>(element, dims);
}
/// Elements of any value: for kernels that write all of them.
inline Tensor rawTensor(ElementType element, llvm::ArrayRef<int64_t> dims) {
  return std::make_shared<HostTensor>(HostTensor::uninitialized(element, dims));
}
/// The tensor itself where this is the only reference, else a copy of it.
inline Tensor own(Tensor& t) { return t.use_count() == 1 ? std::move(t) : std::make_shared<HostTensor>(*t); }

/// "unsupported by the evaluator" at the op's place.
llvm::Error unsupported(const Call& call, const llvm::Twine& what);
/// Bad operands that only values or run-time shapes show.
llvm::Error badOperand(const Call& call, const llvm::Twine& what);

/// Element i of an integer or pred tensor.
int64_t integerAt(const HostTensor& t, int64_t i);
/// All elements of an integer tensor.
Dims integersOf(const HostTensor& t);
std::vector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> dims);

// One function per family of ops (kernels.cc chooses).
Outcome elementwise(Call& call);
Outcome movement(Call& call);
Outcome dynamicShape(Call& call);
Outcome gather(Call& call);
Outcome scatter(Call& call);
Outcome dotGeneral(Call& call);
Outcome convolution(Call& call);
Outcome reduce(Call& call);
Outcome reduceWindow(Call& call);
Outcome selectAndScatter(Call& call);
Outcome sortOp(Call& call);
Outcome topK(Call& call);
Outcome cholesky(Call& call);
Outcome triangularSolve(Call& call);
Outcome fft(Call& call);
Outcome randomBits(Call& call);
Outcome batchNorm(Call& call);
Outcome customCall(Call& call);
Outcome mapOp(Call& call);
Outcome broadcasting(Call& call);
Outcome constantLike(Call& call);
Outcome raggedDot(Call& call);
Outcome einsum(Call& call);
Outcome torchIndexSelect(Call& call);
Outcome rng(Call& call);

/// Ops with quantized operands or results.
bool isQuantizedCall(const Call& call);
Outcome quantizedOp(Call& call);

/// Runs any op that works on one device alone and has no control flow; refuses others.
Outcome runKernel(Call& call);
/// True where runKernel takes the op.
bool isKernel(Opcode opcode);

}  // namespace tpu::eval
