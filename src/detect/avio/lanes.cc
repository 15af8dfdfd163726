#include "detect/avio/lanes.h"

#include <algorithm>

namespace heddle::avio {
namespace {

// They move alike, in between each other: neither ever gets to a byte of the other.
bool alternate(const Lane& a, const Lane& b) {
  const std::uint64_t step = LoopWalk::magnitude(a.item.step);
  if (a.item.step != b.item.step || step == 0) return false;
  const bool swapped = b.item.address < a.item.address;
  const Lane& low = swapped ? b : a;
  const Lane& high = swapped ? a : b;
  const std::uint64_t ahead = (high.item.address - low.item.address) % step;
  return ahead >= low.touch->size && step - ahead >= high.touch->size;
}

// Wherever both get, `a` is there in an earlier round.
bool leads(const Lane& a, const Lane& b) {
  if (a.item.step != b.item.step || a.item.step == 0) return false;
  const bool upwards = static_cast<std::int64_t>(a.item.step) > 0;
  return upwards ? a.item.address >= b.item.address + b.touch->size
                 : a.item.address + a.touch->size <= b.item.address;
}

}  // namespace

bool Lane::extend(std::uint64_t rounds) {
  const std::uint64_t way = (rounds - 1) * LoopWalk::magnitude(item.step);
  const bool upwards = static_cast<std::int64_t>(item.step) >= 0;
  begin = upwards ? item.address : item.address - way;
  end = (upwards ? item.address + way : item.address) + touch->size;
  return (begin & Pages::kBeyond) == 0 && (end & Pages::kBeyond) == 0 && begin <= end;
}

bool Lanes::set(std::span<const PatternTouch> touches, std::span<const LoopWalk::Moving> items,
                std::uint64_t rounds) {
  count_ = 0;
  if (touches.size() > kMost) return false;
  for (const PatternTouch& touch : touches) {
    Lane lane{&touch, items[touch.first]};
    if (!lane.extend(rounds) || !add(lane)) return false;
  }
  return true;
}

// Behind the last one that leads it, and before all that it leads.
bool Lanes::add(const Lane& lane) {
  std::size_t at = 0;
  std::size_t end = count_;
  for (std::size_t n = 0; n < count_; ++n) {
    const Lane& other = lanes_[n];
    if (!lane.overlaps(other.begin, other.end) || alternate(lane, other)) continue;
    if (leads(other, lane)) {
      at = n + 1;
    } else if (leads(lane, other)) {
      end = std::min(end, n);
    } else {
      return false;
    }
  }
  if (at > end) return false;
  std::copy_backward(lanes_.begin() + at, lanes_.begin() + count_, lanes_.begin() + count_ + 1);
  lanes_[at] = lane;
  ++count_;
  return true;
}

bool Lanes::overlap(Address begin, Address end) const {
  return std::ranges::any_of(all(), [&](const Lane& lane) { return lane.overlaps(begin, end); });
}

bool Lanes::meet(std::span<const PatternTouch> gathered, const std::uint64_t* words,
                 std::uint64_t round_words, std::uint64_t rounds) const {
  for (const PatternTouch& touch : gathered) {
    const std::uint64_t* const first = words + touch.base;
    std::uint64_t least = *first;
    std::uint64_t most = least;
    for (std::uint64_t round = 1; round < rounds; ++round) {
      least = std::min(least, first[round * round_words]);
      most = std::max(most, first[round * round_words]);
    }
    const Address begin = touch.offset + least;
    const Address end = touch.offset + most + touch.size;
    if (begin <= end && !overlap(begin, end)) continue;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const Address at = touch.offset + first[round * round_words];
      if (at + touch.size < at || overlap(at, at + touch.size)) return true;
    }
  }
  return false;
}

}  // namespace heddle::avio
