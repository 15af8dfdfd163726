// Loops: many rounds at once, where they stay with their thread, and where they take from another
// what has the same past.
#include "detect/avio/shadow.h"

#include <algorithm>
#include <type_traits>

namespace heddle::avio {

// What one access of a loop does while it stays in a chunk.
struct Shadow::Sweep {
  std::ptrdiff_t distance{};  // of stamps
  std::uint64_t rounds{};
  Stamp mode{};
  Series series;  // of the first round
  Stamp round_length{};
  std::uint64_t stride{};  // of bytes
  std::uint32_t size{};
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

inline constexpr Stamp kObstacle = kFlags + 1;

// Whether the accesses of a row are as simple as most are: every location was accessed in this
// turn, or from the same spot as the first one, which is this thread's. Stamps are less than 2^63,
// so differences have a sign. 0: nothing has to be done but to replace the stamps; kWrote and
// kIsReader: writes, or readers, have to be put down, too; more: they are not.
HEDDLE_VECTORISED Stamp obstacles(const Row row, bool writes) {
  constexpr Stamp kSpot = kFirstStamp - 1 - kFlags;
  const Stamp like = row.last[0];
  const Stamp note = writes ? 0 : kWrote;
  const Stamp later = writes ? kObstacle : 0;
  Stamp found = 0;
  for (std::uint64_t n = 0; n < row.count; ++n) {
    const Stamp last = row.last[n];
    const Stamp now = row.now + n * row.round_length;
    const Stamp elsewhere = ((last ^ like) & kSpot) != 0 ? kObstacle : 0;
    found |= (last - row.turn) >> 59 & elsewhere;
    found |= (last - kFirstStamp) >> 59 & kObstacle;
    found |= (now - last) >> 59 & later;
    found |= ((last ^ row.now) & kHalf) << 2;
    found |= last & kIsReader;
    found |= last & last >> 1 & note;  // kWrote and kHasHistory
  }
  return found;
}

HEDDLE_VECTORISED void put_down_readers(const Row row) {
  Stamp* const before = &Location{row.last}.before();
  Stamp* const readers = &Location{row.last}.reader();
  for (std::uint64_t n = 0; n < row.count; ++n) {
    const Stamp last = row.last[n];
    const bool reads = (last & kIsReader) != 0;
    readers[n] = reads ? plain(last) : readers[n];
    before[n] |= reads ? kHasReader : 0;
  }
}

HEDDLE_VECTORISED void put_down_writes(const Row row) {
  Stamp* const before = &Location{row.last}.before();
  Stamp* const writes = &Location{row.last}.write();
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

// Locations that may pass to another thread in the same way.
struct Passing {
  Location first;
  bool shared;  // they have a history
  Passage::Asks asks;
  std::ptrdiff_t distance;
  std::uint64_t most;
};

// How many of them, from the first one on, have its past, but for ordinals, and what else is asked
// for as the first one has it.
template <typename Distance>
[[gnu::always_inline]] inline std::uint64_t alike_by(const Passing& row, Distance by) {
  using Asks = Passage::Asks;
  constexpr Stamp kTraits = kFirstStamp - 1;
  constexpr std::uint64_t kStep = 16;
  const Stamp* const last = &row.first.last();
  const Stamp* const before = row.shared ? &row.first.before() : last;
  const bool of_write = row.asks == Asks::kNoWrite || row.asks == Asks::kWrite;
  const Stamp* const asked = of_write                    ? &row.first.write()
                             : row.asks == Asks::kReader ? &row.first.reader()
                                                         : before;
  const Stamp spots = row.asks == Asks::kWrite || row.asks == Asks::kReader ? kTraits : 0;
  const Stamp orders = of_write ? 1 : 0;
  const Stamp like = last[0];
  const Stamp like_before = before[0];
  const Stamp like_asked = asked[0];
  const Stamp like_order = (like_before - like_asked) >> 63;
  const auto differs = [&](std::uint64_t n) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(n) * by;
    const Stamp was = before[at];
    const Stamp past = ((last[at] ^ like) | (was ^ like_before)) & kTraits;
    const Stamp order = ((was - asked[at]) >> 63 ^ like_order) & orders;
    return past | (last[at] - kFirstStamp) >> 63 | order | ((asked[at] ^ like_asked) & spots);
  };
  std::uint64_t n = 0;
  for (; n + kStep <= row.most; n += kStep) {
    Stamp found = 0;
    for (std::uint64_t k = 0; k < kStep; ++k) found |= differs(n + k);
    if (found != 0) break;
  }
  while (n < row.most && differs(n) == 0) ++n;
  return n;
}
HEDDLE_VECTORISED std::uint64_t alike(const Passing row) {
  using Next = std::integral_constant<std::ptrdiff_t, 1>;
  return row.distance == 1 ? alike_by(row, Next()) : alike_by(row, row.distance);
}

// The first `count` of them pass, in rounds of one length; `now` is the first access.
template <typename Distance>
[[gnu::always_inline]] inline void pass_by(const Passing& row, std::uint64_t count,
                                           const Passage& how, Stamp now, Stamp round_length,
                                           Distance by) {
  Stamp* const last = &row.first.last();
  Stamp* const before = &row.first.before();
  if (how.puts_down_before) {
    Stamp* const write = &row.first.write();
    for (std::uint64_t n = 0; n < count; ++n) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(n) * by;
      write[at] = plain(before[at]);
    }
  }
  const Stamp last_flags = how.last_flags;
  const Stamp before_flags = how.before_flags;
  for (std::uint64_t n = 0; n < count; ++n, now += round_length) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(n) * by;
    before[at] = plain(last[at]) | before_flags;
    last[at] = now | last_flags;
  }
}
HEDDLE_VECTORISED void pass_on(const Passing row, std::uint64_t count, const Passage& how,
                               Stamp now, Stamp round_length) {
  using Next = std::integral_constant<std::ptrdiff_t, 1>;
  if (row.distance == 1) {
    pass_by(row, count, how, now, round_length, Next());
  } else {
    pass_by(row, count, how, now, round_length, row.distance);
  }
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

// Calls `go(address, location, sweep)` for all rounds of an access that moves, piece by piece: a
// location without a stamp is in a chunk that nobody has touched. False: it is not at simple places
// in all rounds, or `go` was false.
template <typename Go>
bool Shadow::sweep(const PatternTouch& touch, const LoopWalk::Moving& item, std::uint64_t rounds,
                   Stamp first, Stamp round_length, Go go) const {
  const auto [from, step] = item;
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
      const auto way = static_cast<std::ptrdiff_t>(stride);
      const Sweep sweep{.distance = touch.size == 1 ? way : way / 8,
                        .rounds = std::min(all - done, steps_left(address, stride)),
                        .mode = mode_of(touch.size),
                        .series = series,
                        .round_length = sweeps * round_length,
                        .stride = stride,
                        .size = touch.size};
      const Location location =
          chunk == nullptr ? Location() : Location::of(chunk, offset_of(address, touch.size));
      if (!go(address, location, sweep)) return false;
      done += sweep.rounds;
      series = series.later(sweep.rounds * sweep.round_length);
    }
  }
  return true;
}

