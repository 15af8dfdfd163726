// Shadow: the memory of AVIO, and how accesses change it.
//
// AVIO's own observation (section 4.1) is that an unserializable interleaving can only be completed
// where a location changes hands. One thread runs at a time, in turns; and while nobody else comes,
// of all that a thread does to a location
//
//   - only its first access can be the I of a split: the P of every other one is its own;
//   - only its last access can be the P of a later split;
//   - only its last write can be an R for others, besides a first access that is a read.
//
// So the Shadow keeps, for every location, the last access by anybody and, where several threads
// come, a history (avio/history.h), which judges when the location passes from one thread to
// another. Everything else is one comparison (was the last access in this turn?) and a store. A
// location that one thread has to itself has no history: what it did before a second one came can
// only be a P, and its last access is there for that.
//
// For the same reason accesses of one thread to the same bytes with nobody between can come as one
// (Series). They may overlap with others: the latest one counts, in whatever order they come, as
// long as for each location the first one comes first.
//
// Exact bytes, at the price of words: avio/pages.h says how locations are kept. Memory that is
// allocated or freed starts afresh: every granule that overlaps the block is forgotten.
#pragma once

#include "detect/avio/granules.h"
#include "detect/avio/history.h"
#include "detect/avio/lanes.h"
#include "detect/avio/pages.h"
#include "detect/avio/pair_log.h"
#include "detect/avio/passages.h"
#include "detect/avio/patterns.h"
#include "detect/avio/stamp.h"
#include "detect/avio/touch.h"
#include "trace/loop_walk.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace heddle::avio {

// Takes the triples as they are found.
class TripleSink {
 public:
  TripleSink() = default;
  TripleSink(const TripleSink&) = delete;
  TripleSink& operator=(const TripleSink&) = delete;
  virtual ~TripleSink() = default;
  virtual void on_triple(const Triple& triple) = 0;

  // Where further triples from the same spots are to be counted, now that on_triple has taken this
  // one. Null: the sink wants to see them all. The number stays where it is.
  virtual std::uint64_t* count_of(const Triple& /*triple*/) { return nullptr; }
};

class Shadow {
 public:
  // `pairs`: where pairs are put down, for who learns; may be null. Then every Series is of one
  // access.
  Shadow(Granules granules, const Spots& spots, TripleSink& sink, PairLog* pairs);
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // From this ordinal on the accesses are of this thread.
  void begin_turn(Actor actor, std::uint64_t ordinal) {
    actor_ = actor;
    turn_ = make_stamp(ordinal, 0);
  }

  void access(const Series& series, Address address, std::uint32_t size);

  // Where the locations are that an execution touches, as far as that can be told from their
  // addresses, when locations are exact bytes. They are about to be accessed: most of the time of
  // an access is waiting for its state, unless somebody asked for it early.
  [[gnu::always_inline]] Stamp** find(std::span<const PatternTouch> touches,
                                      const std::uint64_t* words, Stamp** to) {
    std::byte* const* const table = pages_.table();
    for (const PatternTouch& touch : touches) {
      const Address address = touch.offset + words[touch.base];
      Stamp* found = &nowhere_;
      if ((address & touch.unlikely) == 0) [[likely]] {
        std::byte* const chunk = table[address >> kChunkBits];
        if (chunk != nullptr) [[likely]] {
          found = Location::of(chunk, touch.offset_in_chunk(address)).stamp;
          __builtin_prefetch(found, 1);
        }
      }
      *to++ = found;
    }
    return to;
  }
  // Asks for the histories of locations that are about to pass to this thread, if there were more
  // than a few just before.
  [[gnu::always_inline]] void ask_for_histories(std::span<Stamp* const> found) {
    constexpr std::size_t kFew = 4;
    if (passed_ <= kFew) return;
    passed_ = 0;
    const auto passes = [turn = turn_](Stamp last) {
      return (last & kHasHistory) != 0 && last < turn;
    };
    for (Stamp* const last : found) {
      __builtin_prefetch(passes(*last) ? &Location{last}.before() : last, 1);
    }
    if (!asks_for_others()) return;
    for (Stamp* const last : found) {
      if (passes(*last)) histories_.prefetch_others({last}, actor_);
    }
  }
  // The execution. `first` is its first access.
  [[gnu::always_inline]] Stamp** execute(std::span<const PatternTouch> touches,
                                         const std::uint64_t* words, Stamp first, Stamp** found) {
    const Stamp turn = turn_;
    const Actor actor = actor_;
    const Spot* const spots = spots_.data();
    for (const PatternTouch& touch : touches) {
      Stamp* const last = *found++;
      const Stamp now = first + touch.now;
      const Stamp before = *last;
      // It was accessed in this turn, or by this thread; and not later, since accesses of an
      // execution may overlap.
      if (before - turn < now - turn || (before - kFirstStamp < now - kFirstStamp &&
                                         spots[spot_of(before)].actor == actor)) [[likely]] {
        const Stamp flags = (before ^ touch.flags) & kFlags;
        if (flags < touch.flags_end) {
          *last = now | (before & kHasHistory);
          continue;
        }
      }
      if (last == &nowhere_ || !meet(touch, words, first, {last})) slowly(touch, words, first);
    }
    return found;
  }
  void slowly(const PatternTouch& touch, const std::uint64_t* words, Stamp first);

