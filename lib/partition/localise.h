// Localisation: the one sweep that turns global types into per-device ones. Shared by its parts: reshards to
// collectives (localise_reshard.cc), windows from neighbours (localise_window.cc), operations
// (localise_ops.cc).
#pragma once
#include <map>

#include "context.h"
#include "neighbour.h"
#include "tpu/hlo/builder.h"

namespace tpu::partition {

class Localiser {
 public:
  Localiser(hlo::Module& m, Context& ctx);
  llvm::Error run();

 private:
  // --- regions and control flow (localise.cc)
  llvm::Error region(hlo::RegionId r);
  llvm::Error op(hlo::OpId id);
  /// Notes what the operation, which read `source` bits, became: the list's ops from `first` on.
  void measure(hlo::OpId id, size_t first, int64_t source);
  int64_t largestOperand(hlo::OpId id) const;
  /// The operation being written needs a value like `v` with `elements` along `dim`.
  void needs(hlo::ValueId v, int64_t dim, int64_t elements);
  /// Dimensions that do not divide are held padded to what all steps of a reshard cut.
  void needsPadding(llvm::ArrayRef<int64_t> sizes, int64_t bits, const Layout& before, const Plan& plan);
  llvm::Error controlOp(hlo::OpId id);
  llvm::Error manualOp(hlo::OpId id);
  void localiseArgs(hlo::RegionId r);
  void localisePorts();

  // --- values
  hlo::ValueId current(hlo::ValueId v) const { return v.v < map_.size() && map_[v.v] ? map_[v.v] : v; }
  void replace(hlo::ValueId from, hlo::ValueId to);
  /// The type before localisation.
  const hlo::Type& globalType(hlo::ValueId v) const { return m_.type(global_[v.v]); }
  Layout layout(hlo::ValueId v) const { return layoutOf(m_, m_.value(v).sharding, globalType(v).rank()); }
  hlo::TypeId localTypeId(hlo::ValueId v);
  void setLocal(hlo::ValueId v) { m_.value(v).type = localTypeId(v); }
  /// Keeps the op: operands mapped, results local, appended.
  void keep(hlo::OpId id);
  void mapOperands(hlo::OpId id);
  /// The op's result stands for `v` from now on; `v` takes over the result's sharding.
  void finish(hlo::OpId id, size_t result, hlo::ValueId v);

  // --- device arithmetic
  hlo::ValueId s32(int64_t value) { return b_.scalarInt(ElementType::kS32, value); }
  /// Row-major index of this device along the axes, s32; computed once at the start of the program.
  hlo::ValueId coordinate(sharding::AxesRef axes);
  /// coordinate * scale + offset
  hlo::ValueId affine(sharding::AxesRef axes, int64_t scale, int64_t offset);
  /// pred[dims]: offset + index along `dim` lies in [from, to).
  hlo::ValueId inRange(llvm::ArrayRef<int64_t> dims, int64_t dim, hlo::ValueId offset, int64_t from,
                       int64_t to);
  /// Replaces padding along `dim` of the original operand `v` by `fill`; `local` itself where it has none.
  hlo::ValueId maskPadding(hlo::ValueId v, hlo::ValueId local, int64_t dim, hlo::ValueId fill);
  /// The elements [start, start + length) of the whole dimension where this device has them, zero elsewhere:
  /// partial results of which exactly one device has each.
  hlo::ValueId ownPart(hlo::ValueId v, int64_t dim, hlo::ValueId start, int64_t length,
                       sharding::AxesRef axes);
  hlo::ValueId padTo(hlo::ValueId v, int64_t dim, int64_t size);
  hlo::ValueId padDim(hlo::ValueId v, int64_t dim, int64_t low, int64_t high, hlo::ValueId fill);

  // --- reshards (localise_reshard.cc)
  llvm::Error reshardOp(hlo::OpId id);
  hlo::ValueId applyMove(hlo::ValueId v, llvm::ArrayRef<int64_t> sizes, const Layout& before,
                         const Move& move, hlo::Opcode reducer);
  hlo::ValueId sliceTo(hlo::ValueId v, llvm::ArrayRef<int64_t> sizes, const Layout& before,
                       const Layout& after);
  hlo::ValueId permute(hlo::ValueId v, sharding::AxesRef axes, std::vector<int64_t> pairs);
  /// How partial results of this op are combined.
  hlo::Opcode reducerFor(hlo::ValueId v) const;
  void noteWhy(hlo::OpId collective, llvm::StringRef code);

