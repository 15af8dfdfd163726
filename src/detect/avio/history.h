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
// The last accesses of a thread to shared bytes stand together, in its Lanes: threads go through
// memory in their own order, and bytes that became shared one after the other have histories of
// neighbouring numbers, so a thread finds its next last access in the line of the one before. A
// thread that ended can never be I again; its lanes go with it. Memory is bounded by the live
// threads that touched the bytes.
#pragma once

#include "detect/avio/arena.h"
#include "detect/avio/touch.h"

#include <array>
#include <cstdint>
#include <vector>

namespace heddle::avio {

using HistoryId = std::uint32_t;

struct Split {
  SplitCase split{};
  Touch p, r;
};

// One thread's last access to the bytes of each history. In place of the thread, which is known, a
// slot holds the generation of the history: numbers of histories are given out again, and what was
// written for another generation is as good as nothing. The form is kReadSince when the access was
// a write and the next access by anybody was a remote read, which then stands in `reader`.
class Lanes {
 public:
  static constexpr std::uint64_t kReadSince = std::uint64_t{1} << 42;

  Touch& last(HistoryId id, Arena& arena) {
    Touch* const lane = find(last_, id);
    return (lane != nullptr ? lane : make(last_, id, arena))[id % kLane];
  }
  Touch& reader(HistoryId id, Arena& arena) {
    Touch* const lane = find(readers_, id);
    return (lane != nullptr ? lane : make(readers_, id, arena))[id % kLane];
  }
  // Null if there cannot be one.
  Touch* existing(HistoryId id) {
    Touch* const lane = find(last_, id);
    return lane != nullptr ? lane + id % kLane : nullptr;
  }

  bool ended() const { return ended_; }
  void end(Arena& arena);

 private:
  static constexpr std::uint32_t kLane = 8;
  using Directory = std::vector<Touch*>;  // by number of the lane; null where nothing was touched

  static Touch* find(const Directory& lanes, HistoryId id) {
    return id / kLane < lanes.size() ? lanes[id / kLane] : nullptr;
  }
  static Touch* make(Directory& lanes, HistoryId id, Arena& arena);

  Directory last_;
  Directory readers_;
  bool ended_ = false;
};

// Half a cache line, and the lanes. All zero but the generation is a history without accesses.
class alignas(32) History {
 public:
  // The accesses before belonged to this one's thread only.
  void start(const Touch& owner, HistoryId id, Lanes& lanes, Arena& arena);
  // Takes over what `other` knows.
  void copy(const History& other, HistoryId other_id, HistoryId id, std::vector<Lanes>& all,
            Arena& arena);
  // Forgets everything. False if the number must not be given out again.
  bool drop();

  // The thread with the lanes `mine`, whose access was the latest, has gone on alone: its last
  // access since, and its last write if there was one.
  void catch_up(const Touch& last, const Touch& write, HistoryId id, Lanes& mine, Arena& arena);

  // Takes note of an access of the thread that has the lanes `mine`. True and `*out` filled when it
  // is the I of an unserializable split.
  bool on(const Touch& touch, HistoryId id, Lanes& mine, std::vector<Lanes>& all, Arena& arena,
          Split* out) {
    Touch& slot = mine.last(id, arena);
    bool found = false;
    if (is_current(slot)) {
      const bool wrote = slot.writes();
      if (wrote && !touch.reads()) {
        if ((slot.bits & Lanes::kReadSince) != 0) {
          *out = {SplitCase::kWriteReadWrite, as_touch(slot, touch), mine.reader(id, arena)};
          found = true;
        }
      } else if (write_.ordinal() > slot.ordinal()) {
        *out = {wrote           ? SplitCase::kWriteWriteRead
                : touch.reads() ? SplitCase::kReadWriteRead
                                : SplitCase::kReadWriteWrite,
                as_touch(slot, touch), write_};
        found = true;
      }
    }
    slot = as_slot(touch);
    if (unseen_) {
      if (touch.reads() && write_.actor() != touch.actor()) {
        remember_reader(touch, id, all[write_.actor()], arena);
      }
      unseen_ = false;
    }
    if (touch.writes()) {
      write_ = touch;
      unseen_ = true;
    }
    return found;
  }

  // The last access of the thread of `touch`; empty if there is none.
  Touch last(const Touch& touch, HistoryId id, Lanes& mine) const {
    const Touch* const slot = mine.existing(id);
    return slot != nullptr && is_current(*slot) ? as_touch(*slot, touch) : Touch();
  }

 private:
  static constexpr unsigned kActorShift = 44;
  static constexpr std::uint64_t kBelowActor = (std::uint64_t{1} << kActorShift) - 1;

  // In a slot the generation stands where a touch has its actor. It is never 0 there.
  std::uint32_t generation() const { return used_up_ + 1; }
  bool is_current(const Touch& slot) const { return slot.actor() == generation(); }
  Touch as_slot(const Touch& touch) const {
    return {(touch.bits & kBelowActor) | std::uint64_t{generation()} << kActorShift, touch.site,
            touch.context};
  }
  static Touch as_touch(const Touch& slot, const Touch& of_same_thread) {
    return {(slot.bits & kBelowActor & ~Lanes::kReadSince) | (of_same_thread.bits & ~kBelowActor),
            slot.site, slot.context};
  }
  void remember_reader(const Touch& reader, HistoryId id, Lanes& of_writer, Arena& arena);

  Touch write_;                // the last write
  std::uint32_t used_up_ = 0;  // generations before this one
  bool unseen_ = false;        // nobody accessed the bytes since write_
};
static_assert(sizeof(History) == 32);

}  // namespace heddle::avio