  // So many rounds of a loop, whose accesses are where `items` says, if all that they touch is easy
  // to find and stays with the thread whose turn it is. `first` is the first access. False: not all
  // of it does. Then the accesses have to come round by round; what was done already does no harm.
  bool stays(const Pattern& loop, std::span<const LoopWalk::Moving> items, std::uint64_t rounds,
             Stamp first);

  // The same for what most short loops do: to go through cells one after the other that were
  // accessed in this turn before. `words` is the loop's record.
  bool stays_in_turn(const Pattern& pattern, const RecordShape& loop, const std::uint64_t* words,
                     std::uint64_t rounds, Stamp first) const;

  // Whether the touches of a loop may be followed one after the other (avio/lanes.h); and so many
  // rounds of one of them.
  bool follows() const { return pairs_ == nullptr && granules_.size == 1; }
  void follow(const Lane& lane, std::uint64_t rounds, Stamp first, Stamp round_length);

  // For an access that is about to come. Inlined, because the compiler takes a function that does
  // nothing but prefetch for one that does nothing.
  [[gnu::always_inline]] void prefetch(Address address, std::uint32_t size) const {
    std::byte* const chunk = pages_.find(address & ~Pages::kBeyond);
    __builtin_prefetch(chunk + offset_of(address, size), 1);
  }
  // Then, if there were many that had been with many threads, for what is behind that state; and at
  // last for what is known of other threads, of which this one comes.
  bool asks_for_others() {
    constexpr std::size_t kMany = 8;
    return histories_.looked_up() > kMany;
  }
  [[gnu::always_inline]] void prefetch_history(Address address, std::uint32_t size) const {
    if (const Location place = passing(address, size); place.stamp != nullptr) {
      __builtin_prefetch(&place.before(), 1);
      __builtin_prefetch(&place.others(), 1);
    }
  }
  [[gnu::always_inline]] void prefetch_others(Address address, std::uint32_t size,
                                              Actor comes) const {
    if (const Location place = passing(address, size); place.stamp != nullptr) {
      histories_.prefetch_others(place, comes);
    }
  }

  void forget(Address address, std::uint64_t size);
  void forget_everything();

  void begin(Actor actor) { histories_.begin(actor); }  // actors begin in order: 0, 1, 2, …
  void end(Actor actor) { histories_.end(actor); }

  struct Memory {
    std::size_t shared{};  // locations with a history
    std::size_t bytes{};
  };
  Memory memory() const { return {pages_.shared(), pages_.bytes() + histories_.bytes()}; }

 private:
  static constexpr std::uint8_t kLow = 0x0f;
  static constexpr std::uint8_t kHigh = 0xf0;
  static constexpr std::uint8_t kAllBytes = 0xff;

  // How many locations an access concerns: one, a few whole cells, or more.
  enum class Reach : std::uint8_t { kOne, kCells, kMany };

  struct Visit {  // accesses, at one of their cells
    const Series& series;
    Address address{};  // what the first one accesses as a whole
    std::uint32_t size{};
    std::uint64_t cell{};
    Reach reach{};
  };

  bool is_simple(Address address, std::uint32_t size) const {
    return (size == 8 || size == 4 || size == 1) &&
           (address & (Pages::kBeyond | never_simple_ | (size - 1))) == 0;
  }
  // Of what is simple.
  static std::size_t offset_of(Address address, std::uint32_t size) {
    return size == 8   ? offset_of_cell(address)
           : size == 4 ? offset_of_half(address)
                       : offset_of_byte(address);
  }
  // A simple location with a history that was not accessed in this turn; or none.
  Location passing(Address address, std::uint32_t size) const {
    if (!is_simple(address, size)) return {};
    std::byte* const chunk = pages_.find(address);
    if (chunk == nullptr) return {};
    const Location place = Location::of(chunk, offset_of(address, size));
    const Stamp last = place.last();
    return last < turn_ && last >= kFirstStamp && (last & kHasHistory) != 0 ? place : Location();
  }
  static Stamp mode_of(std::uint32_t size) { return size == 4 ? kHalf : 0; }

