// Shadow: the memory of AVIO, by address.
//
// Exact bytes, at the price of words. One Cell of 32 bytes stands for 8 bytes of the program and
// has three forms:
//
//   joined   one State for all eight bytes: they have always been accessed together
//   halves   one State for bytes 0–3 and one for bytes 4–7
//   parts    up to eight States with byte masks in a Word of their own, for all other mixtures
//
// The bytes of a State have the same history, so one State decides for all of them what byte-wise
// shadows would decide eight times. An access that covers a State partly divides it first (both
// parts inherit the history); an access by the only thread concerned that covers several States
// unites them again.
//
// A State is empty, exclusive (one thread only: its last access, nothing else can matter yet), or
// shared (a History). It becomes shared when a second thread arrives while the first still lives;
// accesses before that arrival can only serve as the first thread's P.
//
// Coarser granules (2, 4, 8) round the mask of an access up to whole granules; with 64-byte lines a
// cell stands for a line. Memory that is allocated or freed starts afresh: every granule that
// overlaps the block is forgotten.
//
// Cells live in pages of 512, found by a hash table behind a direct-mapped cache. Who knows which
// accesses come next asks for their cells early (locate, then prefetch), so that cell, history and
// the thread's last access have arrived when they are needed.
#pragma once

#include "detect/avio/arena.h"
#include "detect/avio/history.h"
#include "detect/avio/touch.h"

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

namespace heddle::avio {

// Takes the triples as they are found.
class TripleSink {
 public:
  TripleSink() = default;
  TripleSink(const TripleSink&) = delete;
  TripleSink& operator=(const TripleSink&) = delete;
  virtual ~TripleSink() = default;
  virtual void on_triple(const Triple& triple) = 0;
};

// The pairs of sites (P, I) that some thread executed one after the other on the same bytes.
class PairLog {
 public:
  void note(SiteId p, SiteId i) {
    if (i >= last_.size()) last_.resize(i + std::size_t{1});
    if (last_[i] == p) return;  // mostly the same as before; site 0 stands for no site
    last_[i] = p;
    if (p != 0) pairs_.insert({p, i});
  }
  const absl::flat_hash_set<std::pair<SiteId, SiteId>>& all() const { return pairs_; }

 private:
  std::vector<SiteId> last_;  // by I
  absl::flat_hash_set<std::pair<SiteId, SiteId>> pairs_;
};

constexpr bool is_granule(unsigned granule) {
  return granule == 1 || granule == 2 || granule == 4 || granule == 8 || granule == 64;
}

class Shadow {
 public:
  struct Cell;

  // `pairs`: where pairs are put down, for who learns; may be null.
  Shadow(unsigned granule, TripleSink& sink, PairLog* pairs = nullptr);

  // The cell of the access's first byte. It stays where it is while moves() does.
  Cell* locate(Address address) {
    const std::uint64_t number = address >> cell_shift_;
    return &page(number >> kPageBits).cells[number & (kPageCells - 1)];
  }
  std::uint64_t moves() const { return moves_; }

  // `cell` is locate(address), `lanes` those of the touch's actor.
  void access(Touch touch, Lanes& lanes, Cell& cell, Address address, std::uint32_t size) {
    const auto offset = static_cast<std::uint32_t>(address & 7);
    std::uint8_t bytes = 0;
    if (granule_ == 1 && size - 1 < 8 - offset) {
      bytes = static_cast<std::uint8_t>((0xffu >> (8 - size)) << offset);
    } else {
      if (size == 0) return;
      const Address last = address + (size - 1) < address ? ~Address{0} : address + (size - 1);
      if (last >> cell_shift_ != address >> cell_shift_) {
        return touch_cells(touch, lanes, address, last);
      }
      bytes = mask(address, last);
    }
    touch_cell(touch, lanes, cell, address >> cell_shift_, bytes);
  }

  // For an access to come whose cell has arrived: what it leads to.
  void prefetch(const Cell& cell, Address address, const Lanes& lanes) const {
    const bool high = (address & 4) != 0 && form(cell.half[1]) != kJoined;
    const State& state = cell.half[high ? 1 : 0];
    if (form(state) == kShared) {
      __builtin_prefetch(&histories_[state.site], 1);
      lanes.prefetch(state.site);
    } else if (form(cell.half[0]) == kParts) {
      __builtin_prefetch(&words_[cell.half[0].site], 1);
    }
  }

  void forget(Address address, std::uint64_t size);
  void forget_everything();

  void begin(Actor actor);  // actors begin in order: 0, 1, 2, …
  void end(Actor actor) { actors_[actor].end(arena_); }
  Lanes& lanes(Actor actor) { return actors_[actor]; }  // until another begins

  struct Memory {
    std::size_t pages{}, words{}, histories{}, bytes{};
  };
  Memory memory() const;

  // form: in the bits of a Touch that its actor and kind leave free.
  enum Form : std::uint64_t { kExclusive = 0, kShared = 1, kJoined = 2, kParts = 3 };
  using State = Touch;  // kShared, kParts: `site` is an index of histories_ or words_

  static Form form(const State& state) { return static_cast<Form>((state.bits >> 42) & 3); }
  static State state_of(Form form, std::uint32_t index) {
    return {std::uint64_t{form} << 42, index, 0};
  }

  // joined: half[1] is kJoined. parts: half[0] is kParts. Otherwise two halves.
  struct Cell {
    std::array<State, 2> half;
  };
  static_assert(sizeof(Cell) == 32);

