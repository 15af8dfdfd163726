#include "detect/avio/shadow.h"

#include "base/check.h"

#include <bit>

namespace heddle::avio {

Shadow::Shadow(Granules granules, const Spots& spots, TripleSink& sink, PairLog* pairs)
    : granules_(granules),
      cell_shift_(granules.cell_shift()),
      fast_end_(granules.size == 1 ? Address{1} << Pages::kAddressBits : 0),
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
  Page& page = pages_.find_or_make(visit.cell << kCellBits, mask == kAllBytes);
  const std::size_t cell = visit.cell % kPageCells;
  if (!page.halves()) {
    if (mask == kAllBytes) return visit_one(visit, page, cell, mask);
    pages_.split(page);
  }
  Stamp* const last = page.last() + 2 * cell;
  if (mask == kAllBytes && last[0] == 0 && last[1] == 0) last[1] = kWhole;
  if (last[1] == kWhole) {
    if (mask == kAllBytes) return visit_one(visit, page, 2 * cell, mask);
    pages_.split_cell(page, cell);
  }
  if ((mask & kLow) != 0) visit_half(visit, page, 2 * cell, mask & kLow);
  if ((mask & kHigh) != 0) visit_half(visit, page, 2 * cell + 1, mask & kHigh);
}

void Shadow::visit_half(const Visit& visit, Page& page, std::size_t half, std::uint8_t mask) {
  if ((mask == kLow || mask == kHigh) && is_stamp(page.last()[half])) {
    return visit_one(visit, page, half, mask);
  }
  visit_bytes(visit, pages_.by_bytes(page, half), half % 2 == 0 ? 0 : 4, mask);
}

void Shadow::come(const Series& series, Address address, std::uint32_t size, Page& page,
                  std::size_t location) {
  Stamp& last = page.last()[location];
  if (!is_stamp(last)) return visit_cells(series, address, size);  // kept by bytes
  if (is_nobodys(last)) {
    last = series.last;
    return;
  }
  const std::uint8_t mask = size == 8 ? kAllBytes : address % 8 == 0 ? kLow : kHigh;
  pass({series, address, size}, mask, last, pages_.histories_of(page)[location]);
}

void Shadow::visit_one(const Visit& visit, Page& page, std::size_t location, std::uint8_t mask) {
  Stamp& last = page.last()[location];
  if (is_mine(last)) {
    if (pairs_ != nullptr) note_pair(last, visit.series.first);
    go_on(last, page.histories(), location, visit.series.last, visit.series.write);
  } else if (is_nobodys(last)) {
    last = visit.series.last;
  } else {
    pass(visit, mask, last, pages_.histories_of(page)[location]);
  }
}

// Those with the same past together.
void Shadow::visit_bytes(const Visit& visit, ByteCell& cell, unsigned first_byte,
                         std::uint8_t mask) {
  unsigned left = mask >> first_byte;
  while (left != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    left &= left - 1;
    Stamp& last = cell.last[first];
    if (is_mine(last)) {
      if (pairs_ != nullptr) note_pair(last, visit.series.first);
      go_on(last, cell.histories, first, visit.series.last, visit.series.write);
      continue;
    }
    if (is_nobodys(last)) {
      last = visit.series.last;
      continue;
    }
    History* const histories = pages_.histories_of(cell);
    unsigned alike = 0;
    for (unsigned n = first + 1; n < cell.last.size(); ++n) {
      const bool same = cell.last[n] == last && histories[n] == histories[first];
      if (same && histories[n].others == 0) alike |= left & 1u << n;
    }
    left &= ~alike;
    pass(visit, static_cast<std::uint8_t>((alike | 1u << first) << first_byte), last,
         histories[first]);
    for (; alike != 0; alike &= alike - 1) {
      const auto n = static_cast<unsigned>(std::countr_zero(alike));
      cell.last[n] = last;
      histories[n] = histories_.copy(histories[first]);
    }
  }
}

