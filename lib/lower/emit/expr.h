// Evaluates elementwise expressions on one 32-bit register view of the data: floats as f32, signed integers
// sign-extended, unsigned zero-extended, pred as a mask or as words 0 and 1.
#pragma once
#include <optional>
#include <vector>

#include "tpu/lower/spec.h"
#include "vec.h"

namespace tpu::lower::emit {

/// A value of a node: a vector, or for pred a mask or a vector of 0 and 1.
struct Val {
  int v = -1, m = -1;
  static Val of(V x) { return {x.id, -1}; }
  static Val of(M x) { return {-1, x.id}; }
};
V asVector(Vec& e, Val x);
M asMask(Vec& e, Val x);

/// The word of a constant as it stands in a register.
uint32_t registerBits(ElementType type, uint64_t host_bits);

/// Types that expressions compute with.
bool isComputable(ElementType type);
/// One op. 16-bit float results are rounded unless `wide`, which keeps them as f32 (accumulators).
Val applyOp(Vec& e, const ExprNode& node, llvm::ArrayRef<Val> args, llvm::ArrayRef<ElementType> types, bool wide);

/// Values of `wanted` nodes; `leaf` gives the values of kInput and kIota nodes. Nodes that nothing needs are not emitted.
std::vector<Val> evaluate(Vec& e, llvm::ArrayRef<ExprNode> nodes, llvm::ArrayRef<int> wanted, bool wide,
                          llvm::function_ref<Val(const ExprNode&)> leaf);

}  // namespace tpu::lower::emit
