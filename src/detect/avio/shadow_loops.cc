// Loops: rounds that stay with their thread, all at once.
#include "detect/avio/shadow.h"

#include <algorithm>

namespace heddle::avio {

// What one access of a loop does while it stays in a chunk.
struct Shadow::Sweep {
  std::ptrdiff_t distance{};  // of stamps
  std::uint64_t rounds{};
  Stamp mode{};
  Series series;  // of the first round
  Stamp round_length{};
};

namespace {

// How many times an access that moves by `step` touches the chunk of `address` first.
std::uint64_t steps_left(Address address, std::uint64_t step) {
  if (step == 0) return ~std::uint64_t{0};
  if (step == 8) return ((~address & kInChunk) >> 3) + 1;
  if (static_cast<std::int64_t>(step) > 0) return (~address & kInChunk) / step + 1;
  return (address & kInChunk) / (0 - step) + 1;
}

// Of locations that lie next to one another, accessed by a loop in rounds of one length.
struct Row {
  Stamp* last;
  std::uint64_t count;
  Stamp now;  // of the first; with the flags of the locations
  Stamp round_length;
  Stamp turn;
};

#if defined(__x86_64__)
#define HEDDLE_VECTORISED [[gnu::target_clones("avx2", "default"), gnu::optimize("O3")]]
#else
#define HEDDLE_VECTORISED
#endif

// Whether the accesses of a row are as simple as most are: every location was accessed in this
// turn, or from the same spot as the first one, which is this thread's. Stamps are less than 2^63,
// so differences have a sign. 0: nothing has to be done but to replace the stamps; kWrote: writes
// have to be put down, too; more: they are not.
HEDDLE_VECTORISED Stamp obstacles(const Row row, bool writes) {
  constexpr Stamp kSpot = kFirstStamp - 1 - kFlags;
  const Stamp like = row.last[0];
  const Stamp note = writes ? 0 : kWrote;
  const Stamp later = writes ? 8 : 0;
  Stamp found = 0;
  for (std::uint64_t n = 0; n < row.count; ++n) {
    const Stamp last = row.last[n];
    const Stamp now = row.now + n * row.round_length;
    const Stamp elsewhere = ((last ^ like) & kSpot) != 0 ? 8 : 0;
    found |= (last - row.turn) >> 60 & elsewhere;
    found |= (last - kFirstStamp) >> 60 & 8;
    found |= (now - last) >> 60 & later;
    found |= (last ^ row.now) & kHalf;
    found |= last & kIsReader;
    found |= last & last >> 1 & note;  // kWrote and kHasHistory
  }
  return found;
}

HEDDLE_VECTORISED void put_down_writes(const Row row) {
  constexpr std::size_t kNext = kArray / sizeof(Stamp);
  Stamp* const before = row.last + kNext;
  Stamp* const writes = before + 2 * kNext;
  for (std::uint64_t n = 0; n < row.count; ++n) {
    const Stamp last = row.last[n];
    const bool written = (last & (kWrote | kHasHistory)) == (kWrote | kHasHistory);
    writes[n] = written ? plain(last) : writes[n];
    before[n] |= written ? kHasWrite : 0;
  }
}

// Some may have been accessed later, by another access of the same loop.
HEDDLE_VECTORISED void replace(const Row row) {
  Stamp now = row.now;
  for (std::uint64_t n = 0; n < row.count; ++n, now += row.round_length) {
    const Stamp last = row.last[n];
    const Stamp then = now | (last & kHasHistory);
    row.last[n] = static_cast<std::int64_t>(last) > static_cast<std::int64_t>(then) ? last : then;
  }
}

// Replaces the stamps if every location was accessed in this turn, not later, and nothing else has
// to be done. False: nothing was done.
HEDDLE_VECTORISED bool replace_in_turn(const Row row, bool writes) {
  constexpr Stamp kSign = Stamp{1} << 63;
  const Stamp mode = row.now & kHalf;
  const Stamp note = writes ? 0 : kWrote;
  const Stamp later = writes ? kSign : 0;
  Stamp signs = 0;
  Stamp flags = 0;
  Stamp now = row.now;
  for (std::uint64_t n = 0; n < row.count; ++n, now += row.round_length) {
    const Stamp last = row.last[n];
    signs |= (last - row.turn) | ((now - last) & later);
    flags |= (last ^ mode) & (kHalf | kIsReader);
    flags |= last & last >> 1 & note;  // kWrote and kHasHistory
  }
  if ((signs & kSign) != 0 || flags != 0) return false;
  now = row.now;
  for (std::uint64_t n = 0; n < row.count; ++n, now += row.round_length) {
    const Stamp last = row.last[n];
    const Stamp then = now | (last & kHasHistory);
    row.last[n] = static_cast<std::int64_t>(last) > static_cast<std::int64_t>(then) ? last : then;
  }
  return true;
}

#undef HEDDLE_VECTORISED

}  // namespace

// The commonest of all: cells one after the other, all of them accessed in this turn before.
bool Shadow::stays_in_turn(const PatternTouch& touch, const LoopWalk::Moving& item,
                           std::uint64_t rounds, Stamp first, Stamp round_length) const {
  const bool writes = touch.write != 0;
  if (item.step != sizeof(Stamp) || touch.size != sizeof(Stamp)) return false;
  if (writes && touch.write != touch.last + 1) return false;
  if (!is_simple(item.address, touch.size)) return false;
  const std::size_t offset = offset_of_cell(item.address);
  std::byte* const chunk = pages_.find(item.address);
  if (chunk == nullptr || offset + rounds * sizeof(Stamp) > kSecond) return false;
  Stamp* const row = Location::of(chunk, offset).stamp;
  return replace_in_turn({row, rounds, first + touch.now, round_length, turn_}, writes);
}

bool Shadow::stays_in_turn(const Pattern& pattern, const RecordShape& loop,
                           const std::uint64_t* words, std::uint64_t rounds, Stamp first) const {
  if (pairs_ != nullptr) return false;
  const Stamp round_length = Stamp{pattern.items} << kOrdinalShift;
  for (const PatternTouch& touch : pattern.touches) {
    const LoopWalk::Moving item = LoopWalk::moving(loop, touch.first, words);
    if (!stays_in_turn(touch, item, rounds, first, round_length)) return false;
  }
  return true;
}

bool Shadow::stays(const Pattern& loop, std::span<const LoopWalk::Moving> items,
                   std::uint64_t rounds, Stamp first) {
  if (pairs_ != nullptr) return false;
  const Stamp round_length = items.size() << kOrdinalShift;
  for (const PatternTouch& touch : loop.touches) {
    if (stays_in_turn(touch, items[touch.first], rounds, first, round_length)) continue;
    const auto [from, step] = items[touch.first];
    // One that lies across its cells in some rounds takes the way of single accesses.
    if ((step & (touch.size - 1)) != 0) return false;
    // Those in first halves and those in second ones are two sweeps.
    const bool alternates = touch.size == 4 && (step & 4) != 0;
    const unsigned sweeps = alternates ? 2 : 1;
    const std::uint64_t stride = step * sweeps;
    for (unsigned n = 0; n < sweeps; ++n) {
      Series series = touch.series(first + n * round_length);
      const std::uint64_t all = (rounds + sweeps - 1 - n) / sweeps;
      for (std::uint64_t done = 0; done < all;) {
        const Address address = from + n * step + done * stride;
        if (!is_simple(address, touch.size)) return false;
        std::byte* const chunk = pages_.find(address);
        if (chunk == nullptr) return false;
        const auto way = static_cast<std::ptrdiff_t>(stride);
        const Sweep sweep{.distance = touch.size == 1 ? way : way / 8,
                          .rounds = std::min(all - done, steps_left(address, stride)),
                          .mode = mode_of(touch.size),
                          .series = series,
                          .round_length = sweeps * round_length};
        if (!stays(Location::of(chunk, offset_of(address, touch.size)), sweep)) return false;
        done += sweep.rounds;
        const Stamp length = sweep.rounds * sweep.round_length;
        series.first += length;
        series.last += length;
        if (series.write != 0) series.write += length;
      }
    }
  }
  return true;
}

bool Shadow::stays(Location location, const Sweep& sweep) const {
  Series series = sweep.series;
  const bool writes = (series.last & kWrote) != 0;
  if (sweep.distance == 1 && (writes || series.write == 0)) {
    const Row row{&location.last(), sweep.rounds, series.last | sweep.mode, sweep.round_length,
                  turn_};
    const Stamp obstacle = is_mine(*row.last) ? obstacles(row, writes) : kHalf;
    if (obstacle <= kWrote) {
      if (obstacle != 0) put_down_writes(row);
      replace(row);
      return true;
    }
  }
  for (std::uint64_t left = sweep.rounds; left > 0;
       --left, location = location.next(sweep.distance)) {
    const Stamp last = location.last();
    if (!is_mine(last) || (last & kHalf) != sweep.mode) return false;
    Histories::go_on(location, series);
    series.last += sweep.round_length;
    if (series.write != 0) series.write += sweep.round_length;
  }
  return true;
}

}  // namespace heddle::avio