// The bytes of the mask pass to another thread.
void Shadow::pass(const Visit& visit, std::uint8_t mask, Stamp& last, History& history) {
  const Series& series = visit.series;
  Split split;
  const Stamp p = histories_.pass(history, last & ~kHasHistory, series.first, &split);
  if (pairs_ != nullptr && p != 0) note_pair(p, series.first);
  if (split.p != 0) found(visit, mask, split);
  last = series.last | kHasHistory;
  history.write = std::max(history.write, series.write);
}

void Shadow::found(const Visit& visit, std::uint8_t mask, const Split& split) {
  const SpotId p = spot_of(split.p);
  const SpotId r = spot_of(split.r);
  const SpotId i = spot_of(visit.series.first);
  Known& known = known_[(p * 5u + r * 3u + i) % kKnown];
  if (visit.alone && known.p == p && known.r == r && known.i == i) {
    ++*known.count;
    return;
  }
  const Triple triple{split.split,
                      touch(split.p),
                      touch(split.r),
                      touch(visit.series.first),
                      visit.cell << cell_shift_,
                      mask,
                      visit.address,
                      visit.size};
  sink_.on_triple(triple);
  if (!visit.alone) return;
  if (std::uint64_t* const count = sink_.count_of(triple)) known = {p, r, i, count};
}

// What one access of a loop does while it stays in a page.
struct Shadow::Sweep {
  Address address{};
  std::uint64_t step{};
  std::uint32_t size{};
  std::uint64_t rounds{};
  Stamp last{}, write{};  // of the first round
  Stamp round_length{};
};

bool Shadow::stays(const Pattern& loop, std::span<const LoopWalk::Moving> items,
                   std::uint64_t rounds, Stamp first) {
  if (pairs_ != nullptr) return false;
  const Stamp round_length = items.size() << kOrdinalShift;
  for (const PatternTouch& touch : loop.touches) {
    const auto [from, step] = items[touch.first];
    if ((touch.size != 8 && touch.size != 4) || ((from | step) & (touch.size - 1)) != 0) {
      return false;
    }
    const Series series = touch.series(first);
    for (std::uint64_t done = 0; done < rounds;) {
      const Address address = from + done * step;
      const Page* const page = find(address);
      if (page == nullptr) return false;
      const Sweep sweep{.address = address,
                        .step = step,
                        .size = touch.size,
                        .rounds = std::min(rounds - done, Pages::steps_left(address, step)),
                        .last = series.last + done * round_length,
                        .write = series.write != 0 ? series.write + done * round_length : 0,
                        .round_length = round_length};
      if (!stays(*page, sweep)) return false;
      done += sweep.rounds;
    }
  }
  return true;
}

bool Shadow::stays(const Page& page, const Sweep& sweep) const {
  if (page.halves()) return stays_in_halves(page, sweep);
  if (sweep.size != 8) return false;
  const std::uint64_t distance = sweep.step / sizeof(Stamp);
  std::size_t cell = Pages::cell_of(sweep.address);
  Stamp now = sweep.last;
  Stamp write = sweep.write;
  for (std::uint64_t left = sweep.rounds; left > 0; --left, cell += distance) {
    Stamp& last = page.last()[cell];
    if (!is_mine(last)) return false;
    go_on(last, page.histories(), cell, now, write);
    now += sweep.round_length;
    if (write != 0) write += sweep.round_length;
  }
  return true;
}

bool Shadow::stays_in_halves(const Page& page, const Sweep& sweep) const {
  Address address = sweep.address;
  Stamp now = sweep.last;
  Stamp write = sweep.write;
  for (std::uint64_t left = sweep.rounds; left > 0; --left, address += sweep.step) {
    const std::size_t cell = Pages::cell_of(address);
    const bool whole = page.last()[2 * cell + 1] == kWhole;
    if (whole != (sweep.size == 8)) return false;
    const std::size_t location = 2 * cell + (whole ? 0 : address >> 2 & 1);
    Stamp& last = page.last()[location];
    if (!is_mine(last)) return false;
    go_on(last, page.histories(), location, now, write);
    now += sweep.round_length;
    if (write != 0) write += sweep.round_length;
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
