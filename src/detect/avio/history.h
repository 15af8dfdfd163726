// History: what AVIO remembers about bytes that more than one thread has touched.
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
// What suffices to decide every pair, in constant time, whatever the number of threads:
//
//   - the last write. Between P and I lies no access of their own thread, so if the last write is
//     younger than P it is remote, and if it is older than P no remote write lies between.
//   - per thread, its last access (the next access's P) and, when that was a write and the very
//     next access by anybody was a remote read, that read. For the same reason "the first remote
//     access after P" is "the next access after P", which is known one access later and can be put
//     down with the writer.
//
// R, the remote access that is reported: in cases 2, 3 and 6 the last remote write before I (the
// one whose value I sees or destroys); in case 5 the first remote read after P.
//
// Memory is bounded by the number of live threads that touched the bytes: room for more threads is
// made by first throwing out threads that have ended (they can never be I again).
#pragma once

#include "detect/avio/arena.h"
#include "detect/avio/touch.h"

#include <array>
#include <cstdint>
#include <vector>

namespace heddle::avio {

struct Split {
  SplitCase split{};
  Touch p, r;
};

// Two cache lines: what every access needs, and the slots of up to four threads. All zero is a
// history without accesses. Blocks of its own are the arena's; whoever drops or copies a history
// does so by drop() and copy().
class alignas(64) History {
 public:
  void start(const Touch& owner);  // the accesses before belonged to this one's thread only
  void copy(const History& other, Arena& arena);
  void drop(Arena& arena);

  // Takes note of an access. True and `*out` filled when it is the I of an unserializable split.
  // `ended[actor]` tells which threads are no more.
  bool on(const Touch& touch, const std::vector<bool>& ended, Arena& arena, Split* out) {
    const Actor actor = touch.actor();
    std::uint32_t at = find(actor);
    bool found = false;
    if (at != kNone) {
      Touch p = slots()[at];
      if (p.writes() && !touch.reads()) {
        if ((p.bits & kReadSince) != 0) {
          p.bits &= ~kReadSince;
          *out = {SplitCase::kWriteReadWrite, p, readers_[at]};
          found = true;
        }
      } else if (write_.ordinal() > p.ordinal()) {
        p.bits &= ~kReadSince;
        *out = {p.writes()      ? SplitCase::kWriteWriteRead
                : touch.reads() ? SplitCase::kReadWriteRead
                                : SplitCase::kReadWriteWrite,
                p, write_};
        found = true;
      }
    } else {
      at = insert(actor, ended, arena);
    }
    if (unseen_) {
      if (touch.reads() && write_.actor() != actor) remember_reader(touch, arena);
      unseen_ = false;
    }
    if (touch.writes()) {
      write_ = touch;
      unseen_ = true;
    }
    slots()[at] = touch;
    return found;
  }

  // The thread's last access; empty if there is none.
  Touch last(Actor actor) const;

  void prefetch() const {
    __builtin_prefetch(this, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(this) + 64, 1);
  }
  // When the history itself has arrived: the slot of a thread among many.
  void prefetch_slot(Actor actor) const {
    if (more_ != nullptr) __builtin_prefetch(&more_[actor & (capacity() - 1)], 1);
  }

 private:
  // A slot is the last access of a thread. Its form is kReadSince when the access was a write and
  // the next access by anybody was a remote read, which then stands in readers_.
  static constexpr std::uint64_t kReadSince = std::uint64_t{1} << 42;
  static constexpr std::uint32_t kFew = 4;
  static constexpr std::uint32_t kNone = ~0u;

  std::uint32_t capacity() const { return kFew << doubled_; }
  std::size_t block() const { return sizeof(Touch) * capacity(); }
  Touch* slots() { return more_ == nullptr ? few_.data() : more_; }
  const Touch* slots() const { return more_ == nullptr ? few_.data() : more_; }
  std::uint32_t find(Actor actor) const {
    const Touch* all = slots();
    const std::uint32_t wrap = capacity() - 1;
    std::uint32_t at = actor & wrap;
    for (std::uint32_t probes = 0; probes <= wrap; ++probes, at = (at + 1) & wrap) {
      if (!all[at]) return kNone;
      if (all[at].actor() == actor) return at;
    }
    return kNone;
  }
  std::uint32_t insert(Actor actor, const std::vector<bool>& ended, Arena& arena);
  void rebuild(const std::vector<bool>& ended, Arena& arena);
  void remember_reader(const Touch& reader, Arena& arena);

  Touch write_;               // the last write
  Touch* more_ = nullptr;     // slots, if there are more than kFew
  Touch* readers_ = nullptr;  // by slot; absent until there is one
  std::uint32_t used_ = 0;
  std::uint16_t doubled_ = 0;                // how often the room for slots was
  bool unseen_ = false;                      // nobody accessed the bytes since write_
  alignas(64) std::array<Touch, kFew> few_;  // open addressing by actor; actors are dense
};
static_assert(sizeof(History) == 128);

}  // namespace heddle::avio