  // --- windows (localise_window.cc)
  hlo::ValueId fetch(hlo::ValueId v, int64_t dim, const Window& w, sharding::AxesRef axes, hlo::ValueId fill);
  hlo::ValueId fetchBlocks(hlo::ValueId v, int64_t dim, const Window& w, const Blocks& blocks, sharding::AxesRef axes,
                           hlo::ValueId fill);
  /// A number by position along the axes, s32; -1 where it does not matter.
  hlo::ValueId numberAt(llvm::ArrayRef<int64_t> numbers, sharding::AxesRef axes);
  /// The table's entry at the position along the axes, s32.
  hlo::ValueId entryAt(llvm::ArrayRef<int64_t> table, sharding::AxesRef axes);
  hlo::ValueId spread(hlo::ValueId all, int64_t dim, const Window& w, sharding::AxesRef axes, hlo::ValueId fill,
                      int64_t own);
  hlo::ValueId repeatEnds(hlo::ValueId v, int64_t dim, hlo::ValueId position, int64_t size);
  hlo::ValueId foldEnds(hlo::ValueId v, int64_t dim, hlo::ValueId position, int64_t size, hlo::ValueId init);
  int64_t runningDim(hlo::OpId id) const;
  llvm::Error runningTotal(hlo::OpId id, hlo::ValueId x, int64_t dim, llvm::SmallVector<int64_t, 8> padding);
  llvm::Error sliceOp(hlo::OpId id);
  llvm::Error padOp(hlo::OpId id);
  llvm::Error concatenateOp(hlo::OpId id);
  llvm::Error reverseOp(hlo::OpId id);
  llvm::Error convolutionOp(hlo::OpId id);
  llvm::Error reduceWindowOp(hlo::OpId id);
  llvm::Error selectAndScatterOp(hlo::OpId id);

  // --- operations (localise_ops.cc)
  llvm::Error constantOp(hlo::OpId id);
  llvm::Error iotaOp(hlo::OpId id);
  llvm::Error dotOp(hlo::OpId id);
  llvm::Error reduceOp(hlo::OpId id);
  llvm::Error topKOp(hlo::OpId id);
  llvm::Error gatherOp(hlo::OpId id);
  llvm::Error scatterOp(hlo::OpId id);
  llvm::Error dynamicSliceOp(hlo::OpId id);
  llvm::Error dynamicUpdateSliceOp(hlo::OpId id);
  llvm::Error updateShifted(hlo::OpId id, hlo::ValueId moved);
  llvm::Error userCollective(hlo::OpId id);
  hlo::ValueId maskContracting(hlo::ValueId operand, llvm::ArrayRef<int64_t> dims);
  llvm::Error joinPartials(hlo::OpId id, sharding::AxesRef partial);
  bool isIdentity(hlo::ValueId init, hlo::Opcode reducer) const;
  llvm::Error sortOp(hlo::OpId id);
  llvm::Error randomBitsOp(hlo::OpId id);

  hlo::Module& m_;
  Context& ctx_;
  const hlo::Mesh mesh_;
  hlo::Builder b_;
  hlo::RegionId at_;                        // the region being rebuilt
  std::vector<hlo::OpId>* list_ = nullptr;  // its ops so far
  std::vector<hlo::OpId> prologue_;
  std::vector<hlo::TypeId> global_;
  std::vector<hlo::ValueId> map_;
  std::map<std::vector<int64_t>, hlo::ValueId> coordinates_;
  std::vector<hlo::Why> whys_;    // of the new module
  std::vector<uint32_t> why_of_;  // reshard op -> row of the old list
  int64_t need_ = 0;              // bits that the operation being written needs at once
  bool reported_ = false;         // as a full copy
  hlo::OpId reason_;              // the op whose expansion is written
};

}  // namespace tpu::partition
