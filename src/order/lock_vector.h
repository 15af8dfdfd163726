// Lock vectors (correlated-2014, section 3.3): for a thread t, a map from each lock to how often t
// has acquired and released it so far. A stretch of t that began when the vector was `first` and
// ended when it was `last` held lock m throughout iff
//
//     first(m).acquired - first(m).released == 1   and   last(m).released == first(m).released.
//
// Copies are what makes the vectors useful: a computational unit keeps the vector of its first and
// of its last shared access, and merging two units takes the element-wise minimum and maximum. As
// the paper notes, the counts are not those of calls: a recursive acquisition by the holder counts
// nothing, nor does a failed try-lock (its figure 9).
//
// Only locks that the thread has ever taken have an entry, sorted by address; a copy is a flat
// vector. A read lock counts like a write lock here; whoever needs the mode asks LocksHeld.
#pragma once

#include "trace/event.h"

#include <cstdint>
#include <vector>

namespace heddle {

class LockVector {
 public:
  struct Count {
    Address lock{};
    std::uint64_t acquired{};
    std::uint64_t released{};

    bool operator==(const Count&) const = default;
  };

  Count count(Address lock) const;
  bool holds(Address lock) const;

  void acquire(Address lock);
  void release(Address lock);

  // Element-wise; a lock without an entry counts (0, 0).
  static LockVector min(const LockVector& a, const LockVector& b);
  static LockVector max(const LockVector& a, const LockVector& b);

  // The locks held from `first` until `last` without a break: L_u of the paper, sorted.
  static std::vector<Address> held_throughout(const LockVector& first, const LockVector& last);

  const std::vector<Count>& counts() const { return counts_; }
  bool operator==(const LockVector&) const = default;

 private:
  std::vector<Count> counts_;  // sorted by lock
};

// The lock vectors of all threads, following a trace.
class LockVectors {
 public:
  // Takes note of Acquire and Release; every other event is ignored.
  void on(const Event& event);

  const LockVector& current(ThreadId thread) const {
    static const LockVector none;
    return thread < threads_.size() ? threads_[thread].vector : none;
  }

 private:
  struct Depth {
    Address lock{};
    std::uint32_t depth{};
  };
  struct PerThread {
    LockVector vector;
    std::vector<Depth> held;  // recursion depths of the locks in force
  };
  std::vector<PerThread> threads_;
};

}  // namespace heddle
