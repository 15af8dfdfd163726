// Stamp: one access in one word: its ordinal plus one, its spot (avio/spots.h), and four bits for
// whoever keeps it. 0 = no access. Stamps are less than 2^63, so that they can be compared as
// signed numbers, too, which vector instructions do faster.
#pragma once

#include "detect/avio/spots.h"

#include <cstdint>

namespace heddle::avio {

using Stamp = std::uint64_t;

inline constexpr unsigned kFlagBits = 4;
inline constexpr Stamp kWrote = 1;  // the access writes
// Of the latest access to a location:
inline constexpr Stamp kHasHistory = 2;  // several threads have come to this location
inline constexpr Stamp kHalf = 4;        // the location is half of an 8-byte cell
inline constexpr Stamp kIsReader = 8;    // it is the `reader` of the history
// Of the latest access of the thread that had the location before (avio/history.h):
inline constexpr Stamp kHasReader = 2;
inline constexpr Stamp kHasWrite = 4;
inline constexpr Stamp kHasOthers = 8;
inline constexpr Stamp kFlags = (Stamp{1} << kFlagBits) - 1;

inline constexpr unsigned kOrdinalShift = Spots::kBits + kFlagBits;
inline constexpr std::uint64_t kMaxOrdinal = (std::uint64_t{1} << (63 - kOrdinalShift)) - 2;

constexpr Stamp make_stamp(std::uint64_t ordinal, SpotId spot) {
  return (ordinal + 1) << kOrdinalShift | std::uint64_t{spot} << kFlagBits;
}
// Of accesses that follow one another and whose spots do, too: what one stamp has more than the one
// before.
inline constexpr Stamp kNextInRow = (Stamp{1} << kOrdinalShift) + (Stamp{1} << kFlagBits);

constexpr std::uint64_t ordinal_of(Stamp stamp) {
  return (stamp >> kOrdinalShift) - 1;
}
constexpr SpotId spot_of(Stamp stamp) {
  return static_cast<SpotId>(stamp >> kFlagBits & ((std::uint64_t{1} << Spots::kBits) - 1));
}
constexpr Stamp plain(Stamp stamp) {
  return stamp & ~kFlags;
}

// Accesses of one thread to the same bytes, while nobody else accesses these: what counts of them.
// `last` says whether it writes (kWrote); there are no other flags.
struct Series {
  Stamp first{}, last{};
  Stamp write{};  // the last one that writes, 0 if none does

  static Series of(Stamp access, bool writes) {
    return {access, writes ? access | kWrote : access, writes ? access : 0};
  }
  bool is_one() const { return first == plain(last); }
  // The same so much later.
  Series later(Stamp by) const { return {first + by, last + by, write != 0 ? write + by : 0}; }
};

}  // namespace heddle::avio
