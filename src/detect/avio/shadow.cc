#include "detect/avio/shadow.h"

#include "base/check.h"

#include <bit>

namespace heddle::avio {

Shadow::Shadow(Granules granules, const Spots& spots, TripleSink& sink, PairLog* pairs)
    : granules_(granules),
      cell_shift_(granules.cell_shift()),
      never_simple_(granules.size == 1 ? 0 : ~Address{0}),
      spots_(spots),
      sink_(sink),
      pairs_(pairs),
      histories_(spots),
      pages_(histories_) {
  HEDDLE_CHECK(is_granule(granules.size));
}

Touch Shadow::touch(Stamp stamp) const {
  const Spot& from = spot(stamp);
  return Touch::make(from.actor, from.kind, ordinal_of(stamp), from.site, from.context);
}

// The bytes of the mask pass to another thread.
[[gnu::always_inline]] inline void Shadow::pass(const Visit& visit, std::uint8_t mask,
                                                Location place) {
  Split split;
  const Stamp p = histories_.pass(place, visit.series, &split);
  if (pairs_ != nullptr && p != 0) note_pair(p, visit.series.first);
  if (split.p != 0) found(visit, mask, split);
}

[[gnu::always_inline]] inline void Shadow::found(const Visit& visit, std::uint8_t mask,
                                                 const Split& split) {
  const SpotId p = spot_of(split.p);
  const SpotId r = spot_of(split.r);
  const SpotId i = spot_of(visit.series.first);
  Known& like = known(p, r, i);
  if (visit.alone && like.p == p && like.r == r && like.i == i) {
    ++*like.count;
    return;
  }
  found_first(visit, mask, split);
}

void Shadow::found_first(const Visit& visit, std::uint8_t mask, const Split& split) {
  const Triple triple{split.split,
                      touch(split.p),
                      touch(split.r),
                      touch(visit.series.first),
                      visit.cell << cell_shift_,
                      mask,
                      visit.address,
                      visit.size,
                      !spot(split.p).wide || !spot(split.r).wide};
  sink_.on_triple(triple);
  std::uint64_t* const count = sink_.count_of(triple);
  if (count == nullptr) return;
  const SpotId p = spot_of(split.p);
  const SpotId r = spot_of(split.r);
  const SpotId i = spot_of(visit.series.first);
  known(p, r, i) = {p, r, i, count};
}

void Shadow::visit_cells(const Series& series, Address address, std::uint32_t size) {
  if (size == 0) return;
  const Address end = address + (size - 1) < address ? ~Address{0} : address + (size - 1);
  const std::uint64_t first_cell = address >> cell_shift_;
  const std::uint64_t last_cell = end >> cell_shift_;
  for (std::uint64_t cell = first_cell; cell <= last_cell; ++cell) {
    const Address from = cell == first_cell ? address : cell << cell_shift_;
    const Address to = cell == last_cell ? end : ((cell + 1) << cell_shift_) - 1;
    visit({series, address, size, cell, false}, granules_.mask(from, to));
  }
}

void Shadow::visit(const Visit& visit, std::uint8_t mask) {
  const Location cell = pages_.find_or_make(visit.cell << kCellBits);
  if ((cell.last() & kHalf) == 0) {
    if (mask == kAllBytes) return visit_one(visit, cell, mask);
    pages_.split(cell);
  }
  if ((mask & kLow) != 0) visit_half(visit, cell, mask & kLow);
  if ((mask & kHigh) != 0) visit_half(visit, cell.second_half(), mask & kHigh);
}

void Shadow::visit_half(const Visit& visit, Location half, std::uint8_t mask) {
  if ((mask == kLow || mask == kHigh) && half.last() != kByBytes) {
    return visit_one(visit, half, mask);
  }
  visit_bytes(visit, pages_.by_bytes(half), (mask & kLow) != 0 ? 0 : 4, mask);
}

void Shadow::slowly(const PatternTouch& touch, const std::uint64_t* words, Stamp first) {
  access(touch.series(first), touch.offset + words[touch.base], touch.size);
}

[[gnu::always_inline]] inline bool Shadow::come(const Series& series, Address address,
                                                std::uint32_t size, Location place) {
  const Stamp last = place.last();
  if (last < kFirstStamp || (last & kHalf) != mode_of(size)) return false;
  if (is_nobodys(last)) {
    place.last() = series.last | (last & kHalf);
    return true;
  }
  const auto bytes = static_cast<std::uint8_t>((1u << size) - 1);
  pass({series, address, size}, static_cast<std::uint8_t>(bytes << address % 8), place);
  return true;
}

void Shadow::access(const Series& series, Address address, std::uint32_t size) {
  if (is_simple(address, size)) {
    if (std::byte* const chunk = pages_.find(address)) {
      const Location place{chunk, offset_of(address, size)};
      const Stamp last = place.last();
      if (is_mine(last) && (last & kHalf) == mode_of(size)) {
        if (pairs_ != nullptr) note_pair(last, series.first);
        return Histories::go_on(place, series);
      }
      if (come(series, address, size, place)) return;
    }
  }
  visit_cells(series, address, size);
}

bool Shadow::meet(const PatternTouch& touch, const std::uint64_t* words, Stamp first) {
  const Address address = touch.offset + words[touch.base];
  const Location place{pages_.find(address), touch.offset_in_chunk(address)};
  const Stamp last = place.last();
  const Series series = touch.series(first);
  if (!is_mine(last)) return come(series, address, touch.size, place);
  if ((last & kHalf) != mode_of(touch.size)) return false;
  Histories::go_on(place, series);
  return true;
}

void Shadow::visit_one(const Visit& visit, Location place, std::uint8_t mask) {
  const Stamp last = place.last();
  if (is_mine(last)) {
    if (pairs_ != nullptr) note_pair(last, visit.series.first);
    Histories::go_on(place, visit.series);
  } else if (is_nobodys(last)) {
    place.last() = visit.series.last | (last & kHalf);
  } else {
    pass(visit, mask, place);
  }
}

// Those with the same past together.
void Shadow::visit_bytes(const Visit& visit, Location bytes, unsigned first_byte,
                         std::uint8_t mask) {
  const auto byte = [&](unsigned n) {
    return Location{bytes.chunk, bytes.offset + n * sizeof(Stamp)};
  };
  unsigned left = mask >> first_byte;
  while (left != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    left &= left - 1;
    const Location place = byte(first);
    const Stamp last = place.last();
    if (is_mine(last)) {
      if (pairs_ != nullptr) note_pair(last, visit.series.first);
      Histories::go_on(place, visit.series);
      continue;
    }
    if (is_nobodys(last)) {
      place.last() = visit.series.last;
      continue;
    }
    unsigned alike = 0;
    for (unsigned n = first + 1; n < 4; ++n) {
      if ((left & 1u << n) != 0 && Histories::alike(place, byte(n))) alike |= 1u << n;
    }
    left &= ~alike;
    pass(visit, static_cast<std::uint8_t>((alike | 1u << first) << first_byte), place);
    for (; alike != 0; alike &= alike - 1) {
      const Location other = byte(static_cast<unsigned>(std::countr_zero(alike)));
      other.last() = place.last();
      histories_.copy(place, other);
    }
  }
}

// What one access of a loop does while it stays in a chunk.
struct Shadow::Sweep {
  std::size_t distance{};  // of places
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

#undef HEDDLE_VECTORISED

}  // namespace

bool Shadow::stays(const Pattern& loop, std::span<const LoopWalk::Moving> items,
                   std::uint64_t rounds, Stamp first) {
  if (pairs_ != nullptr) return false;
  const Stamp round_length = items.size() << kOrdinalShift;
  for (const PatternTouch& touch : loop.touches) {
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
        const Sweep sweep{.distance = touch.size == 1 ? stride * sizeof(Stamp) : stride,
                          .rounds = std::min(all - done, steps_left(address, stride)),
                          .mode = mode_of(touch.size),
                          .series = series,
                          .round_length = sweeps * round_length};
        if (!stays({chunk, offset_of(address, touch.size)}, sweep)) return false;
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
  if (sweep.distance == sizeof(Stamp) && (writes || series.write == 0)) {
    const Row row{&location.last(), sweep.rounds, series.last | sweep.mode, sweep.round_length,
                  turn_};
    const Stamp obstacle = is_mine(*row.last) ? obstacles(row, writes) : kHalf;
    if (obstacle <= kWrote) {
      if (obstacle != 0) put_down_writes(row);
      replace(row);
      return true;
    }
  }
  for (std::uint64_t left = sweep.rounds; left > 0; --left, location.offset += sweep.distance) {
    const Stamp last = location.last();
    if (!is_mine(last) || (last & kHalf) != sweep.mode) return false;
    Histories::go_on(location, series);
    series.last += sweep.round_length;
    if (series.write != 0) series.write += sweep.round_length;
  }
  return true;
}

void Shadow::forget(Address address, std::uint64_t size) {
  if (size == 0) return;
  const Address last = address + size - 1 < address ? ~Address{0} : address + size - 1;
  pages_.forget(granules_.first(address), granules_.last(last));
}

void Shadow::forget_everything() {
  pages_.forget_everything();
  histories_.forget_everything();
  known_ = {};
  turn_ = ~Stamp{0};
}

}  // namespace heddle::avio
