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
// that had the location before the one that has it now:
//
//   before   its last access
//   reader   the access by which the location passed on, if that was a read after a write
//   write    the last write
//   others   what is known of further threads (avio/others.h), asked only when one of them comes
//
// Each of these is in an array of its own (avio/location.h), and most locations do without the last
// three. The flags of `before` say which of them are there (kHasReader, kHasWrite, kHasOthers): a
// reader is not put down while the latest access is that (kIsReader), nor is a write while the
// latest access or `before` is that (kWrote). Data that one thread writes and another one reads,
// again and again, are two words.
//
// A thread that ended can never be I again: its place goes to another. Memory is bounded by the
// live threads that touched the location.
#pragma once

#include "detect/avio/location.h"
#include "detect/avio/others.h"
#include "detect/avio/stamp.h"
#include "detect/avio/touch.h"

#include <algorithm>
#include <cstdint>

namespace heddle::avio {

struct Split {
  SplitCase split{};
  Stamp p{}, r{};
};

// Histories are of locations whose latest access has the flag kHasHistory. Stamps other than that
// and `before` have no flags.
class Histories {
 public:
  explicit Histories(const Spots& spots) : spots_(spots), others_(spots) {}

  void begin(Actor actor) { others_.begin(actor); }  // actors begin in order: 0, 1, 2, …
  void end(Actor actor) { others_.end(actor); }
  bool ended(Actor actor) const { return others_.ended(actor); }

  // The location passes to another thread. Returns the P of the series' first access, 0 if there is
  // none. `split->p` is not 0 when that is one of an unserializable split.
  [[gnu::always_inline]] Stamp pass(Location place, const Series& series, Split* split) {
    const Past past(place);
    const Spot& comes = spots_[spot_of(series.first)];
    Stamp flags = past.before & kHasOthers;
    Stamp p = plain(past.before);
    if (p != 0) {
      if (spots_[spot_of(p)].actor == comes.actor) [[likely]] {
        judge(past, p, [&] { return past.reader(); }, comes.kind, split);
      } else {
        const Left mine = swap(past, comes.actor, &flags);
        p = mine.last;
        if (p != 0) judge(past, p, [&] { return mine.reader; }, comes.kind, split);
      }
    }
    flags |= put_down_write(past, series);
    Stamp now = series.last | kHasHistory | (past.last & kHalf);
    if ((past.last & kWrote) != 0 && is_read(comes.kind)) {
      if (series.is_one()) {
        now |= kIsReader;
      } else {
        place.reader() = series.first;
        flags |= kHasReader;
      }
    }
    place.before() = plain(past.last) | (past.last & kWrote) | flags;
    place.last() = now;
    return p;
  }

  // The location stays with its thread.
  static void go_on(Location place, const Series& series) {
    const Stamp last = place.last();
    const Stamp now = std::max(last & ~kIsReader, series.last | (last & (kHasHistory | kHalf)));
    if ((last & kHasHistory) != 0) {
      if ((last & kIsReader) != 0) {
        place.reader() = plain(last);
        place.before() |= kHasReader;
      }
      if ((now & kWrote) == 0) {
        const Stamp wrote = std::max((last & kWrote) != 0 ? plain(last) : 0, series.write);
        if (wrote != 0) note_write(place, wrote);
      }
    }
    place.last() = now;
  }

  std::size_t looked_up() { return others_.looked_up(); }
  // For a location that has a history and is about to pass to this thread; `before` has been asked
  // for.
  [[gnu::always_inline]] void prefetch_others(Location place, Actor comes) const {
    const Stamp before = place.before();
    if ((before & kHasOthers) == 0) return;
    others_.prefetch(place.others(), spots_[spot_of(before)].actor, comes);
  }

  // Gives `to`, whose latest access is the same, the same history.
  void copy(Location from, Location to) {
    const Stamp before = from.before();
    to.before() = before;
    if ((before & kHasReader) != 0) to.reader() = from.reader();
    if ((before & kHasWrite) != 0) to.write() = from.write();
    if ((before & kHasOthers) != 0) to.others() = others_.copy(from.others());
  }
  void drop(Location place) {
    if ((place.before() & kHasOthers) != 0) others_.drop(place.others());
    place.before() = 0;
  }
  // Both have the same past, and it is one of no more than two threads.
  static bool alike(Location one, Location other) {
    const Stamp before = one.before();
    if (one.last() != other.last() || before != other.before()) return false;
    return (before & kHasOthers) == 0 &&
           ((before & kHasReader) == 0 || one.reader() == other.reader()) &&
           ((before & kHasWrite) == 0 || one.write() == other.write());
  }

  void forget_everything() { others_.forget_everything(); }
  std::size_t bytes() const { return others_.bytes(); }

 private:
  // What was before the location passes on.
  struct Past {
    explicit Past(Location of)
        : place(of), last(of.last()), before((last & kHasHistory) != 0 ? of.before() : 0) {}

    Stamp reader() const {
      if ((last & kIsReader) != 0) return plain(last);
      return (before & kHasReader) != 0 ? place.reader() : 0;
    }
    Stamp write() const {
      if ((last & kWrote) != 0) return plain(last);
      const Stamp of_before = (before & kWrote) != 0 ? plain(before) : 0;
      return (before & kHasWrite) != 0 ? std::max(place.write(), of_before) : of_before;
    }

    Location place;
    Stamp last;
    Stamp before;
  };

  // What is known of the thread that comes, if it did not have the location just before. `flags`:
  // kHasOthers while there are others.
  Left swap(const Past& past, Actor comes, Stamp* flags) {
    OthersId& others = past.place.others();
    if (*flags == 0) {
      if (ended(spots_[spot_of(past.before)].actor)) return {};
      others = 0;
    }
    const Left mine = others_.swap(others, {plain(past.before), past.reader()}, comes);
    *flags = others != 0 ? kHasOthers : 0;
    return mine;
  }

  // The last write, unless it will be the latest access or `before`. Returns kHasWrite if it is
  // put down.
  static Stamp put_down_write(const Past& past, const Series& series) {
    if ((series.last & kWrote) != 0) return 0;
    if (series.write != 0) {
      past.place.write() = series.write;
      return kHasWrite;
    }
    if ((past.last & kWrote) != 0) return 0;
    const Stamp write = past.write();
    if (write == 0) return 0;
    past.place.write() = write;
    return kHasWrite;
  }
  static void note_write(Location place, Stamp write) {
    const Stamp before = place.before();
    place.write() = (before & kHasWrite) != 0 ? std::max(place.write(), write) : write;
    place.before() = before | kHasWrite;
  }

  template <typename Reader>
  [[gnu::always_inline]] void judge(const Past& past, Stamp p, Reader reader, EventKind now,
                                    Split* split) const {
    const bool p_writes = is_write(spots_[spot_of(p)].kind);
    if (p_writes && !is_read(now)) {
      const Stamp r = reader();
      if (r != 0) *split = {SplitCase::kWriteReadWrite, p, r};
      return;
    }
    const Stamp write = past.write();
    if (write > p) {
      *split = {p_writes       ? SplitCase::kWriteWriteRead
                : is_read(now) ? SplitCase::kReadWriteRead
                               : SplitCase::kReadWriteWrite,
                p, write};
    }
  }

  const Spots& spots_;
  Others others_;
};

}  // namespace heddle::avio
