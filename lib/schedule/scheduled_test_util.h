// The scheduler against the llo interpreter: modules for tests, and the comparison of what both compute.
#pragma once
#include <string>

#include "tpu/llo/llo.h"
#include "tpu/schedule/schedule.h"

namespace tpu::llo::scheduled {

/// A built-in chip, or "tiny", the smallest of testdata/chips.
target::Chip chipOf(const std::string& name);
/// A module for one chip, with the location "kernel.py:1:1".
Module emptyModule(const target::Chip& chip);
/// An f32 array of [rows, 128] that is an argument or result.
int32_t addArray(Module& m, const std::string& name, Role role, int64_t rows);
/// All bytes of a parameter, in one transfer.
PipelineBlock wholeBlock(const std::string& name, int param, Direction direction, int64_t bytes);
/// Runs a module as written and as scheduled, bit for bit. Empty where both agree, else what went wrong.
std::string difference(const Module& m, const target::Chip& chip, bool modulo,
                       schedule::Stats* stats = nullptr);

}  // namespace tpu::llo::scheduled
