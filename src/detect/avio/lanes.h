// Lanes: the touches of a loop, to be followed one after the other instead of round by round.
//
// For each location the accesses of a turn may come to the Shadow in any order as long as the first
// one comes first. So the rounds of one touch (a lane) can come all at once if no other touch of
// the loop shares a byte with them; or if it does, but gets everywhere later, because it moves in
// the same way some distance behind: a[i + 1] before a[i - 1].
#pragma once

#include "detect/avio/patterns.h"
#include "trace/loop_walk.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::avio {

struct Lane {
  const PatternTouch* touch{};
  LoopWalk::Moving item{};
  Address begin{}, end{};  // all that it touches is between them

  // In so many rounds. False: that is not in any memory.
  bool extend(std::uint64_t rounds);
  bool overlaps(Address from, Address to) const { return from < end && begin < to; }
};

class Lanes {
 public:
  static constexpr std::size_t kMost = 12;

  // False: the touches, which move as `items` says, cannot be followed one after the other.
  bool set(std::span<const PatternTouch> touches, std::span<const LoopWalk::Moving> items,
           std::uint64_t rounds);

  // Whether these touches, whose places the words of each round tell, share a byte with them.
  bool meet(std::span<const PatternTouch> gathered, const std::uint64_t* words,
            std::uint64_t round_words, std::uint64_t rounds) const;

  // In the order in which they have to be followed.
  std::span<const Lane> all() const { return {lanes_.data(), count_}; }

 private:
  bool add(const Lane& lane);
  bool overlap(Address begin, Address end) const;

  std::array<Lane, kMost> lanes_;
  std::size_t count_ = 0;
};

}  // namespace heddle::avio
