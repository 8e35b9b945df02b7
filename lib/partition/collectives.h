// The passes on collectives after localisation, and what they share. Each is legal on its own: every device still meets
// the same collectives in the same order, values stay what they are (floating-point sums may associate differently),
// and nothing more goes over the wires.
#pragma once
#include <string>
#include <vector>

#include "context.h"
#include "tpu/target/chip.h"

namespace tpu::partition {

/// a + all_reduce ... : add(all_reduce a, all_reduce b) becomes all_reduce(add(a, b)), likewise for other reducers with
/// their own operation, for differences of sums, and for reduce_scatter.
void reassociateCollectives(hlo::Module& m);
/// all_reduce whose every device keeps only its own part becomes reduce_scatter; a part that is the same on all is cut
/// before it is reduced.
void formReduceScatters(hlo::Module& m);
/// Collectives of values that a loop does not change go in front of it, where the loop is known to run. What they add
/// to the memory held across loops is bounded by `budget` bytes per device.
void hoistCollectives(hlo::Module& m, int64_t budget);
/// all_gathers stand in front of their first use; of what a loop reads slice by slice, each slice is gathered inside.
void sinkGathers(hlo::Module& m);
/// Neighbouring all_reduces, or all_gathers, over the same devices become one of several operands as long as the time
/// to reach all devices, and not their bytes, is what they cost.
void combineCollectives(hlo::Module& m, const target::Target& target);

/// Values that stand for others from now on.
class Replacements {
 public:
  explicit Replacements(hlo::Module& m) : m_(m) {}
  void replace(hlo::ValueId from, hlo::ValueId to);
  hlo::ValueId of(hlo::ValueId v) const;
  /// Rewrites the operands of all ops of the entry.
  void apply();

 private:
  hlo::Module& m_;
  std::vector<hlo::ValueId> map_;
};

/// Kind, devices and every other attribute as bytes: equal for collectives that do the same to their operands.
std::string collectiveKey(const hlo::Module& m, hlo::OpId op);
/// Ops that are gone lose their reasons.
void dropDead(hlo::Module& m);

}  // namespace tpu::partition