bool Shadow::stays(const Pattern& loop, std::span<const LoopWalk::Moving> items,
                   std::uint64_t rounds, Stamp first) {
  if (pairs_ != nullptr) return false;
  const Stamp round_length = items.size() << kOrdinalShift;
  const auto stay = [&](Address, Location location, const Sweep& sweep) {
    return location.stamp != nullptr && stays(location, sweep);
  };
  return std::ranges::all_of(loop.touches, [&](const PatternTouch& touch) {
    const LoopWalk::Moving& item = items[touch.first];
    return stays_in_turn(touch, item, rounds, first, round_length) ||
           sweep(touch, item, rounds, first, round_length, stay);
  });
}

bool Shadow::stays(Location location, const Sweep& sweep) const {
  return stays_at_once(location, sweep) || stays_one_by_one(location, sweep) == sweep.rounds;
}

// How many locations stay, from the first one on.
std::uint64_t Shadow::stays_one_by_one(Location location, const Sweep& sweep) const {
  Series series = sweep.series;
  for (std::uint64_t n = 0; n < sweep.rounds; ++n, location = location.next(sweep.distance)) {
    const Stamp last = location.last();
    if (!is_mine(last) || (last & kHalf) != sweep.mode) return n;
    Histories::go_on(location, series);
    series = series.later(sweep.round_length);
  }
  return sweep.rounds;
}

