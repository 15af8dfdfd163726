// Stamp: one access in one word: its ordinal plus one, its spot (avio/spots.h), and a bit for
// whoever keeps it. 0 = no access.
#pragma once

#include "detect/avio/spots.h"

#include <cstdint>

namespace heddle::avio {

using Stamp = std::uint64_t;

inline constexpr unsigned kOrdinalShift = Spots::kBits + 1;
inline constexpr std::uint64_t kMaxOrdinal = (std::uint64_t{1} << (64 - kOrdinalShift)) - 2;

constexpr Stamp make_stamp(std::uint64_t ordinal, SpotId spot) {
  return (ordinal + 1) << kOrdinalShift | std::uint64_t{spot} << 1;
}
// Of accesses that follow one another and whose spots do, too: what one stamp has more than the one
// before.
inline constexpr Stamp kNextInRow = (Stamp{1} << kOrdinalShift) + 2;

constexpr std::uint64_t ordinal_of(Stamp stamp) {
  return (stamp >> kOrdinalShift) - 1;
}
constexpr SpotId spot_of(Stamp stamp) {
  return static_cast<SpotId>(stamp >> 1 & ((std::uint64_t{1} << Spots::kBits) - 1));
}

// Accesses of one thread to the same bytes, while nobody else accesses these: what counts of them.
struct Series {
  Stamp first{}, last{};
  Stamp write{};  // the last one that writes, 0 if none does

  static Series of(Stamp access, bool writes) { return {access, access, writes ? access : 0}; }
};

}  // namespace heddle::avio
