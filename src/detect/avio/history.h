// Histories: what AVIO remembers about locations that more than one thread has touched.
//
// The definition (Lu et al., ASPLOS 2006, section 2.2) looks at every pair of consecutive accesses
// P, I of one thread to one location and at the sequence of remote accesses between them:
//
//   case 2   read  P … at least one remote write …        read  I
//   case 3   write P … at least one remote write …        read  I
//   case 5   write P … the first remote access is a read … write I
//   case 6   read  P … at least one remote write …        write I
//
// A read-modify-write is a read and then a write with nothing between them: as I its read decides,
// as P its write does, as R it is a write, and being first after a write it is a read.
//
// What suffices to decide every pair, in constant time, whatever the number of threads, at the
// moments at which the location passes from one thread to another:
//
//   - the last write. Between P and I lies no access of their own thread, so if the last write is
//     younger than P it is remote, and if it is older than P no remote write lies between.
//   - per thread, its last access (the next access's P) and, when that was a write and the very
//     next access by anybody was a remote read, that read. For the same reason "the first remote
//     access after P" is "the next access after P", which is the access by which the location
//     passes on, and can be put down with the writer.
//
// R, the remote access that is reported: in cases 2, 3 and 6 the last remote write before I (the
// one whose value I sees or destroys); in case 5 the first remote read after P.
//
// A history is one cache line: the last write, and what is known of three threads. One that more
// threads visit has a table of them. A thread that ended can never be I again: its place goes to
// another. Memory is bounded by the live threads that touched the location.
#pragma once

#include "detect/avio/arena.h"
#include "detect/avio/pool.h"
#include "detect/avio/stamp.h"
#include "detect/avio/touch.h"

#include <array>
#include <cstdint>
#include <vector>

namespace heddle::avio {

using HistoryId = std::uint32_t;  // 0 = none

struct Split {
  SplitCase split{};
  Stamp p{}, r{};
};

class Histories {
 public:
  explicit Histories(const Spots& spots) : spots_(spots) { forget_everything(); }

  void begin(Actor actor);  // actors begin in order: 0, 1, 2, …
  void end(Actor actor) { ended_[actor] = true; }
  bool ended(Actor actor) const { return ended_[actor]; }

  HistoryId add() { return pool_.add(arena_); }
  HistoryId copy(HistoryId id);
  void drop(HistoryId id);

  // The location passes from the thread of `last`, the latest access, to the thread of `now`.
  // `write` is the last write that the former made since it came, 0 if none. True and `*split`
  // filled when `now` is the I of an unserializable split.
  bool pass(HistoryId id, Stamp last, Stamp write, Stamp now, Split* split);

  // The last access of this thread before the location passed to others, 0 if there is none.
  Stamp last_of(HistoryId id, Actor actor) const;

  void forget_everything();
  std::size_t live() const { return pool_.live() - 1; }
  std::size_t bytes() const { return arena_.bytes(); }

 private:
  struct Entry {  // of one thread; all zero is free
    Stamp last{};
    Stamp
        reader{};  // the first remote read after `last`, if that was a write and nothing was first
  };
  struct alignas(64) History {
    Stamp write{};  // the last one before the thread came that has the location now
    Entry* many{};  // not null: a table by actor, whose size and use `few[0]` holds
    std::array<Entry, 3> few{};
  };
  static constexpr std::uint64_t kFirstTable = 8;

  Actor actor(const Entry& entry) const { return spots_[spot_of(entry.last)].actor; }
  Entry* find(const History& history, Actor actor) const;
  Entry& find_or_add(History& history, Actor actor);
  Entry* place_in(Entry* table, std::uint64_t size, Actor actor) const;
  Entry& add_to_table(History& history, Actor actor);
  void make_table(History& history, std::uint64_t size);
  void give_back(Entry* table, std::uint64_t size) {
    arena_.give_back(table, size * sizeof(Entry));
  }

  const Spots& spots_;
  Arena arena_;
  Pool<History> pool_;
  std::vector<bool> ended_;  // by actor
};

}  // namespace heddle::avio
