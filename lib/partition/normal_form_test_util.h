// A partitioned program without what its spelling leaves behind: names, the order of ops, axes by name, reshapes and
// broadcasts said in several steps.
#pragma once
#include <string>

#include "tpu/hlo/module.h"

namespace tpu::partition {

/// One line per op that a result needs, values named by what computes them, sorted. Axes are (stride x size) over all devices.
std::string normalForm(const hlo::Module& m);
/// Only how arguments and results are cut, and the collectives: kind, axes, bits of an element, elements; sorted.
std::string communicationForm(const hlo::Module& m);

/// The same program, not partitioned yet, with its shardings as GSPMD writes them: strings on arguments and results,
/// calls of @Sharding, borders of manual regions; no mesh. False where it has what GSPMD does not say so (priorities, groups,
/// axes named as replicated or unreduced, barriers).
bool respellAsGspmd(hlo::Module& m);

}  // namespace tpu::partition
