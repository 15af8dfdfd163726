// Passages: how a location passes to another thread, where that was worked out before.
//
// When a single access takes a location to a thread that is new to it, or that had it just before,
// all but the ordinals follows from the spots and flags of three stamps: the latest access, the one
// before (avio/history.h) and the access that comes. Programs do the same again and again. What has
// to be looked at besides is a fourth one that was put down and may be the R of a split: the last
// write, whether it is younger than the access before, and then its spot; or the reader's spot.
#pragma once

#include "detect/avio/location.h"
#include "detect/avio/stamp.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle::avio {

struct Passage {
  // What else has to be as it was.
  enum class Asks : std::uint8_t {
    kNothing,
    kNoWrite,  // the last write is not younger than the access before
    kWrite,    // it is, and comes from spot `r`
    kReader,   // the reader comes from spot `r`
  };

  std::uint64_t past{};         // spots and flags of the latest access and of the one before …
  std::uint32_t comes{};        // … and of the access that comes; it has the kHalf of the location
  std::uint8_t last_flags{};    // what the latest access gets …
  std::uint8_t before_flags{};  // … and the one before, besides those they have
  Asks asks{};
  bool puts_down_before{};  // as the write
  std::uint64_t* count{};   // of the split that is completed; null if there is none
  SpotId r{};

  // `before` is the one of the location.
  bool fits(Location place, Stamp before) const {
    switch (asks) {
      case Asks::kNothing:
        return true;
      case Asks::kNoWrite:
        return place.write() <= before;
      case Asks::kWrite:
        return place.write() > before && spot_of(place.write()) == r;
      case Asks::kReader:
        return spot_of(place.reader()) == r;
    }
    return false;
  }
};

class Passages {
 public:
  static std::uint64_t past(Stamp last, Stamp before) {
    return (last & kTraits) | (before & kTraits) << 32;
  }
  static std::uint32_t comes(Stamp now) { return static_cast<std::uint32_t>(now & kTraits); }

  // Where one like this is, if it is there at all.
  Passage& operator()(std::uint64_t past, std::uint32_t comes) {
    return passages_[((past ^ std::uint64_t{comes} << 16) * 0x9e3779b97f4a7c15u) >> (64 - kBits)];
  }
  // How the location passes to the thread of the access that comes; null if that is not known.
  [[gnu::always_inline]] const Passage* find(Location place, Stamp now) {
    const Stamp last = place.last();
    const Stamp before = (last & kHasHistory) != 0 ? place.before() : 0;
    const Passage& known = (*this)(past(last, before), comes(now));
    const bool is_like_it = known.past == past(last, before) && known.comes == comes(now);
    return is_like_it && known.fits(place, before) ? &known : nullptr;
  }
  void forget_everything() { passages_ = {}; }

 private:
  static constexpr Stamp kTraits = (Stamp{1} << kOrdinalShift) - 1;
  static constexpr unsigned kBits = 10;
  std::array<Passage, std::size_t{1} << kBits> passages_{};
};

}  // namespace heddle::avio
