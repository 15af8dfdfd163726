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

#include "detect/avio/touch.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace heddle::avio {

struct Split {
  SplitCase split{};
  Touch p, r;
};

// Two cache lines: what every access needs, and the slots of up to four threads.
class alignas(64) History {
 public:
  History() = default;
  explicit History(const Touch& owner);  // the accesses before belonged to this one's thread only
  History(const History& other);
  History& operator=(const History& other);
  History(History&&) noexcept = default;
  History& operator=(History&&) noexcept = default;
  ~History() = default;

  // Takes note of an access. True and `*out` filled when it is the I of an unserializable split.
  // `ended[actor]` tells which threads are no more.
  bool on(const Touch& touch, const std::vector<bool>& ended, Split* out);

  // The thread's last access; empty if there is none.
  Touch last(Actor actor) const;

  void prefetch() const {
    __builtin_prefetch(this, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(this) + 64, 1);
  }
  std::size_t memory() const;  // beyond the object itself

 private:
  // A slot is the last access of a thread. Its form is kReadSince when the access was a write and
  // the next access by anybody was a remote read, which then stands in readers_.
  static constexpr std::uint64_t kReadSince = std::uint64_t{1} << 42;
  static constexpr std::uint32_t kFew = 4;
  static constexpr std::uint32_t kNone = ~0u;

  Touch* slots() { return capacity_ == kFew ? few_.data() : more_.get(); }
  const Touch* slots() const { return capacity_ == kFew ? few_.data() : more_.get(); }
  std::uint32_t find(Actor actor) const;
  std::uint32_t insert(Actor actor, const std::vector<bool>& ended);
  void rebuild(const std::vector<bool>& ended);
  void remember_reader(const Touch& reader);

  Touch write_;                       // the last write
  std::unique_ptr<Touch[]> more_;     // slots, if there are more than kFew
  std::unique_ptr<Touch[]> readers_;  // by slot; absent until there is one
  std::uint32_t capacity_ = kFew;     // a power of two
  std::uint32_t used_ = 0;
  bool unseen_ = false;                      // nobody accessed the bytes since write_
  alignas(64) std::array<Touch, kFew> few_;  // open addressing by actor; actors are dense
};
static_assert(sizeof(History) == 128);

}  // namespace heddle::avio
