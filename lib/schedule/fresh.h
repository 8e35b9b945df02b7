// Which partial writes begin a new value.
//
// A write of half a register, or under a predicate, keeps the rest of what the register held. Where nothing will
// read that rest, the register need not be kept for it: without knowing so, every register that is written only
// under predicates would be live all around the loops it stands in.
#pragma once
#include "mir.h"

namespace tpu::schedule {

/// Sets Insn::fresh of instructions on virtual registers:
/// - of several writes that fill a register by halves, the first;
/// - a predicated write where all that comes after it, up to the next that writes the whole register, reads it
///   under the same predicate. A write under the opposite predicate completes it.
void findFreshWrites(Func& func);

}  // namespace tpu::schedule
