#include "order/locks_held.h"

#include "order/lock_sets.h"
#include "order/lock_vector.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

constexpr Address kM = 0x100;
constexpr Address kN = 0x200;
constexpr auto kShared = LockMode::kShared;
constexpr auto kExclusive = LockMode::kExclusive;

Event acquire(ThreadId thread, Address lock, LockMode mode = kExclusive, SiteId site = 1) {
  Event out;
  out.kind = EventKind::kAcquire;
  out.thread = thread;
  out.address = lock;
  out.mode = mode;
  out.site = site;
  return out;
}

Event release(ThreadId thread, Address lock, LockMode mode = kExclusive) {
  Event out = acquire(thread, lock, mode, 0);
  out.kind = EventKind::kRelease;
  return out;
}

using Locks = std::vector<HeldLockRef>;

TEST(LocksHeld, ListsModeAndPlaceOutermostFirst) {
  LocksHeld held;
  held.on(acquire(1, kM, kExclusive, 7));
  held.on(acquire(1, kN, kShared, 8));
  EXPECT_EQ(held.locks(held.current(1)), (Locks{{kM, kExclusive, 7}, {kN, kShared, 8}}));
  EXPECT_EQ(held.current(0), 0u);
  held.on(release(1, kM));
  EXPECT_EQ(held.locks(held.current(1)), (Locks{{kN, kShared, 8}}));
  held.on(release(1, kN, kShared));
  EXPECT_EQ(held.current(1), 0u);
}

TEST(LocksHeld, TheSameNestingHasTheSameNumberInEveryThread) {
  LocksHeld held;
  for (const ThreadId thread : {0u, 1u}) {
    held.on(acquire(thread, kM));
    held.on(acquire(thread, kN));
  }
  EXPECT_EQ(held.current(0), held.current(1));
  const LockSetId both = held.current(0);
  held.on(release(0, kN));
  held.on(acquire(0, kN));
  EXPECT_EQ(held.current(0), both);
}

TEST(LocksHeld, ARecursiveLockIsHeldUntilItsLastRelease) {
  LocksHeld held;
  held.on(acquire(1, kM));
  held.on(acquire(1, kM));
  EXPECT_EQ(held.locks(held.current(1)).size(), 1u);
  held.on(release(1, kM));
  EXPECT_TRUE(held.holds(held.current(1), kM));
  held.on(release(1, kM));
  EXPECT_FALSE(held.holds(held.current(1), kM));
}

TEST(LocksHeld, FailedAcquisitionsAndForeignReleasesChangeNothing) {
  LocksHeld held;
  Event failed = acquire(1, kM);
  failed.outcome = OpOutcome::kFailed;
  held.on(failed);
  EXPECT_EQ(held.current(1), 0u);
  held.on(acquire(1, kM));
  held.on(release(1, kN));
  held.on(release(2, kM));
  EXPECT_TRUE(held.holds(held.current(1), kM));
}

TEST(LocksHeld, TwoReadersDoNotExcludeEachOther) {
  LocksHeld held;
  held.on(acquire(1, kM, kShared));
  held.on(acquire(2, kM, kShared));
  held.on(acquire(3, kM, kExclusive));
  EXPECT_FALSE(held.exclude_each_other(held.current(1), held.current(2)));
  EXPECT_TRUE(held.exclude_each_other(held.current(1), held.current(3)));
  EXPECT_FALSE(held.exclude_each_other(held.current(1), held.current(4)));
}

TEST(LockSets, AreCanonicalAndIntersect) {
  LocksHeld held;
  LockSets sets(held);
  held.on(acquire(1, kM));
  held.on(acquire(1, kN, kShared));
  held.on(acquire(2, kN, kShared));
  held.on(acquire(2, kM));
  const CandidateSet first = sets.any_mode(held.current(1));
  EXPECT_NE(held.current(1), held.current(2));
  EXPECT_EQ(first, sets.any_mode(held.current(2)));
  const CandidateSet written = sets.exclusive(held.current(1));
  EXPECT_EQ(written, sets.of({kM}));
  EXPECT_EQ(sets.intersect(first, written), written);
  EXPECT_EQ(sets.intersect(kAllLocks, first), first);
  EXPECT_EQ(sets.intersect(sets.of({kN}), written), kNoLocks);
}

// correlated-2014, table 1: scaleVector lets go of m between reading (x, y) and writing them back.
TEST(LockVector, TableOneOfThePaper) {
  LockVectors vectors;
  vectors.on(acquire(1, kM));
  EXPECT_EQ(vectors.current(1).count(kM), (LockVector::Count{kM, 1, 0}));
  const LockVector first = vectors.current(1);
  EXPECT_EQ(LockVector::held_throughout(first, vectors.current(1)), std::vector<Address>{kM});
  vectors.on(release(1, kM));
  vectors.on(acquire(1, kM));
  EXPECT_EQ(vectors.current(1).count(kM), (LockVector::Count{kM, 2, 1}));
  EXPECT_TRUE(LockVector::held_throughout(first, vectors.current(1)).empty());
}

TEST(LockVector, RecursionCountsOnce) {
  LockVectors vectors;
  vectors.on(acquire(1, kM));
  vectors.on(acquire(1, kM));
  vectors.on(release(1, kM));
  EXPECT_EQ(vectors.current(1).count(kM), (LockVector::Count{kM, 1, 0}));
  vectors.on(release(1, kM));
  EXPECT_EQ(vectors.current(1).count(kM), (LockVector::Count{kM, 1, 1}));
}

TEST(LockVector, MergedUnitsHoldWhatBothHeldWithoutABreak) {
  LockVectors vectors;
  vectors.on(acquire(1, kM));
  const LockVector early = vectors.current(1);
  vectors.on(acquire(1, kN));
  const LockVector late = vectors.current(1);
  EXPECT_EQ(LockVector::min(late, early), early);
  EXPECT_EQ(LockVector::max(early, late), late);
  EXPECT_EQ(LockVector::held_throughout(LockVector::min(late, early), LockVector::max(late, early)),
            std::vector<Address>{kM});
}

}  // namespace
}  // namespace heddle
