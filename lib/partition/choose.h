// Which factors of an operation are sharded, when its operands and results do not agree: every tensor's wish
// is tried as the leading one, and the cheapest wins by bytes on the wires plus work done twice.
#pragma once
#include <optional>

#include "plan.h"
#include "tpu/sharding/rules.h"

namespace tpu::partition {

/// One tensor of an op as the choice sees it.
struct TensorView {
  const sharding::TensorFactors* map = nullptr;
  llvm::ArrayRef<int64_t> sizes;
  int element_bits = 32;
  Layout layout;      // what the value has (operand) or is wanted to have (result)
  bool free = false;  // an operand made in any sharding at no cost, a result that nobody reads
  /// An operand that was resharded for this operation alone: what it was before. It may come from there directly.
  std::optional<Layout> source;
};

struct Choice {
  sharding::FactorAxes axes;
  double cost = 0;
  double wire_bytes = 0;  // of the reshards around the operation and of its own exchanges; for --explain
};

class Chooser {
 public:
  Chooser(const hlo::Module& m, Planner& planner) : m_(m), planner_(planner) {}
  Choice choose(hlo::OpId op, const sharding::OpRule& rule, llvm::ArrayRef<TensorView> operands,
                llvm::ArrayRef<TensorView> results);
  std::vector<Choice>* collect = nullptr;  // where set: takes every candidate

  /// Layout of a tensor when the factors are sharded so.
  static Layout layoutFor(const sharding::OpRule& rule, const sharding::TensorFactors& map,
                          const sharding::FactorAxes& axes);
  /// Axes over which results are partial sums.
  static sharding::Axes partialAxes(const sharding::OpRule& rule, const sharding::FactorAxes& axes);

 private:
  struct Problem;
  void normalise(const Problem& p, sharding::FactorAxes& axes);
  bool merge(const Problem& p, sharding::FactorAxes& axes, const sharding::FactorAxes& more);
  double cost(const Problem& p, const sharding::FactorAxes& axes);
  double flops(const Problem& p, const sharding::FactorAxes& axes) const;
  double wireBytes(const Problem& p, const sharding::FactorAxes& axes);
  double operandCost(const TensorView& t, const Layout& need);
  const hlo::Module& m_;
  Planner& planner_;
};

}  // namespace tpu::partition
