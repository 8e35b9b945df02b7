// Functions in bundles to one program: order, branch targets, labels, locations, tables.
#pragma once
#include "context.h"
#include "list.h"
#include "mir.h"

namespace tpu::schedule {

/// A function whose blocks are in bundles.
struct Scheduled {
  Func func;
  std::vector<Bundles> blocks;
};

isa::Program emitProgram(Context& ctx, std::vector<Scheduled>& functions);

}  // namespace tpu::schedule