 private:
  struct alignas(256) Word {
    std::array<std::uint8_t, 8> masks{};  // disjoint; 0 ends the list
    std::array<State, 8> states;
  };

  static constexpr unsigned kPageBits = 9;
  static constexpr std::uint64_t kPageCells = std::uint64_t{1} << kPageBits;
  struct Page {
    std::array<Cell, kPageCells> cells;
  };

  // Objects by index, in chunks of the arena that never move. All zero is a new object.
  template <typename T>
  class Pool {
   public:
    std::uint32_t add(Arena& arena) {
      if (!free_.empty()) {
        const std::uint32_t index = free_.back();
        free_.pop_back();
        return index;
      }
      if (size_ % kChunk == 0) chunks_.push_back(static_cast<T*>(arena.take(sizeof(T) * kChunk)));
      return size_++;
    }
    // The object has been cleared.
    void remove(std::uint32_t index) { free_.push_back(index); }
    T& operator[](std::uint32_t index) { return chunks_[index / kChunk][index % kChunk]; }
    const T& operator[](std::uint32_t index) const {
      return chunks_[index / kChunk][index % kChunk];
    }
    std::size_t live() const { return size_ - free_.size(); }

   private:
    static constexpr std::uint32_t kChunk = 64;
    static_assert(std::has_single_bit(sizeof(T)) && std::is_trivially_destructible_v<T>);
    std::vector<T*> chunks_;
    std::uint32_t size_ = 0;
    std::vector<std::uint32_t> free_;
  };

  std::uint8_t mask(Address first, Address last) const {
    if (cell_shift_ != 3) return 0xff;
    const unsigned from = static_cast<unsigned>(first & 7) & ~(granule_ - 1);
    const unsigned to = static_cast<unsigned>(last & 7) | (granule_ - 1);
    return static_cast<std::uint8_t>((0xffu << from) & (0xffu >> (7 - (to & 7))));
  }

  std::size_t cache_index(std::uint64_t number) const {
    return (number * 0x9e3779b97f4a7c15u) >> cache_shift_;
  }
  Page* find_page(std::uint64_t number) const {
    const CacheEntry& entry = cache_[cache_index(number)];
    return entry.number == number ? entry.page : look_up_page(number);
  }
  Page* look_up_page(std::uint64_t number) const;
  Page& page(std::uint64_t number) {
    Page* found = find_page(number);
    return found != nullptr ? *found : add_page(number);
  }
  Page& add_page(std::uint64_t number);

  void note_pair(const State& before, const Touch& now) {
    if (pairs_ != nullptr && before && before.owner() == now.owner()) {
      pairs_->note(before.site, now.site);
    }
  }

  // The common ways first: the same bytes as before, by the same thread or known to be shared.
  [[gnu::always_inline]] void touch_cell(Touch touch, Lanes& lanes, Cell& cell,
                                         std::uint64_t number, std::uint8_t mask) {
    const bool joined = form(cell.half[1]) == kJoined;
    State* state = nullptr;
    if (mask == 0xff) {
      if (joined) state = &cell.half[0];
    } else if (mask == 0x0f || mask == 0xf0) {
      if (!joined) state = &cell.half[mask == 0x0f ? 0 : 1];
    }
    if (state != nullptr) {
      if (state->owner() == touch.owner() && *state) {
        note_pair(*state, touch);
        *state = touch;
        return;
      }
      if (form(*state) == kShared) return touch_shared(touch, lanes, state->site, number, mask);
    }
    touch_slowly(touch, lanes, cell, number, mask);
  }
  void touch_shared(Touch touch, Lanes& lanes, HistoryId id, std::uint64_t number,
                    std::uint8_t mask) {
    History& history = histories_[id];
    if (pairs_ != nullptr) note_pair(history.last(touch, id, lanes), touch);
    if (history.on(touch, id, lanes, actors_, arena_, &split_)) report(touch, number, mask);
  }
  void report(Touch touch, std::uint64_t number, std::uint8_t mask);  // split_
  void touch_cells(Touch touch, Lanes& lanes, Address first, Address last);
  void touch_slowly(Touch touch, Lanes& lanes, Cell& cell, std::uint64_t number, std::uint8_t mask);
  void touch_parts(Touch touch, Lanes& lanes, Cell& cell, std::uint64_t number, std::uint8_t mask);
  void touch_state(Touch touch, Lanes& lanes, State& state, std::uint64_t number,
                   std::uint8_t mask);
  bool owned(const State& state, const Touch& touch) const;
  State copy(const State& state);
  void drop(State& state);
  std::uint32_t parts_of(Cell& cell);
  void clear(Cell& cell, std::uint8_t mask);
  void clear_page(Page& page, unsigned from, unsigned to);

  const unsigned granule_;
  const unsigned cell_shift_;  // 3, or 6 for lines
  TripleSink& sink_;
  PairLog* const pairs_;
  Arena arena_;
  absl::flat_hash_map<std::uint64_t, Page*> pages_;
  struct CacheEntry {
    std::uint64_t number = ~std::uint64_t{0};
    Page* page = nullptr;
  };
  static constexpr unsigned kFewCacheBits = 6;
  static constexpr unsigned kManyCacheBits = 14;
  unsigned cache_shift_ = 64 - kFewCacheBits;  // the cache grows with the pages
  mutable std::vector<CacheEntry> cache_;
  Pool<Word> words_;
  Pool<History> histories_;
  std::vector<Lanes> actors_;
  Split split_;              // the latest
  std::uint64_t moves_ = 0;  // how often a page was given back
};

}  // namespace heddle::avio
