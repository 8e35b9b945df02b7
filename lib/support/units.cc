// Human-readable quantities.
#include "tpu/support/units.h"

#include <cmath>
#include <cstdio>
#include <iterator>

namespace tpu {
namespace {

/// Three significant digits: 1.23, 12.3, 123 (never 1e+03; the caller scales below 1000 or 1024).
std::string threeDigits(double v) {
  char text[32];
  int decimals = std::fabs(v) < 9.995 ? 2 : std::fabs(v) < 99.95 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f", decimals, v);
  return text;
}

template <size_t N>
std::string scaled(double v, double step, const char* const (&units)[N]) {
  size_t u = 0;
  while (u + 1 < N && std::fabs(v) >= step - 0.5) v /= step, ++u;
  std::string number = u == 0 && v == std::floor(v) ? std::to_string(static_cast<long long>(v)) : threeDigits(v);
  return *units[u] ? number + " " + units[u] : number;
}

}  // namespace

std::string formatBytes(uint64_t bytes) {
  return scaled(static_cast<double>(bytes), 1000, {"B", "kB", "MB", "GB", "TB", "PB"});
}
std::string formatBinaryBytes(uint64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}
std::string formatNs(double ns) { return scaled(ns, 1000, {"ns", "us", "ms", "s"}); }
std::string plural(uint64_t n, const char* noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

}  // namespace tpu
