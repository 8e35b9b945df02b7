// Result types of operations. One rule per kind of operation (lib/hlo/ops) checks operands, attributes and
// regions and says what the results are; the builder and the verifier both read it.
#pragma once
#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"

namespace tpu::hlo {

/// Computes the result types of `op` from its operands, attributes and regions into `types`, and refuses an
/// op that breaks a rule of its kind. Where the results say what is wanted (reshape, iota, broadcast_in_dim,
/// constant, convert ...), they are checked and returned as they stand.
llvm::Error inferTypes(const Module& module, OpId op, llvm::SmallVectorImpl<Type>& types);

/// True where the results of this kind follow from the operands alone, so that an op may be made without
/// them.
bool resultsFollow(Opcode opcode);

/// Equal, or equal where both are static (kDynamicDim agrees with anything). Encodings are not compared.
bool compatible(const Type& a, const Type& b);
bool compatibleDims(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// "f32[8,128]", "token", "(f32[2], s32[])"; dynamic dims as "?".
std::string typeText(const Module& module, const Type& type);
std::string typeText(const Module& module, TypeId type);

/// Devices in one group of a collective: the product of its axes, or the columns of its replica groups; all
/// devices of the program where neither is given.
int64_t groupSize(const Module& module, OpId op);

/// The type one device holds of an array of `global` under `sharding`: each dimension divided by the product
/// of its axes, rounded up. With `only`, axes outside that list are left out (a partial manual region).
Type localType(const Module& module, const Type& global, const Sharding& sharding,
               std::optional<llvm::ArrayRef<AxisRef>> only = std::nullopt);

}  // namespace tpu::hlo
