// How an operation may be divided: a rule names factors (loop dimensions of the computation) and says which
// factors make up each dimension of each operand and result. dot_general (b,m,k)x(b,k,n)->(b,m,n) has the
// factors b, m, n (pass through) and k (reduction: operands only, results come out as partial sums).
// Propagation and partitioning read nothing else.
#pragma once
#include <string>

#include "llvm/ADT/SmallVector.h"
#include "tpu/hlo/module.h"
#include "tpu/sharding/axes.h"

namespace tpu::sharding {

enum class FactorKind : uint8_t {
  kPass,       // stands in results (and usually operands): each device computes its own part
  kReduction,  // operands only: each device has a partial result, to be combined
  kNeighbour,  // passes through with data from other devices: windows, shifts, concatenation, reversal
  kReplicate,  // must be whole on every device (sorting, fft, triangular factors)
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::kPass;
  bool even = false;  // only shard counts that divide `size` (reshapes)
  bool shifted = false;  // a reduction for which the first operand comes in windows from other devices as well
};

/// Factors of one tensor dimension, major to minor; empty: the dimension stays whole.
using DimFactors = llvm::SmallVector<int16_t, 1>;
using TensorFactors = llvm::SmallVector<DimFactors, 4>;

struct OpRule {
  llvm::SmallVector<Factor, 6> factors;
  llvm::SmallVector<TensorFactors, 3> operands, results;
  std::string note;  // why dimensions stay whole, where they do for want of a rule

  int addFactor(int64_t size, FactorKind kind = FactorKind::kPass, bool even = false);
};

/// The rule of an operation. An operation without one gets a rule without factors and a note. Control
/// operations, calls and terminators have no rule here: their values are tied by edges
/// (partition/propagate.cc). Some operations can be divided in a second way, variant 1: a slice of a sharded
/// dimension may come from whoever has it (operand dimension is a reduction) instead of being sharded itself; an
/// update at a constant place may be sharded like what it updates; sorted shards may be merged; a convolution by a kernel as
/// large as its input (the gradient of a kernel) may be summed over parts of the window.
OpRule ruleFor(const hlo::Module& module, hlo::OpId op, int variant = 0);
int numVariants(hlo::Opcode opcode);
/// False for operations whose rule has no factors for want of one: their operands and results stay whole.
bool hasRule(hlo::Opcode opcode);

/// What is wrong with the sdy.sharding_rule of a custom call; empty where it has none or a sound one.
std::string userRuleProblem(const hlo::Module& module, hlo::OpId op);

/// The dimension along which rng_bit_generator may be divided, and into parts of how many elements at least, so that
/// every device draws a run of the counters; false where no dimension is such.
struct CounterRuns {
  int64_t dim = 0, granule = 1;
  int64_t counters_per_granule = 1;  // that one granule of the dimension uses
};
bool counterRuns(const hlo::Module& module, hlo::OpId op, CounterRuns& runs);
/// Philox (a counter of two words where the state has three) rather than Threefry.
bool usesPhilox(const hlo::Module& module, hlo::OpId op);

/// Axes of each factor, index = factor.
using FactorAxes = llvm::SmallVector<Axes, 6>;

/// Reads a tensor's sharding as factor axes, starting with empty lists. False where the sharding cuts a
/// dimension in a way that the factors cannot express; what can be expressed is still returned.
bool project(const OpRule& rule, const TensorFactors& tensor, llvm::ArrayRef<hlo::DimSharding> dims,
             FactorAxes& axes);
/// The sharding that a tensor has when the factors are sharded so: minor factors of a dimension count only
/// behind fully sharded major ones.
llvm::SmallVector<Axes, 4> dimsOf(const OpRule& rule, const TensorFactors& tensor, const FactorAxes& axes);

}  // namespace tpu::sharding
