// Sets of locks with algebra: the candidate sets C(v) of Eraser and of correlated-2014 section 3.2.
//
// Every distinct set is stored once; its number is its identity, so equal sets have equal numbers
// and intersections are looked up after they have been computed once. Number 0 is the empty set;
// kAllLocks stands for the set of all locks, the neutral element of the intersection.
#pragma once

#include "order/locks_held.h"

#include <span>

namespace heddle {

using CandidateSet = std::uint32_t;
inline constexpr CandidateSet kNoLocks = 0;
inline constexpr CandidateSet kAllLocks = 0xffffffffu;

class LockSets {
 public:
  explicit LockSets(const LocksHeld& held) : held_(held), sets_(1) {}

  // The locks of `set` that count for a read (all of them) or for a write (those held exclusively).
  CandidateSet any_mode(LockSetId set) { return canonical(set, any_mode_, false); }
  CandidateSet exclusive(LockSetId set) { return canonical(set, exclusive_, true); }

  CandidateSet of(std::vector<Address> locks);
  CandidateSet intersect(CandidateSet a, CandidateSet b);

  // Sorted. Must not be asked of kAllLocks.
  std::span<const Address> locks(CandidateSet set) const { return sets_[set]; }

 private:
  CandidateSet canonical(LockSetId set, std::vector<CandidateSet>& memo, bool only_exclusive);

  const LocksHeld& held_;
  std::vector<std::vector<Address>> sets_;
  absl::flat_hash_map<std::vector<Address>, CandidateSet> index_;
  absl::flat_hash_map<std::uint64_t, CandidateSet> intersections_;
  std::vector<CandidateSet> any_mode_;   // by LockSetId; kAllLocks = not computed yet
  std::vector<CandidateSet> exclusive_;  // likewise
};

}  // namespace heddle
