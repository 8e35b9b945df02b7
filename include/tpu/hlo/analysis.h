// Questions about a module that passes share, kept outside the IR: who uses a value, in which order ops
// stand, what is dead; and the two clean-ups every stage wants, dead code elimination and call inlining.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"

namespace tpu::hlo {

struct Use {
  OpId op;
  uint32_t operand = 0;
};

/// All uses of all values at one moment, in program order. Any edit makes it stale.
class Uses {
 public:
  explicit Uses(const Module& module);
  llvm::ArrayRef<Use> of(ValueId value) const {
    return llvm::ArrayRef<Use>(uses_).slice(starts_[value.v], starts_[value.v + 1] - starts_[value.v]);
  }
  bool unused(ValueId value) const { return of(value).empty(); }
  bool single(ValueId value) const { return of(value).size() == 1; }

 private:
  std::vector<uint32_t> starts_;  // by value id, one more at the end
  std::vector<Use> uses_;
};

/// Visits the ops of a region in order, each before those of its nested regions. The lists of regions that
/// are still to be visited may not change; `visit` may create operations that stand in none of them.
void walk(const Module& module, RegionId region, llvm::function_ref<void(OpId)> visit);
/// All functions, in order.
void walk(const Module& module, llvm::function_ref<void(OpId)> visit);

/// Removes ops whose results nobody uses, in all functions; kept are terminators, side effects, custom calls
/// that say so or have no results, sharding groups, and whatever holds or calls such an op. A dead collective
/// is dead on every device, so it goes too. Also removes private functions that nobody refers to (FuncIds
/// change). Returns the number of removed ops.
size_t eliminateDeadCode(Module& module);

/// Drops private functions that no public function reaches. FuncIds change; returns true where any went.
bool dropUnusedFunctions(Module& module);

/// Replaces every func.call reachable from the entry by the callee's body (recursively) and drops private
/// functions. Inlined ops keep their own locations. Calls inside nested regions are inlined as well. Refuses
/// recursion. Composites are replaced by their decomposition where `composites` is set.
llvm::Error inlineCalls(Module& module, bool composites = false);

/// Replaces custom calls that operations can say (ApproxTopK, PartialReduce) by those, except the targets that `keep` names.
/// inlineCalls() with `composites` does so first. True where any was replaced.
bool expandKnownCalls(Module& module, llvm::function_ref<bool(llvm::StringRef target)> keep = nullptr);

/// Gives the entry an argument and a result for every leaf of its tuples and replaces elements taken out of tuples that
/// the program builds by what went in. Calls must be inlined. True where anything changed.
bool flattenTuples(Module& module);

/// Copies the ops of `from` (without its terminator) to the end of `to` or into `sink`, mapping operands
/// through `map` (indexed by value id, grown as needed; holds from's arguments on entry). Returns the mapped
/// operands of the terminator.
llvm::SmallVector<ValueId, 4> copyBody(Module& module, RegionId from, RegionId to, std::vector<ValueId>& map,
                                       std::vector<OpId>* sink = nullptr);
/// Copies one op with attributes and nested regions.
OpId copyOp(Module& module, OpId op, RegionId to, std::vector<ValueId>& map,
            std::vector<OpId>* sink = nullptr);

/// The value of an integer or pred scalar (or splat) where it is a constant, seen through convert, reshape
/// and broadcast, and through add, subtract, multiply, divide, remainder, minimum, maximum of such.
std::optional<int64_t> constantInt(const Module& module, ValueId value);

/// Trip count of a while op in the form JAX prints (an induction argument from a constant, compared
/// LT/LE/GT/GE/NE with a constant, advanced by a constant step); none where it is not of that form.
std::optional<int64_t> tripCount(const Module& module, OpId while_op);

/// The one two-operand opcode a region "return op(arg0, arg1)" applies (arguments in either order where the
/// op commutes); none where the region does anything else.
std::optional<Opcode> combinerOf(const Module& module, RegionId region);

}  // namespace tpu::hlo
