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
  const Series& series = visit.series;
  const Stamp last = place.last();
  const Stamp now = series.last | (last & kHalf);
  if (series.is_one() && pass_as_before(place, now, visit.reach == Reach::kOne)) return;
  ++passed_;
  const Stamp before = (last & kHasHistory) != 0 ? place.before() : 0;
  Split split;
  const Stamp p = histories_.pass(place, series, &split);
  if (split.p != 0) found(visit, mask, split);
  if (pairs_ != nullptr) {
    if (p != 0) note_pair(p, series.first);
  } else if (series.is_one() && p == plain(before)) {
    remember(last, before, now, split);
  }
}

[[gnu::always_inline]] inline bool Shadow::pass_as_before(Location place, Stamp now, bool alone) {
  const Passage* const known = passages_.find(place, now);
  if (known == nullptr) return false;
  if (known->count != nullptr) {
    if (!alone) return false;
    ++*known->count;
  }
  if (known->puts_down_before) place.write() = plain(place.before());
  ++passed_;
  place.before() = plain(place.last()) | known->before_flags;
  place.last() = now | known->last_flags;
  return true;
}

// What Histories::pass() has done, in terms of flags.
void Shadow::remember(Stamp last, Stamp before, Stamp now, const Split& split) {
  using Asks = Passage::Asks;
  const bool reads = is_read(spot(now).kind);
  const bool wrote = (last & kWrote) != 0;
  Passage made{.past = Passages::past(last, before), .comes = Passages::comes(now)};
  if ((before & kWrote) != 0 && !reads) {
    if ((last & kIsReader) == 0 && (before & kHasReader) != 0) made.asks = Asks::kReader;
  } else if (!wrote && (before & kHasWrite) != 0) {
    made.asks = split.p != 0 ? Asks::kWrite : Asks::kNoWrite;
  }
  made.r = spot_of(split.r);
  Stamp flags = (last & kWrote) | (before & kHasOthers);
  if (!wrote && (now & kWrote) == 0 && (before & (kWrote | kHasWrite)) != 0) {
    made.puts_down_before = (before & kWrote) != 0 && made.asks != Asks::kWrite;
    flags |= kHasWrite;
  }
  made.before_flags = static_cast<std::uint8_t>(flags);
  made.last_flags = kHasHistory | (wrote && reads ? kIsReader : 0);
  if (split.p != 0) {
    const SpotId p = spot_of(split.p);
    const SpotId r = spot_of(split.r);
    const Known& like = known(p, r, spot_of(now));
    if (like.p != p || like.r != r || like.i != spot_of(now)) return;
    made.count = like.count;
  }
  passages_(made.past, made.comes) = made;
}

[[gnu::always_inline]] inline void Shadow::found(const Visit& visit, std::uint8_t mask,
                                                 const Split& split) {
  if (visit.reach != Reach::kOne && was_completed(visit, split)) return;
  const SpotId p = spot_of(split.p);
  const SpotId r = spot_of(split.r);
  const SpotId i = spot_of(visit.series.first);
  Known& like = known(p, r, i);
  const bool counts = visit.reach == Reach::kOne || !completed_.sink_knows;
  if (counts && like.p == p && like.r == r && like.i == i) {
    ++*like.count;
  } else if (!found_first(visit, mask, split)) {
    return;
  }
  if (visit.reach == Reach::kCells && counts) completed_.splits[completed_.count++] = split;
}

// What an access of a few cells completes is remembered here, once it is counted; of any other the
// sink has to be told everything.
bool Shadow::was_completed(const Visit& visit, const Split& split) {
  if (completed_.i != visit.series.first) {
    completed_.i = visit.series.first;
    completed_.count = 0;
    completed_.sink_knows = false;
  }
  for (std::size_t n = 0; n < completed_.count; ++n) {
    const Split& other = completed_.splits[n];
    if (other.p == split.p && other.r == split.r) return true;
  }
  if (visit.reach == Reach::kMany) completed_.sink_knows = true;
  return false;
}

// Whether it was counted once and for all.
bool Shadow::found_first(const Visit& visit, std::uint8_t mask, const Split& split) {
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
  if (count == nullptr) return false;
  const SpotId p = spot_of(split.p);
  const SpotId r = spot_of(split.r);
  const SpotId i = spot_of(visit.series.first);
  known(p, r, i) = {p, r, i, count};
  return true;
}

void Shadow::visit_cells(const Series& series, Bytes bytes, Bytes whole) {
  if (bytes.size == 0) return;
  const Address address = bytes.address;
  const Address end = address + (bytes.size - 1) < address ? ~Address{0} : address + bytes.size - 1;
  const std::uint64_t first_cell = address >> cell_shift_;
  const std::uint64_t last_cell = end >> cell_shift_;
  for (std::uint64_t cell = first_cell; cell <= last_cell; ++cell) {
    const Address from = cell == first_cell ? address : cell << cell_shift_;
    const Address to = cell == last_cell ? end : ((cell + 1) << cell_shift_) - 1;
    constexpr std::uint64_t kFew = 4;
    if (last_cell - cell > kFew && from == cell << cell_shift_) {
      if (const std::uint64_t begun = begin_cells(series, cell, last_cell - cell); begun != 0) {
        cell += begun - 1;
        continue;
      }
    }
    visit({series, whole.address, whole.size, cell, Reach::kMany}, granules_.mask(from, to));
  }
}

