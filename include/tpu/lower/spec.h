// What a kernel is asked to do, free of HLO: the border between the passes that choose kernels (lib/lower) and the
// emitters that write them (lib/lower/emit). Two equal specs give the same kernel, so identical kernels are emitted once:
// specKey() is the canonical text.
//
// All arrays stand in isa::defaultLayout of their dims. Dims of one spec share a rank; an input dimension is the shape's or
// 1 (broadcast). Kernel parameters: the inputs in order (kHbm, or kSmem for scalar inputs), then the outputs (kHbm, or
// kSmem where the output is rank 0). A scalar in SMEM holds the value's host bytes in the low bits of one word; writers
// zero the upper bits, readers ignore them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"
#include "tpu/llo/llo.h"
#include "tpu/support/element_type.h"
#include "tpu/target/chip.h"

namespace tpu::lower {

using Dims = llvm::SmallVector<int64_t, 6>;

/// One node of an elementwise expression, in topological order.
struct ExprNode {
  enum Kind : uint8_t { kInput, kConstant, kIota, kOp } kind = kOp;
  ElementType type = ElementType::kF32;  // of the result
  hlo::Opcode op = hlo::Opcode::add;     // kOp: an elementwise op (compare, convert, select, clamp ... included)
  llvm::SmallVector<int, 3> args;        // kOp: nodes; a scalar-shaped operand is just a node
  int index = 0;                         // kInput: which input; kIota: which dimension
  uint64_t bits = 0;                     // kConstant: the value in host layout (hostBytes(type) low bytes)
  std::string detail;                    // compare: "LT" ... or "LT,TOTALORDER"; reduce_precision: "8,7"
  uint32_t op_slot = 0;                  // source op, for locations
};
struct InputSpec {
  ElementType type = ElementType::kF32;
  Dims dims;            // rank of the shape
  bool scalar = false;  // one word in SMEM
};

struct LoopSpec {
  Dims shape;                    // every output has these dims; empty: all scalar, one word each in SMEM
  std::vector<InputSpec> inputs;
  std::vector<ExprNode> nodes;
  std::vector<int> outputs;      // nodes
};

struct ReduceSpec {
  LoopSpec producer;             // shape = dims before reduction; outputs = values to reduce
  llvm::SmallVector<bool, 6> reduced;  // per dimension
  std::vector<ExprNode> combiner;      // inputs: acc_0..acc_n-1, x_0..x_n-1
  std::vector<int> combined;           // nodes of the combiner: new accumulators
  std::vector<uint64_t> init_bits;     // per value: constant init in host layout
  std::vector<int> init_inputs;        // per value: the scalar input that is the init, -1: init_bits; empty: all constant
  /// Results have the shape with reduced dims kept as 1. 16-bit float sums, products and so on accumulate in f32 and round once.
};

struct DotSpec {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  ElementType lhs = ElementType::kF32, rhs = ElementType::kF32, out = ElementType::kF32;
  bool rhs_transposed = false;   // rhs is [batch, n, k] instead of [batch, k, n]
  int passes = 1;                // f32 operands: 1, 3 or 6 bf16 passes
};

/// [batch, rows, cols] -> [batch, cols, rows], 32-bit or packed elements.
struct TransposeSpec {
  int64_t batch = 1, rows = 0, cols = 0;
  ElementType type = ElementType::kF32;
};

std::string specKey(const LoopSpec& spec);
std::string specKey(const ReduceSpec& spec);
std::string specKey(const DotSpec& spec);
std::string specKey(const TransposeSpec& spec);

/// Emit the kernel. `name` is used as it stands. Fails with a code where the chip cannot hold the smallest tile.
llvm::Expected<llo::Kernel> emitLoop(const LoopSpec& spec, const target::Chip& chip, const std::string& name);
llvm::Expected<llo::Kernel> emitReduce(const ReduceSpec& spec, const target::Chip& chip, const std::string& name);
/// Whether the combiner is seen to give the same for both orders of its operands. emitReduce takes one that is not with a
/// single reduced dimension of more than one element, and combines in ascending order.
bool commutes(const ReduceSpec& spec);
/// For a combiner that takes all values from one of its sides: which value is the position along the one reduced
/// dimension, or -1. Then only the side that stands first must be the left operand.
int positionValue(const ReduceSpec& spec);
llvm::Expected<llo::Kernel> emitDot(const DotSpec& spec, const target::Chip& chip, const std::string& name);
llvm::Expected<llo::Kernel> emitTranspose(const TransposeSpec& spec, const target::Chip& chip, const std::string& name);

/// True where emitLoop knows the op on these types; otherwise tpu-lower refuses the op at its line.
bool canEmit(const ExprNode& node, llvm::ArrayRef<ElementType> args);

}  // namespace tpu::lower
