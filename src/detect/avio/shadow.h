// Shadow: the memory of AVIO about locations that several threads touch.
//
// The Front (avio/front.h) tells it when bytes change hands; only here are splits found. Exact
// bytes, at the price of words. One Cell of 32 bytes stands for 8 bytes of the program and has
// three forms:
//
//   joined   one State for all eight bytes: they have always been accessed together
//   halves   one State for bytes 0–3 and one for bytes 4–7
//   parts    up to eight States with byte masks in a Word of their own, for all other mixtures
//
// The bytes of a State have the same history, so one State decides for all of them what byte-wise
// shadows would decide eight times. An access that covers a State partly divides it first (both
// parts inherit the history).
//
// A State is empty, exclusive (one thread only: its last access, nothing else can matter yet), or
// shared (a History). It becomes shared when a second thread arrives while the first still lives;
// accesses before that arrival can only serve as the first thread's P.
//
// Coarser granules (2, 4, 8) were rounded to by the Front; with 64-byte lines a cell stands for a
// line. Cells live in pages of 512, found by a hash table behind a direct-mapped cache.
#pragma once

#include "detect/avio/arena.h"
#include "detect/avio/granules.h"
#include "detect/avio/history.h"
#include "detect/avio/pool.h"
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

class PairLog;

// Takes the triples as they are found.
class TripleSink {
 public:
  TripleSink() = default;
  TripleSink(const TripleSink&) = delete;
  TripleSink& operator=(const TripleSink&) = delete;
  virtual ~TripleSink() = default;
  virtual void on_triple(const Triple& triple) = 0;
};

class Shadow {
 public:
  // Some bytes of one cell, and the access that concerns them.
  struct Place {
    std::uint64_t cell{};
    std::uint8_t mask{};
    Address address{};
    std::uint32_t size{};
  };

  // `pairs`: where pairs are put down, for who learns; may be null.
  Shadow(Granules granules, TripleSink& sink, PairLog* pairs);

  // An access, judged.
  void access(const Touch& touch, const Place& place);

  // What the thread that accessed these bytes last has done to them since: its last access, and its
  // last write, if there was one.
  void catch_up(const Touch& last, const Touch& write, const Place& place);

  void forget(Address address, std::uint64_t size);
  void forget_everything();

  void begin(Actor actor);  // actors begin in order: 0, 1, 2, …
  void end(Actor actor) { actors_[actor].end(arena_); }
  bool ended(Actor actor) const { return actors_[actor].ended(); }

  struct Memory {
    std::size_t pages{}, words{}, histories{}, bytes{};
  };
  Memory memory() const;

 private:
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

  struct alignas(256) Word {
    std::array<std::uint8_t, 8> masks{};  // disjoint; 0 ends the list
    std::array<State, 8> states;
  };

  static constexpr unsigned kPageBits = 9;
  static constexpr std::uint64_t kPageCells = std::uint64_t{1} << kPageBits;
  struct Page {
    std::array<Cell, kPageCells> cells;
  };

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

  Cell& cell(std::uint64_t number) {
    return page(number >> kPageBits).cells[number & (kPageCells - 1)];
  }
  // Calls visit(state, mask) for states that together are the bytes of the place, and no others.
  template <typename Visit>
  void for_each_state(const Place& place, Visit visit);
  template <typename Visit>
  void for_each_part(Cell& cell, std::uint8_t mask, Visit visit);
  void access_state(const Touch& touch, State& state, std::uint8_t mask, const Place& place);
  State copy(const State& state);
  void drop(State& state);
  void divide(Cell& cell);
  void clear(Cell& cell, std::uint8_t mask);
  void clear_page(Page& page, unsigned from, unsigned to);

  const Granules granules_;
  const unsigned cell_shift_;
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
};

}  // namespace heddle::avio
