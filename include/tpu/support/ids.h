// Typed 32-bit ids: rows of a module's tables. They serialise as plain numbers and need no pointer fix-up.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>

namespace tpu {

template <class Tag>
struct Id {
  static constexpr uint32_t kNone = 0xffffffffu;
  uint32_t v = kNone;
  constexpr Id() = default;
  constexpr explicit Id(uint32_t value) : v(value) {}
  constexpr bool valid() const { return v != kNone; }
  constexpr explicit operator bool() const { return valid(); }
  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace tpu

template <class Tag>
struct std::hash<tpu::Id<Tag>> {
  size_t operator()(tpu::Id<Tag> id) const { return std::hash<uint32_t>()(id.v); }
};
