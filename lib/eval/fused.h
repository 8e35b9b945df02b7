// Chains of elementwise ops run together, block by block: intermediate values never leave the cache, and
// operands that are broadcast are spread inside a block instead of in memory.
//
// Each op computes and rounds exactly as it does alone; only the order in which elements are visited differs.
#pragma once
#include "kernel.h"
#include "loops.h"

namespace tpu::eval {

/// An operand from outside, a value or one element of a constant: element i of the chain is element (i /
/// inner) % count of it; count 0 stands for all elements.
struct FusedSource {
  hlo::ValueId value;
  hlo::LiteralId literal;
  ElementType element;
  int64_t count = 0, inner = 1;
  friend bool operator==(const FusedSource&, const FusedSource&) = default;
};

struct FusedStep {
  enum Kind : uint8_t { kUnary, kBinary, kSelect, kConvert };
  Kind kind;
  ElementType from, to;  // of the first data operand, of the result
  UnaryLoop unary = nullptr;
  BinaryLoop binary = nullptr;
  /// Operands: >= 0 the result of a step, else source -1 - arg.
  llvm::SmallVector<int, 3> args;
  int slot = 0;  // of the scratch memory, shared by results whose lives do not overlap
};

struct FusedChain {
  hlo::Dims dims;
  llvm::SmallVector<FusedSource, 4> sources;
  llvm::SmallVector<FusedStep, 8> steps;  // the last gives the result
  int slots = 0;

  /// `in` by source. An operand of which this is the only holder may become the result.
  Tensor run(llvm::MutableArrayRef<Tensor> in) const;
};

/// Which ops of a region run as chains: by op the chain that it ends, if any, and whether it runs inside of
/// one and not by itself.
struct FusionPlan {
  std::vector<std::unique_ptr<FusedChain>> chains;
  std::vector<bool> inside;
};
FusionPlan planFusion(const hlo::Module& module, hlo::RegionId region);

}  // namespace tpu::eval
