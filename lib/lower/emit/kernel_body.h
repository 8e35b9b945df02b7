// The loops of a kernel body over the units of its block, and the evaluation of a spec's expression at a unit.
#pragma once
#include <memory>

#include "expr.h"
#include "tile_io.h"
#include "tile_space.h"

namespace tpu::lower::emit {

/// A unit in the body: where each array has it, and its index in the block along each axis (register plus constant).
struct UnitAt {
  std::vector<Spot> spots;                      // per array of the space
  llvm::SmallVector<std::pair<S, int>, 6> index;  // per axis; register -1: the constant alone
};

class KernelBody {
 public:
  KernelBody(Vec& e, const TileSpace& space);
  const TileSpace& space() const { return space_; }
  Vec& vec() { return e_; }

  /// Position of the first unit of the block.
  UnitAt start() const;
  /// Loops over the block's units along `order` (outermost first), the innermost unrolled about `unroll` times. Axes not
  /// in `order` stay where `from` has them.
  void nest(llvm::ArrayRef<int> order, int unroll, llvm::function_ref<void(const UnitAt&)> visit) {
    nestFrom(start(), order, unroll, visit);
  }
  void nestFrom(const UnitAt& from, llvm::ArrayRef<int> order, int unroll, llvm::function_ref<void(const UnitAt&)> visit);
  /// As nestFrom, with the unrolled units of one iteration handed over together.
  void nestGroups(const UnitAt& from, llvm::ArrayRef<int> order, int unroll,
                  llvm::function_ref<void(llvm::ArrayRef<UnitAt>)> visit);
  /// Index of the unit in the whole array along an axis, in units.
  S globalIndex(const UnitAt& at, int axis);
  /// Bytes the spots of an extra area move by per unit of each axis, for areas that are no arrays of the space.
  UnitAt moved(const UnitAt& at, int axis, int by) const;

 private:
  UnitAt advanced(const UnitAt& at, int axis, S index, int step);
  Vec& e_;
  const TileSpace& space_;
  std::vector<S> block_base_;
  llvm::SmallVector<llo::Scalar, 6> start_;
};

/// Evaluates the nodes of a loop spec register by register at one unit.
class UnitEvaluator {
 public:
  UnitEvaluator(Vec& e, KernelBody& body, const LoopSpec& spec, const SpaceMap& map, const UnitAt& at);
  std::vector<Val> evaluateRegister(int j, bool wide);
  /// Row and column number of every element of register j, as 32-bit integers.
  I rowIndex(int j);
  I colIndex(int j);
  /// The elements of register j that lie inside the array along the axes that `wanted` takes; none where all do.
  std::optional<M> inside(int j, llvm::function_ref<bool(const Axis&)> wanted);

 private:
  Val iota(const ExprNode& n, int j);
  Vec& e_;
  KernelBody& body_;
  const LoopSpec& spec_;
  const SpaceMap& map_;
  const UnitAt& at_;
  std::vector<std::unique_ptr<UnitLoader>> loaders_;  // per input
  bool joint_ = false;  // some node looks at all elements of a register at once
};

/// Whether the code of some op runs as long as the worst element of a register needs, padding left out.
bool looksAtWholeRegisters(const LoopSpec& spec);
/// Parameters of inputs, and of outputs where wanted.
void addParams(llo::Kernel& kernel, const LoopSpec& spec, bool outputs);
/// The first parameter word of an input.
int paramWord(const LoopSpec& spec, int input);
/// How many units an innermost loop should hold for latency to be hidden, by the weight of the expression.
int unrollFor(const LoopSpec& spec, const target::Chip& chip, int registers);
/// Chooses blocks within the VMEM share of a kernel that also needs `extra` bytes; fails where nothing fits.
llvm::Error fitBlocks(TileSpace& space, const target::Chip& chip, int unroll, int64_t extra, const std::string& name);

}  // namespace tpu::lower::emit
