// parallelFor over LLVM's work-sharing executor.
#include "tpu/support/parallel.h"

#include "llvm/Support/Parallel.h"
#include "llvm/Support/Threading.h"

namespace tpu {

void setThreads(unsigned n) { llvm::parallel::strategy = llvm::hardware_concurrency(n); }

unsigned threads() { return llvm::parallel::strategy.compute_thread_count(); }

void parallelFor(size_t n, llvm::function_ref<void(size_t)> fn) {
  if (n < 2 || threads() < 2) {
    for (size_t i = 0; i < n; ++i) fn(i);
    return;
  }
  llvm::parallelFor(0, n, fn);
}

}  // namespace tpu
