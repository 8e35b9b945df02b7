// Random programs for tests: a mesh, arguments, constraints and operations of all kinds, all from one seed. Values are
// s32 of up to three dimensions, so that programs compare bit for bit; operations on other types convert on both
// sides.
#pragma once
#include <optional>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "tpu/hlo/builder.h"
#include "tpu/hlo/module.h"

namespace tpu::partition {

struct Random {
  uint64_t state;
  uint64_t next();
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
};

/// The program of `seed` with `num_ops` steps.
hlo::Module randomProgram(uint64_t seed, int num_ops);
/// 5 to 40 steps, by seed.
inline int stepsOf(uint64_t seed) { return 5 + static_cast<int>(seed % 36); }

class Generator {
 public:
  using ValueId = hlo::ValueId;
  using Ints = llvm::SmallVector<int64_t, 6>;
  Generator(uint64_t seed, int num_ops);
  hlo::Module make();

 private:
  void makeMesh();
  Ints randomDims();
  hlo::ShardingId randomSharding(const Ints& dims);
  Ints dims(ValueId v) const;
  ValueId any();
  /// A value of these dims made from any other.
  ValueId ofDims(const Ints& want);
  ValueId scalar(int64_t v);
  void keep(ValueId v);
  void step();
  void sumStep(ValueId x, const Ints& d);
  void productStep(ValueId x, const Ints& d);
  void selectStep(ValueId x, const Ints& d);
  void reverseStep(ValueId x, const Ints& d);
  void transposeStep(ValueId x, const Ints& d);
  void reshapeStep(ValueId x, const Ints& d);
  void sliceStep(ValueId x, const Ints& d);
  void padStep(ValueId x, const Ints& d);
  void concatStep(ValueId x, const Ints& d);
  void reduceStep(ValueId x, const Ints& d);
  void dotStep(ValueId x, const Ints& d);
  void broadcastStep(ValueId x, const Ints& d);
  void constraintStep(ValueId x, const Ints& d);
  ValueId runTimeIndex();
  void dynamicSliceStep(ValueId x, const Ints& d);
  void dynamicUpdateStep(ValueId x, const Ints& d);
  ValueId indices(int64_t count, int64_t range);
  void gatherStep(ValueId x, const Ints& d);
  void scatterStep(ValueId x, const Ints& d);
  void sortStep(ValueId x, const Ints& d);
  void topKStep(ValueId x, const Ints& d);
  void windowStep(ValueId x, const Ints& d);
  void branchStep(ValueId x, const Ints& d);
  void convolutionStep(ValueId x, const Ints& d);
  ValueId constrained(const Ints& d);
  /// A body on local shapes over one axis, the other axes free: with a sum over the manual axis or without.
  void manualStep(ValueId x, const Ints& d);
  /// acc = x; three times: acc = acc * c + y, where y comes from around the loop.
  void loopStep(ValueId x, const Ints& d);

  // --- contractions, windows, orders, indices (random_contraction_test.cc)
  void runningStep(ValueId x, const Ints& d);
  void argMaxStep(ValueId x, const Ints& d);
  void selectAndScatterStep(ValueId x, const Ints& d);
  void sortPairsStep(ValueId x, const Ints& d);
  void matrixStep(ValueId x, const Ints& d);
  void fftStep(ValueId x, const Ints& d);
  void randomBitsStep(ValueId x, const Ints& d);
  void batchedGatherStep(ValueId x, const Ints& d);
  void windowGatherStep(ValueId x, const Ints& d);
  void batchedScatterStep(ValueId x, const Ints& d);
  ValueId small(ValueId x, int64_t modulus);
  // --- other types, requests (random_steps_test.cc)
  void predStep(ValueId x, const Ints& d);
  void convertStep(ValueId x, const Ints& d);
  void clampStep(ValueId x, const Ints& d);
  void groupStep(ValueId x, const Ints& d);
  void barrierStep(ValueId x, const Ints& d);
  void reshardStep(ValueId x, const Ints& d);
  // --- regions (random_regions_test.cc)
  void ifStep(ValueId x, const Ints& d);
  void nestedLoopStep(ValueId x, const Ints& d);
  void nestedManualStep(ValueId x, const Ints& d);
  void exchangeStep(ValueId x, const Ints& d);
  // --- collectives in manual bodies (random_collectives_test.cc)
  void collectivesStep(ValueId x, const Ints& d);
  ValueId manualCollective(hlo::Opcode opcode, ValueId v, const hlo::AxisRef& axis, int64_t dim);
  ValueId plusTotal(ValueId v, ValueId x);
  ValueId fixedLoop(ValueId start, ValueId carried, int64_t trips, llvm::function_ref<ValueId(ValueId, ValueId)> part);
  /// A manual region over one axis that is being filled: `v` is its argument of `type`, the part of
  /// dimensions `local`.
  struct ManualBody {
    hlo::OpId op;
    hlo::RegionId outer;
    hlo::AxisRef axis;
    int64_t dim;
    Ints local;
    hlo::TypeId type;
    ValueId v;
  };
  /// Nothing where no axis divides a dimension.
  std::optional<ManualBody> beginManual(ValueId x, const Ints& d);
  void endManual(const ManualBody& body, ValueId result);
  hlo::OpId manualOp(ValueId x, const Ints& d, int64_t dim, const hlo::AxisRef& axis);
  hlo::Groups groupsOf(const hlo::AxisRef& axis) const;
  /// An axis of more than one device and a dimension that it divides; -1 where there is none.
  int64_t manualDim(const Ints& d, hlo::AxisRef& axis);

  Random r_;
  int num_ops_;
  hlo::Module m_;
  hlo::FuncId func_;
  hlo::Builder b_;
  std::vector<ValueId> pool_;
};

}  // namespace tpu::partition
