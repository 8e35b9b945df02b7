// Results take the storage of the arguments that the caller gives away, wherever the driver is done with an argument
// before it writes the result.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "tpu/llo/llo.h"

namespace tpu::lower {

/// Sets Buffer::alias of result buffers. `donated` says of each argument whether it may be given up to any result of its
/// size; one whose signature names a result is given up to that one only. Whole copies from an argument into the result that
/// takes its place go away.
void shareDonated(llo::Module& module, llvm::ArrayRef<bool> donated);

}  // namespace tpu::lower
