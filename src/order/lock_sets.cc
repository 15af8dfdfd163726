#include "order/lock_sets.h"

#include <algorithm>
#include <iterator>

namespace heddle {

CandidateSet LockSets::of(std::vector<Address> locks) {
  std::sort(locks.begin(), locks.end());
  locks.erase(std::unique(locks.begin(), locks.end()), locks.end());
  if (locks.empty()) return kNoLocks;
  const auto next = static_cast<CandidateSet>(sets_.size());
  const auto [at, is_new] = index_.try_emplace(locks, next);
  if (is_new) sets_.push_back(std::move(locks));
  return at->second;
}

CandidateSet LockSets::intersect(CandidateSet a, CandidateSet b) {
  if (a == b || b == kAllLocks) return a;
  if (a == kAllLocks) return b;
  if (a == kNoLocks || b == kNoLocks) return kNoLocks;
  const std::uint64_t key = (static_cast<std::uint64_t>(std::min(a, b)) << 32) | std::max(a, b);
  if (const auto at = intersections_.find(key); at != intersections_.end()) return at->second;
  std::vector<Address> common;
  std::set_intersection(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                        std::back_inserter(common));
  const CandidateSet out = of(std::move(common));
  intersections_.emplace(key, out);
  return out;
}

CandidateSet LockSets::canonical(LockSetId set, std::vector<CandidateSet>& memo,
                                 bool only_exclusive) {
  if (set == 0) return kNoLocks;
  if (set >= memo.size()) memo.resize(set + 1, kAllLocks);
  if (memo[set] != kAllLocks) return memo[set];
  std::vector<Address> locks;
  for (const HeldLockRef& held : held_.locks(set)) {
    if (!only_exclusive || held.mode == LockMode::kExclusive) locks.push_back(held.lock);
  }
  return memo[set] = of(std::move(locks));
}

}  // namespace heddle
