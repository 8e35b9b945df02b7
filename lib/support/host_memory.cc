// Linux: /proc/meminfo, the memory controller of control groups (version 2 and 1), and RLIMIT_AS.
#include "tpu/support/host_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "tpu/support/diagnostics.h"
#include "tpu/support/units.h"

namespace tpu {
namespace {

std::optional<int64_t> numberIn(const std::string& path) {
  std::ifstream in(path);
  int64_t value;
  if (in >> value) return value;
  return std::nullopt;  // absent, or "max"
}

// The number behind a key of a file of "key value" lines.
std::optional<int64_t> numberOf(const std::string& path, const std::string& key) {
  std::ifstream in(path);
  for (std::string word; in >> word;) {
    int64_t value;
    if (word == key && in >> value) return value;
    in.ignore(1 << 20, '\n');
  }
  return std::nullopt;
}

// What a group's limit leaves; pages of files that nobody uses are given back when they are asked for.
std::optional<int64_t> leftInGroup(const std::string& dir, const char* limit, const char* usage, const char* idle) {
  const auto most = numberIn(dir + limit), used = numberIn(dir + usage);
  if (!most || !used) return std::nullopt;
  return *most - *used + numberOf(dir + "/memory.stat", idle).value_or(0);
}

// The groups around the process, from the innermost to the root.
int64_t leftInGroups() {
  int64_t left = INT64_MAX;
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty(), v1 = ("," + controllers + ",").find(",memory,") != std::string::npos;
    if (!v1 && !v2) continue;
    std::string path = line.substr(second + 1);
    while (true) {
      const std::string dir = (v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") + path;
      const auto here = v2 ? leftInGroup(dir, "/memory.max", "/memory.current", "inactive_file")
                           : leftInGroup(dir, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file");
      if (here) left = std::min(left, *here);
      const size_t slash = path.rfind('/');
      if (slash == std::string::npos || path.empty()) break;
      path.resize(slash);
    }
  }
  return left;
}

int64_t leftInAddressSpace() {
  rlimit limit;
  const auto pages = numberIn("/proc/self/statm");
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || !pages) return INT64_MAX;
  return static_cast<int64_t>(limit.rlim_cur) - *pages * sysconf(_SC_PAGESIZE);
}

}  // namespace

int64_t availableHostMemory() {
  int64_t left = std::min(leftInGroups(), leftInAddressSpace());
  if (const auto kib = numberOf("/proc/meminfo", "MemAvailable:")) left = std::min(left, *kib * 1024);
  return std::max<int64_t>(left, 0);
}

llvm::Error requireHostMemory(int64_t bytes, llvm::StringRef loc, const llvm::Twine& what) {
  const int64_t available = availableHostMemory();
  if (bytes <= available) return llvm::Error::success();
  const std::string amount = bytes == INT64_MAX ? "more than 8 EiB" : "at least " + formatBinaryBytes(static_cast<uint64_t>(bytes));
  return fail(Code::kHostMemory, loc,
              what + " needs " + amount + " of memory, the host has " +
                  formatBinaryBytes(static_cast<uint64_t>(available)) + " available");
}

// glibc's heap grows by this much at its next growth, all of which is then marked; what is not touched costs
// nothing. (An allocator that is not glibc's, as under a sanitizer, ignores the settings, and the heap's end
// does not move.)
void useHugePages() {
  constexpr int kGrowth = 256 << 20, kOwnMapping = 32 << 20;
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return;
  mallopt(M_TOP_PAD, kGrowth);
  mallopt(M_TRIM_THRESHOLD, 2 * kGrowth);
  mallopt(M_MMAP_THRESHOLD, kOwnMapping);
  auto* before = static_cast<char*>(sbrk(0));
  void* volatile grow = std::malloc(1 << 20);
  std::free(grow);
  auto* after = static_cast<char*>(sbrk(0));
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  char* first = before + (page - reinterpret_cast<uintptr_t>(before) % page) % page;
  if (after > first) madvise(first, static_cast<size_t>(after - first), MADV_HUGEPAGE);  // a wish
}

int64_t addBytes(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t mulBytes(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

}  // namespace tpu
