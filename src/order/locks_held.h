// Which locks each thread holds, as one number.
//
// Detectors keep, for every remembered access, the locks held at that moment. A set of locks is
// therefore interned: a LockSetId is a node of a tree whose path to the root lists the acquisitions
// that are in force, innermost first, each with its mode and the place of the acquisition. Taking a
// lock walks to a child, releasing the innermost goes to the parent; any other release rebuilds the
// path above it. Memory grows with the number of distinct nestings, not with the length of the run.
//
// A lock taken again by its holder (recursive mutex) is on the path twice and held until the last
// release. A failed try-lock acquires nothing. The release of a lock the thread does not hold
// changes nothing here.
//
// Two ids can stand for the same locks (other order, other place). Whoever needs set algebra asks
// LockSets (order/lock_sets.h) for the canonical set.
#pragma once

#include "trace/event.h"

#include <array>
#include <cstdint>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle {

using LockSetId = std::uint32_t;  // 0 = no locks

struct HeldLockRef {
  Address lock{};
  LockMode mode{};
  SiteId acquired{};  // the place of the acquisition

  bool operator==(const HeldLockRef&) const = default;
};

class LocksHeld {
 public:
  LocksHeld();

  // Takes note of Acquire and Release; every other event is ignored.
  void on(const Event& event);

  LockSetId current(ThreadId thread) const { return thread < now_.size() ? now_[thread] : 0; }

  // Outermost first, each lock once: with the place of its first acquisition, and exclusive if any
  // of its acquisitions in force is.
  std::vector<HeldLockRef> locks(LockSetId set) const;

  bool holds(LockSetId set, Address lock) const;

  // Some lock is in both sets and at least one side holds it exclusively: the two accesses
  // cannot overlap in time.
  bool exclude_each_other(LockSetId a, LockSetId b) const;

 private:
  struct Node {
    LockSetId parent{};
    HeldLockRef held;
  };
  struct ChildKey {
    LockSetId parent{};
    HeldLockRef held;

    bool operator==(const ChildKey&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const ChildKey& key) {
      return H::combine(std::move(h), key.parent, key.held.lock, key.held.mode, key.held.acquired);
    }
  };

  LockSetId child(LockSetId parent, const HeldLockRef& held);
  LockSetId without(LockSetId set, Address lock, LockMode mode);

  static constexpr std::size_t kRecent = 1024;
  static std::size_t recent(LockSetId parent, const HeldLockRef& held) {
    return (held.lock / 8 + held.lock / 2048 + parent * std::size_t{7} +
            held.acquired * std::size_t{331}) %
           kRecent;
  }

  std::vector<Node> nodes_;
  std::array<LockSetId, kRecent> recent_{};  // sets that were walked to, by hash of the way
  absl::flat_hash_map<ChildKey, LockSetId> children_;
  std::vector<LockSetId> now_;  // by thread
};

}  // namespace heddle
