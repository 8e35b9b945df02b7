// The one table of exit statuses, shared by all five tools and printed in every man page.
#pragma once
namespace tpu {
enum class ExitStatus : int {
  kOk = 0,          // done
  kRefused = 1,     // input refused or a check failed
  kUsage = 2,       // wrong usage: unknown flag, unknown chip
  kDiffers = 3,     // results differ from what was expected
  kDoesNotFit = 4,  // needs more memory than the machine has
  kHangs = 5,       // hangs or would hang
  kIo = 6,          // a file cannot be opened, read or written
  kInternal = 70,   // our bug
};
}  // namespace tpu
