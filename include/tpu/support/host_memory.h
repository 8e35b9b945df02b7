// How much memory this process may still take, so that work which needs more is refused in words before it
// starts, not ended by the operating system in the middle.
#pragma once
#include <cstdint>

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace tpu {

/// Bytes that can still be taken without swapping: the least of what the host has available, what the limits of
/// the control groups around this process leave, and what its own limit on address space leaves. INT64_MAX where
/// the system does not say.
int64_t availableHostMemory();

/// Fails with kHostMemory where fewer than `bytes` are available: "WHAT needs at least 4.00 TiB of memory, the
/// host has 21.0 GiB available".
llvm::Error requireHostMemory(int64_t bytes, llvm::StringRef loc, const llvm::Twine& what);

/// Lets what the main thread allocates lie in huge pages of the host, where it has them: a page fault can
/// take 2 us, and a small run of the emulator would spend a tenth of its time in them. Call once, early;
/// changes nothing but speed.
void useHugePages();

/// Sums and products of byte counts that stay at INT64_MAX instead of wrapping. Operands are not negative.
int64_t addBytes(int64_t a, int64_t b);
int64_t mulBytes(int64_t a, int64_t b);

}  // namespace tpu