// By vector instructions. False: nothing was done.
bool Shadow::stays_at_once(Location location, const Sweep& sweep) const {
  const Series& series = sweep.series;
  const bool writes = (series.last & kWrote) != 0;
  if (sweep.distance != 1 || !(writes || series.write == 0)) return false;
  if (!is_mine(location.last())) return false;
  const Row row{&location.last(), sweep.rounds, series.last | sweep.mode, sweep.round_length,
                turn_};
  const Stamp obstacle = obstacles(row, writes);
  if (obstacle >= kObstacle) return false;
  if ((obstacle & kIsReader) != 0) put_down_readers(row);
  if ((obstacle & kWrote) != 0) put_down_writes(row);
  replace(row);
  return true;
}

void Shadow::follow(const Lane& lane, std::uint64_t rounds, Stamp first, Stamp round_length) {
  const PatternTouch& touch = *lane.touch;
  const LoopWalk::Moving& item = lane.item;
  if (item.step == 0) {  // one series
    Series series = touch.series(first);
    const Series latest = series.later((rounds - 1) * round_length);
    series.last = latest.last;
    series.write = latest.write;
    return access(series, item.address, touch.size);
  }
  if (stays_in_turn(touch, item, rounds, first, round_length)) return;
  const auto go = [&](Address address, Location location, const Sweep& sweep) {
    follow(address, location, sweep);
    return true;
  };
  if (is_simple(item.address, touch.size) && sweep(touch, item, rounds, first, round_length, go)) {
    return;
  }
  Series series = touch.series(first);
  for (std::uint64_t round = 0; round < rounds; ++round, series = series.later(round_length)) {
    access(series, item.address + round * item.step, touch.size);
  }
}

// Runs of locations with the same past are done at once.
void Shadow::follow(Address address, Location location, Sweep sweep) {
  constexpr std::uint64_t kPiece = 64;
  for (std::uint64_t left = sweep.rounds; left > 0;) {
    std::uint64_t run = 0;
    if (location.stamp != nullptr) {
      sweep.rounds = std::min(left, kPiece);
      if (!is_mine(location.last())) {
        sweep.rounds = left;
        run = is_untouched(location.last()) ? begin_together(address, location, sweep)
                                            : pass_together(location, sweep);
      } else if (stays_at_once(location, sweep)) {
        run = sweep.rounds;
      } else {
        run = stays_one_by_one(location, sweep);
      }
    }
    if (run == 0) {
      access(sweep.series, address, sweep.size);
      run = 1;
    }
    left -= run;
    address += run * sweep.stride;
    if (location.stamp != nullptr) {
      location = location.next(static_cast<std::ptrdiff_t>(run) * sweep.distance);
    }
    sweep.series = sweep.series.later(run * sweep.round_length);
  }
}

// As pass_as_before(), for as many locations from this one on, which is not this thread's, as have
// the same past. Returns their number.
std::uint64_t Shadow::pass_together(Location place, const Sweep& sweep) {
  const Series& series = sweep.series;
  const Stamp last = place.last();
  if (!series.is_one() || last < kFirstStamp || (last & kHalf) != sweep.mode) return 0;
  if (is_nobodys(last)) return 0;
  const Stamp now = series.last | sweep.mode;
  const Passage* const known = passages_.find(place, now);
  if (known == nullptr) return 0;
  const bool shared = (last & kHasHistory) != 0;
  const Passing passing{place, shared, known->asks, sweep.distance, sweep.rounds};
  const std::uint64_t run = alike(passing);
  pass_on(passing, run, *known, now, sweep.round_length);
  if (known->count != nullptr) *known->count += run;
  passed_ += run;
  return run;
}

// Locations that nobody has touched. A cell of which the first halves come is split on the way.
std::uint64_t Shadow::begin_together(Address address, Location place, const Sweep& sweep) {
  if (sweep.size == 1) return 0;
  const bool halves = sweep.mode != 0;
  Stamp now = sweep.series.last | sweep.mode;
  Stamp* last = place.stamp;
  std::uint64_t run = 0;
  for (; run < sweep.rounds; ++run, last += sweep.distance, now += sweep.round_length) {
    if (*last == 0 && (address & 4) == 0) {
      if (halves) Location{last}.second_half().last() = kHalf;
    } else if (!halves || *last != kHalf) {
      break;
    }
    *last = now;
  }
  if (run == 0) return 0;
  const Address end = address + (run - 1) * sweep.stride;
  pages_.use(std::min(address, end), std::max(address, end));
  return run;
}

}  // namespace heddle::avio
