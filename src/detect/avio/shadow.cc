#include "detect/avio/shadow.h"

#include "base/check.h"
#include "detect/avio/pair_log.h"

#include <algorithm>

namespace heddle::avio {
namespace {

constexpr std::uint8_t kLow = 0x0f;
constexpr std::uint8_t kHigh = 0xf0;
constexpr std::uint8_t kAll = 0xff;

}  // namespace

Shadow::Shadow(Granules granules, TripleSink& sink, PairLog* pairs)
    : granules_(granules),
      cell_shift_(granules.cell_shift()),
      sink_(sink),
      pairs_(pairs),
      cache_(std::size_t{1} << kFewCacheBits) {}

void Shadow::begin(Actor actor) {
  HEDDLE_CHECK(actor == actors_.size());
  actors_.emplace_back();
}

Shadow::Page* Shadow::look_up_page(std::uint64_t number) const {
  const auto at = pages_.find(number);
  if (at == pages_.end()) return nullptr;
  cache_[cache_index(number)] = {number, at->second};
  return at->second;
}

Shadow::Page& Shadow::add_page(std::uint64_t number) {
  Page* const page = static_cast<Page*>(arena_.take(sizeof(Page)));
  pages_[number] = page;
  if (pages_.size() > cache_.size() / 2 && cache_shift_ > 64 - kManyCacheBits) {
    cache_shift_ -= 2;
    cache_.assign(std::size_t{1} << (64 - cache_shift_), CacheEntry());
  }
  cache_[cache_index(number)] = {number, page};
  return *page;
}

template <typename Visit>
void Shadow::for_each_state(const Place& place, Visit visit) {
  Cell& at = cell(place.cell);
  if (form(at.half[0]) != kParts) {
    const bool joined = form(at.half[1]) == kJoined;
    const bool empty = !at.half[0] && !at.half[1];
    if (place.mask == kAll) {
      if (empty) at.half[1] = state_of(kJoined, 0);
      visit(at.half[0], joined || empty ? kAll : kLow);
      if (!joined && !empty) visit(at.half[1], kHigh);
      return;
    }
    if (place.mask == kLow || place.mask == kHigh) {
      if (joined) at.half[1] = copy(at.half[0]);
      visit(at.half[place.mask == kLow ? 0 : 1], place.mask);
      return;
    }
    divide(at);
  }
  for_each_part(at, place.mask, visit);
}

template <typename Visit>
void Shadow::for_each_part(Cell& cell, std::uint8_t mask, Visit visit) {
  Word& word = words_[cell.half[0].site];
  std::size_t count = 0;
  std::uint8_t known = 0;
  while (count < 8 && word.masks[count] != 0) known |= word.masks[count++];
  // What is covered partly is divided, so that every part is inside the mask or outside of it.
  for (std::size_t i = 0, before = count; i < before; ++i) {
    const auto inside = static_cast<std::uint8_t>(word.masks[i] & mask);
    if (inside == 0 || inside == word.masks[i]) continue;
    word.masks[i] = inside ^ word.masks[i];
    word.masks[count] = inside;
    word.states[count] = copy(word.states[i]);
    ++count;
  }
  if (const auto fresh = static_cast<std::uint8_t>(mask & ~known); fresh != 0) {
    word.masks[count] = fresh;
    word.states[count] = State();
    ++count;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if ((word.masks[i] & mask) != 0) visit(word.states[i], word.masks[i]);
  }
}

void Shadow::access(const Touch& touch, const Place& place) {
  for_each_state(place,
                 [&](State& state, std::uint8_t mask) { access_state(touch, state, mask, place); });
}

void Shadow::access_state(const Touch& touch, State& state, std::uint8_t mask, const Place& place) {
  if (form(state) != kShared) {
    // Nobody else is concerned: empty, this thread's own, or that of a thread that ended.
    if (!state || state.actor() == touch.actor() || actors_[state.actor()].ended()) {
      state = touch;
      return;
    }
    const HistoryId id = histories_.add(arena_);
    histories_[id].start(state, id, actors_[state.actor()], arena_);
    state = state_of(kShared, id);
  }
  History& history = histories_[state.site];
  Lanes& mine = actors_[touch.actor()];
  if (pairs_ != nullptr) {
    const Touch before = history.last(touch, state.site, mine);
    if (before) pairs_->note(before.site, touch.site);
  }
  Split split;
  if (history.on(touch, state.site, mine, actors_, arena_, &split)) {
    sink_.on_triple({split.split, split.p, split.r, touch, place.cell << cell_shift_, mask,
                     place.address, place.size});
  }
}

void Shadow::catch_up(const Touch& last, const Touch& write, const Place& place) {
  for_each_state(place, [&](State& state, std::uint8_t) {
    if (form(state) != kShared) {
      state = last;
    } else {
      histories_[state.site].catch_up(last, write, state.site, actors_[last.actor()], arena_);
    }
  });
}

Shadow::State Shadow::copy(const State& state) {
  if (form(state) != kShared) return state;
  const HistoryId id = histories_.add(arena_);
  histories_[id].copy(histories_[state.site], state.site, id, actors_, arena_);
  return state_of(kShared, id);
}

void Shadow::drop(State& state) {
  if (form(state) == kShared && histories_[state.site].drop()) histories_.remove(state.site);
  state = State();
}

// Turns a joined cell or two halves into parts.
void Shadow::divide(Cell& cell) {
  const std::uint32_t index = words_.add(arena_);
  Word& word = words_[index];
  std::size_t count = 0;
  const bool joined = form(cell.half[1]) == kJoined;
  if (cell.half[0]) {
    word.masks[count] = joined ? kAll : kLow;
    word.states[count++] = cell.half[0];
  }
  if (cell.half[1] && !joined) {
    word.masks[count] = kHigh;
    word.states[count++] = cell.half[1];
  }
  cell.half[0] = state_of(kParts, index);
  cell.half[1] = State();
}

void Shadow::clear(Cell& cell, std::uint8_t mask) {
  if (!cell.half[0] && !cell.half[1]) return;
  if (form(cell.half[0]) != kParts) {
    if (form(cell.half[1]) == kJoined) {
      if (mask == kAll) {
        drop(cell.half[0]);
        cell.half[1] = State();
        return;
      }
    } else if (mask == kAll || mask == kLow || mask == kHigh) {
      if ((mask & kLow) != 0) drop(cell.half[0]);
      if ((mask & kHigh) != 0) drop(cell.half[1]);
      return;
    }
    divide(cell);
  }
  const std::uint32_t index = cell.half[0].site;
  Word& word = words_[index];
  std::size_t kept = 0;
  for (std::size_t i = 0; i < 8 && word.masks[i] != 0; ++i) {
    const auto rest = static_cast<std::uint8_t>(word.masks[i] & ~mask);
    if (rest == 0) {
      drop(word.states[i]);
      continue;
    }
    const State state = word.states[i];
    word.masks[kept] = rest;
    word.states[kept] = state;
    ++kept;
  }
  for (std::size_t i = kept; i < 8; ++i) word.masks[i] = 0;
  if (kept == 0) {
    word = Word();
    words_.remove(index);
    cell = Cell();
  }
}

void Shadow::clear_page(Page& page, unsigned from, unsigned to) {
  for (unsigned i = from; i < to; ++i) clear(page.cells[i], kAll);
}

void Shadow::forget(Address address, std::uint64_t size) {
  if (size == 0) return;
  const Address last = address + size - 1 < address ? ~Address{0} : address + size - 1;
  std::uint64_t first_cell = address >> cell_shift_;
  std::uint64_t end_cell = (last >> cell_shift_) + 1;
  const auto edge = [&](std::uint64_t cell, Address from, Address to) {
    if (Page* at = find_page(cell >> kPageBits)) {
      clear(at->cells[cell & (kPageCells - 1)], granules_.mask(from, to));
    }
  };
  if (first_cell + 1 == end_cell) return edge(first_cell, address, last);
  if (granules_.mask(address, ((first_cell + 1) << cell_shift_) - 1) != kAll) {
    edge(first_cell, address, ((first_cell + 1) << cell_shift_) - 1);
    ++first_cell;
  }
  if (granules_.mask((end_cell - 1) << cell_shift_, last) != kAll) {
    edge(end_cell - 1, (end_cell - 1) << cell_shift_, last);
    --end_cell;
  }
  if (first_cell >= end_cell) return;

  // Whole cells from here on; whole pages are given back. A block much larger than what was
  // touched of it costs what was touched.
  const auto forget_in_page = [&](std::uint64_t number, Page& at) {
    const std::uint64_t base = number << kPageBits;
    const std::uint64_t from = std::max(first_cell, base) - base;
    const std::uint64_t to = std::min(end_cell, base + kPageCells) - base;
    clear_page(at, static_cast<unsigned>(from), static_cast<unsigned>(to));
    return from == 0 && to == kPageCells;
  };
  const std::uint64_t first_page = first_cell >> kPageBits;
  const std::uint64_t last_page = (end_cell - 1) >> kPageBits;
  const auto release = [&](std::uint64_t number, Page* page) {
    arena_.give_back(page, sizeof(Page));
    CacheEntry& entry = cache_[cache_index(number)];
    if (entry.number == number) entry = CacheEntry();
  };
  if (last_page - first_page < pages_.size()) {
    for (std::uint64_t number = first_page; number <= last_page; ++number) {
      Page* at = find_page(number);
      if (at == nullptr || !forget_in_page(number, *at)) continue;
      release(number, at);
      pages_.erase(number);
    }
  } else {
    for (auto at = pages_.begin(); at != pages_.end();) {
      auto here = at++;
      if (here->first < first_page || here->first > last_page) continue;
      if (!forget_in_page(here->first, *here->second)) continue;
      release(here->first, here->second);
      pages_.erase(here);
    }
  }
}

void Shadow::forget_everything() {
  pages_.clear();
  cache_.assign(cache_.size(), CacheEntry());
  words_ = Pool<Word>();
  histories_ = Pool<History>();
  arena_ = Arena();
  actors_.clear();
}

Shadow::Memory Shadow::memory() const {
  Memory out{pages_.size(), words_.live(), histories_.live(), arena_.bytes()};
  return out;
}

}  // namespace heddle::avio
