// Addresses of a loop body as pointers that are advanced, instead of values computed from the loop's counter:
// each part of an iteration that runs at another time of a software pipeline gets pointers of its own.
#pragma once
#include "machine.h"

namespace tpu::schedule {

/// Rewrites the body of a loop (one block, control instructions left out); appends what must run before the
/// loop to `before`. `window` is the time in cycles that uses of one pointer may lie apart.
void makePointers(Func& func, std::vector<Insn>& body, std::vector<Insn>& before, const Machine& machine,
                  int window);

}  // namespace tpu::schedule
