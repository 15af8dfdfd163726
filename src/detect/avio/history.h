// History: what AVIO remembers about a location that more than one thread has touched.
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
// Most locations go to and fro between two threads. So a history is what is known of the thread
// that had the location before the one that has it now. The last write is apart: it is put down
// more often than a location passes on (avio/shadow.h). What is known of further threads is apart
// (Others), and is asked only when one of them comes. A thread that ended can never be I again: its
// place goes to another. Memory is bounded by the live threads that touched the location.
#pragma once

#include "detect/avio/others.h"
#include "detect/avio/stamp.h"
#include "detect/avio/touch.h"

#include <cstdint>

namespace heddle::avio {

struct Split {
  SplitCase split{};
  Stamp p{}, r{};
};

// All zero: no thread was there but the one that is. Whoever keeps histories owns their others.
// Stamps have no flags here.
struct History {
  Left before{};  // of the thread that had the location before; none if that has ended
  OthersId others{};

  bool operator==(const History&) const = default;
};
static_assert(sizeof(History) == 24);

class Histories {
 public:
  explicit Histories(const Spots& spots) : spots_(spots), others_(spots) {}

  void begin(Actor actor) { others_.begin(actor); }  // actors begin in order: 0, 1, 2, …
  void end(Actor actor) { others_.end(actor); }
  bool ended(Actor actor) const { return others_.ended(actor); }

  // The location passes from the thread of `last`, the latest access, to the thread of `now`.
  // `write` is the last write since a second thread came, unless `last` is that; it is brought up
  // to date. Returns the P of `now`, 0 if there is none. `split->p` is not 0 when that is one of an
  // unserializable split.
  [[gnu::always_inline]] Stamp pass(History& history, Stamp& write, Stamp last, Stamp now,
                                    Split* split) {
    const Spot& from = spots_[spot_of(last)];
    const Spot& to = spots_[spot_of(now)];
    if (is_write(from.kind)) write = last;
    Left mine = history.before;
    if (mine.last == 0 || spots_[spot_of(mine.last)].actor != to.actor) {
      if (mine.last != 0 || history.others != 0) {
        mine = others_.swap(history.others, mine, to.actor);
      }
    }
    if (mine.last != 0) judge(write, mine, to.kind, split);
    const bool seen = is_write(from.kind) && is_read(to.kind);
    history.before = ended(from.actor) ? Left() : Left{last, seen ? now : 0};
    return mine.last;
  }

  History copy(const History& history) {
    History out = history;
    if (out.others != 0) out.others = others_.copy(out.others);
    return out;
  }
  void drop(History& history) {
    if (history.others != 0) others_.drop(history.others);
    history = History();
  }

  void forget_everything() { others_.forget_everything(); }
  std::size_t bytes() const { return others_.bytes(); }

 private:
  [[gnu::always_inline]] void judge(Stamp write, const Left& mine, EventKind now,
                                    Split* split) const {
    const bool p_writes = is_write(spots_[spot_of(mine.last)].kind);
    if (p_writes && !is_read(now)) {
      if (mine.reader != 0) *split = {SplitCase::kWriteReadWrite, mine.last, mine.reader};
    } else if (write > mine.last) {
      *split = {p_writes       ? SplitCase::kWriteWriteRead
                : is_read(now) ? SplitCase::kReadWriteRead
                               : SplitCase::kReadWriteWrite,
                mine.last, write};
    }
  }

  const Spots& spots_;
  Others others_;
};

}  // namespace heddle::avio