  const Spot& spot(Stamp stamp) const { return spots_[spot_of(stamp)]; }
  bool is_mine(Stamp last) const {
    return last >= turn_ || (last >= kFirstStamp && spot(last).actor == actor_);
  }
  // Nobody else is concerned: the location is untouched, or that of a thread that ended and had it
  // for itself.
  bool is_nobodys(Stamp last) const {
    return is_untouched(last) || ((last & kHasHistory) == 0 && histories_.ended(spot(last).actor));
  }
  void note_pair(Stamp before, Stamp now) { pairs_->note(spot(before).site, spot(now).site); }

  // A thread comes to a location that it did not have. False: not a location, or not of this size.
  bool come(const Visit& visit, Address address, std::uint32_t size, Location place);
  bool come(const PatternTouch& touch, const std::uint64_t* words, Stamp first, Location place);
  // A touch of which there is more to do than to replace the stamp. False: as for come().
  bool meet(const PatternTouch& touch, const std::uint64_t* words, Stamp first, Location place);
  // How many of an access's bytes, from the first one on, are kept as bytes and stay: they are
  // done.
  std::uint32_t stay_as_bytes(const Series& series, Address address, std::uint32_t size) const;
  // An access to a whole cell, of which the halves are kept. False: one of them passes on.
  bool stay(Location first_half, const Series& series) const;
  void visit_one(const Visit& visit, Location place, std::uint8_t mask);
  // The bytes of an access, or some of those of `whole`.
  struct Bytes {
    Address address{};
    std::uint32_t size{};
  };
  void visit_cells(const Series& series, Bytes bytes, Bytes whole);
  // Whole cells that nobody has touched, from the first one on, as many of them as there are.
  std::uint64_t begin_cells(const Series& series, std::uint64_t first_cell, std::uint64_t most);
  void visit(const Visit& visit, std::uint8_t mask);
  void visit_half(const Visit& visit, Location half, std::uint8_t mask);
  void visit_bytes(const Visit& visit, Location bytes, unsigned first_byte, std::uint8_t mask);
  void pass(const Visit& visit, std::uint8_t mask, Location place);
  // By the one access `now`, if that is known from before. `alone`: the access has no other cells.
  bool pass_as_before(Location place, Stamp now, bool alone);
  void remember(Stamp last, Stamp before, Stamp now, const Split& split);
  void found(const Visit& visit, std::uint8_t mask, const Split& split);
  bool was_completed(const Visit& visit, const Split& split);
  bool found_first(const Visit& visit, std::uint8_t mask, const Split& split);
  Touch touch(Stamp stamp) const;

  struct Sweep;
  template <typename Go>
  bool sweep(const PatternTouch& touch, const LoopWalk::Moving& item, std::uint64_t rounds,
             Stamp first, Stamp round_length, Go go) const;
  bool stays(Location location, const Sweep& sweep) const;
  bool stays_at_once(Location location, const Sweep& sweep) const;
  std::uint64_t stays_one_by_one(Location location, const Sweep& sweep) const;
  void follow(Address address, Location location, Sweep sweep);
  // How many locations, from the first one on, pass in the same way, or were untouched: these are
  // done.
  std::uint64_t pass_together(Location place, const Sweep& sweep);
  std::uint64_t begin_together(Address address, Location place, const Sweep& sweep);
  bool stays_in_turn(const PatternTouch& touch, const LoopWalk::Moving& item, std::uint64_t rounds,
                     Stamp first, Stamp round_length) const;

  // Triples whose like was found before: most come again and again. The case follows from the
  // spots.
  struct Known {
    SpotId p{}, r{}, i{};
    std::uint64_t* count{};
  };
  static constexpr std::size_t kKnown = 1024;
  Known& known(SpotId p, SpotId r, SpotId i) { return known_[(p * 5u + r * 3u + i) % kKnown]; }

  // The splits that an access of a few cells has completed so far: it may complete the same one in
  // several cells.
  struct Completed {
    static constexpr std::size_t kMost = Pattern::kMostCells;

    Stamp i{};
    std::size_t count{};
    bool sink_knows{};  // it was asked about further ones
    std::array<Split, kMost> splits;
  };

  const Granules granules_;
  const unsigned cell_shift_;
  const Address never_simple_;  // all bits when accesses have to be rounded to granules
  const Spots& spots_;
  TripleSink& sink_;
  PairLog* const pairs_;
  Actor actor_ = 0;
  Stamp turn_ = ~Stamp{0};  // older than every stamp of the turn
  Histories histories_;
  std::size_t passed_ = 0;  // locations, since it was asked for histories
  Pages pages_;
  Passages passages_;
  std::array<Known, kKnown> known_{};
  Completed completed_;
  Stamp nowhere_ = 0;  // stands for a location that has to be looked for; stays untouched
};

}  // namespace heddle::avio