std::uint64_t Shadow::begin_cells(const Series& series, std::uint64_t first_cell,
                                  std::uint64_t most) {
  const Address address = first_cell << kCellBits;
  if ((address & (Pages::kBeyond | never_simple_)) != 0) return 0;
  std::byte* const chunk = pages_.find(address);
  if (chunk == nullptr) return 0;
  const Location first = Location::of(chunk, offset_of_cell(address));
  const std::uint64_t in_chunk = (kSecond - (address & kInChunk)) >> kCellBits;
  most = std::min(most, in_chunk);
  std::uint64_t count = 0;
  for (; count < most && first.stamp[count] == 0; ++count) first.stamp[count] = series.last;
  if (count != 0) pages_.use(address, address + (count << kCellBits) - 1);
  return count;
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
  const Address address = touch.offset + words[touch.base];
  if (touch.size_word != 0) {
    const auto size = static_cast<std::uint32_t>(words[touch.size_word] - 1);
    return access(touch.series(first), address, size);
  }
  if (touch.size == touch.whole) return access(touch.series(first), address, touch.size);
  visit_cells(touch.series(first), {address, touch.size}, {address - touch.part, touch.whole});
}

[[gnu::always_inline]] inline bool Shadow::come(const Visit& visit, Address address,
                                                std::uint32_t size, Location place) {
  const Stamp last = place.last();
  if (last < kFirstStamp || (last & kHalf) != mode_of(size)) return false;
  if (is_nobodys(last)) {
    place.last() = visit.series.last | (last & kHalf);
    return true;
  }
  const auto bytes = static_cast<std::uint8_t>((1u << size) - 1);
  pass(visit, static_cast<std::uint8_t>(bytes << address % 8), place);
  return true;
}

void Shadow::access(const Series& series, Address address, std::uint32_t size) {
  if (is_simple(address, size)) {
    if (std::byte* const chunk = pages_.find(address)) {
      const Location place = Location::of(chunk, offset_of(address, size));
      const Stamp last = place.last();
      if (is_mine(last) && (last & kHalf) == mode_of(size)) {
        if (pairs_ != nullptr) note_pair(last, series.first);
        return Histories::go_on(place, series);
      }
      const Visit visit{series, address, size, address >> kCellBits, Reach::kOne};
      if (come(visit, address, size, place)) return;
    }
  }
  const std::uint32_t done = stay_as_bytes(series, address, size);
  if (done == size) return;
  visit_cells(series, {address + done, size - done}, {address, size});
}

// A byte that is not kept as one has no stamp.
std::uint32_t Shadow::stay_as_bytes(const Series& series, Address address,
                                    std::uint32_t size) const {
  if (pairs_ != nullptr || (address & (Pages::kBeyond | never_simple_)) != 0) return 0;
  std::byte* const chunk = pages_.find(address);
  if (chunk == nullptr) return 0;
  const Location first = Location::of(chunk, offset_of_byte(address));
  const auto in_chunk = static_cast<std::uint32_t>(kSecond - (address & kInChunk));
  const std::uint32_t most = std::min(size, in_chunk);
  for (std::uint32_t n = 0; n < most; ++n) {
    const Location byte = first.next(n);
    const Stamp last = byte.last();
    if (last - turn_ <= series.last - turn_ && (last & kHasHistory) == 0) {
      byte.last() = series.last;
    } else if (is_mine(last)) {
      Histories::go_on(byte, series);
    } else {
      return n;
    }
  }
  return most;
}

bool Shadow::meet(const PatternTouch& touch, const std::uint64_t* words, Stamp first,
                  Location place) {
  const Stamp last = place.last();
  if (last < kFirstStamp) return false;
  if ((last & kHalf) != mode_of(touch.size)) {
    return touch.size == 8 && stay(place, touch.series(first));
  }
  if (is_mine(last)) {
    Histories::go_on(place, touch.series(first));
    return true;
  }
  const bool alone = touch.size == touch.whole;
  const bool owned = (last & kHasHistory) != 0 || !histories_.ended(spot(last).actor);
  if (owned && touch.first == touch.last && pass_as_before(place, first + touch.now, alone)) {
    return true;
  }
  return come(touch, words, first, place);
}

// Apart from meet(), which is short without it.
[[gnu::noinline]] bool Shadow::come(const PatternTouch& touch, const std::uint64_t* words,
                                    Stamp first, Location place) {
  const Address address = touch.offset + words[touch.base];
  const Reach reach = touch.size == touch.whole ? Reach::kOne : Reach::kCells;
  return come({touch.series(first), address - touch.part, touch.whole, address >> kCellBits, reach},
              address, touch.size, place);
}

[[gnu::noinline]] bool Shadow::stay(Location first_half, const Series& series) const {
  const Location second_half = first_half.second_half();
  if (!is_mine(first_half.last()) || !is_mine(second_half.last())) return false;
  Histories::go_on(first_half, series);
  Histories::go_on(second_half, series);
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
  unsigned left = mask >> first_byte;
  while (left != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    left &= left - 1;
    const Location place = bytes.next(first);
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
      if ((left & 1u << n) != 0 && Histories::alike(place, bytes.next(n))) alike |= 1u << n;
    }
    left &= ~alike;
    pass(visit, static_cast<std::uint8_t>((alike | 1u << first) << first_byte), place);
    for (; alike != 0; alike &= alike - 1) {
      const Location other = bytes.next(static_cast<unsigned>(std::countr_zero(alike)));
      other.last() = place.last();
      histories_.copy(place, other);
    }
  }
}

void Shadow::forget(Address address, std::uint64_t size) {
  if (size == 0) return;
  const Address last = address + size - 1 < address ? ~Address{0} : address + size - 1;
  pages_.forget(granules_.first(address), granules_.last(last));
}

void Shadow::forget_everything() {
  pages_.forget_everything();
  histories_.forget_everything();
  passages_.forget_everything();
  known_ = {};
  completed_ = {};
  turn_ = ~Stamp{0};
}

}  // namespace heddle::avio
