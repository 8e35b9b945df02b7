// Numbers for people: three significant digits and a unit, the same text on every host. Never used in documents.
#pragma once
#include <cstdint>
#include <string>

namespace tpu {

std::string formatBytes(uint64_t bytes);        // decimal: "512 B", "14.2 MB"; traffic
std::string formatBinaryBytes(uint64_t bytes);  // "512 B", "9.31 GiB"; memory
std::string formatNs(double ns);                // "420 ns", "12.4 us", "1.07 ms", "3.20 s"
std::string plural(uint64_t n, const char* noun);  // "1 device", "16 devices"

}  // namespace tpu
