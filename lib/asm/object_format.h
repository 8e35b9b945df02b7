// Layout of object files, shared by writer and reader.
//
//   8 bytes magic, u32 version, u64 size of what follows the header, u64 XXH3 of it; then sections: u32 tag,
//   u64 size, content.
// All integers little-endian; varints as in bytes.h. Every section stands once, in the order of SectionTag.
// Code: a count, then per bundle a u32 mask of filled slots (bit = slot number: kinds in the order of
// isa::Slot, as many each as the chip has) and one 64-bit instruction word per set bit.
#pragma once
#include <array>
#include <cstdint>

#include "tpu/isa/isa.h"
#include "tpu/target/chip.h"

namespace tpu::assembly {

inline constexpr char kObjectMagic[8] = {'\x7f', 'T', 'P', 'U', 'O', 'B', 'J', '\n'};
inline constexpr uint32_t kObjectVersion = 1;
inline constexpr size_t kObjectHeaderBytes = sizeof kObjectMagic + 4 + 8 + 8;

enum class SectionTag : uint32_t { kMeta = 1, kCode, kLines, kSymbols, kMemory, kSignature, kDevices };

/// First slot number of each kind; the last entry is the number of slots.
using SlotBases = std::array<int, isa::kNumSlots + 1>;
SlotBases slotBases(const target::Chip& chip);

}  // namespace tpu::assembly
