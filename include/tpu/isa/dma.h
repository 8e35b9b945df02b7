// The SMEM descriptor of a DMA: 20 32-bit words, read when dma.start issues.
//
// Address = base * 512 + offset (bytes); base and offset stand apart so that buffers beyond 4 GiB are reachable: base is a
// row number (unsigned), offset signed bytes. Extents: `run` contiguous bytes (a multiple of 4), then three outer
// counts with byte strides on either side (signed). Total bytes = run * n1 * n2 * n3.
// The destination may be another device (push only). On completion the source device's `src_sem` and the destination
// device's `dst_sem` grow by the total bytes (0xffff: none).
#pragma once
#include <cstdint>

namespace tpu::isa {

enum class Space : uint8_t { kHbm = 0, kVmem = 1, kSmem = 2, kCmem = 3, kHost = 4 };
const char* spaceName(Space space);  // "hbm", "vmem", "smem", "cmem", "host"

enum DmaWord : int {
  kDmaSpaces = 0,     // source space | destination space << 8
  kDmaSems = 1,       // src_sem | dst_sem << 16
  kDmaDevice = 2,     // destination device, 0xffffffff: this one
  kDmaSrcBase = 3, kDmaSrcOffset = 4,
  kDmaDstBase = 5, kDmaDstOffset = 6,
  kDmaRun = 7,
  kDmaCount1 = 8, kDmaSrcStride1 = 9, kDmaDstStride1 = 10,
  kDmaCount2 = 11, kDmaSrcStride2 = 12, kDmaDstStride2 = 13,
  kDmaCount3 = 14, kDmaSrcStride3 = 15, kDmaDstStride3 = 16,
  kDmaWords = 20,     // words 17-19 are zero
};
inline constexpr uint32_t kNoSemaphore = 0xffff;
inline constexpr uint32_t kThisDevice = 0xffffffffu;

/// SMEM words filled by the loader before the first bundle: the device's own identity. The per-device table of a program
/// (Program::device_table) is loaded at kDeviceTableAddress.
inline constexpr int kDeviceIdAddress = 0;       // position in the program's mesh order (0 .. devices-1)
inline constexpr int kDeviceCountAddress = 4;
inline constexpr int kDeviceTableAddress = 64;

}  // namespace tpu::isa
