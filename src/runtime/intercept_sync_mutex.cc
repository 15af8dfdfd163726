// Mutexes and spin locks.
//
// A lock is tried with the C library's own trylock; when it is busy, the thread blocks on its
// address until somebody unlocks it, and tries again. So types, owners, recursion and robustness
// are the C library's business.
#include "runtime/intercept.h"

#include <pthread.h>

namespace heddle::rt {
namespace {

enum : int { kTypeMask = 3, kErrorCheck = 2, kRobust = 16, kShared = 128 };

int kind_of(const pthread_mutex_t* mutex) {
  return mutex->__data.__kind;
}

// Or never was one of ours.
bool owner_is_dead(const pthread_mutex_t* mutex) {
  const Thread* owner = find_kernel_thread(static_cast<uint32_t>(mutex->__data.__owner));
  return owner == nullptr || owner->state == State::kDead;
}

// The kernel is about to unlock a robust mutex whose owner had its last turn. True: it has.
bool owner_has_departed(const pthread_mutex_t* mutex) {
  if ((kind_of(mutex) & kRobust) == 0) return false;
  const Thread* owner = find_kernel_thread(static_cast<uint32_t>(mutex->__data.__owner));
  if (owner == nullptr || owner->state != State::kDead || owner->gone) return false;
  wait_for_departing();
  return true;
}

// Other processes, and the kernel on behalf of a dead owner, unlock without telling us. (Robust
// mutexes all have the bit of the shared ones; who holds them says more.)
bool unlocked_elsewhere(const pthread_mutex_t* mutex) {
  const int kind = kind_of(mutex);
  if ((kind & kRobust) != 0) return owner_is_dead(mutex);
  return (kind & kShared) != 0;
}

int take_mutex_outside(pthread_mutex_t* mutex, uint64_t deadline) {
  if (deadline == kNoDeadline) return outside([&] { return REAL(pthread_mutex_lock)(mutex); });
  const uint64_t now = clock_now();
  timespec limit;
  clock_gettime_real(CLOCK_MONOTONIC, &limit);
  const uint64_t rest = deadline > now ? deadline - now : 0;
  limit.tv_sec += static_cast<time_t>(rest / kNsPerSecond);
  limit.tv_nsec += static_cast<long>(rest % kNsPerSecond);
  if (limit.tv_nsec >= static_cast<long>(kNsPerSecond)) {
    limit.tv_nsec -= static_cast<long>(kNsPerSecond);
    ++limit.tv_sec;
  }
  return outside([&] { return REAL(pthread_mutex_clocklock)(mutex, CLOCK_MONOTONIC, &limit); });
}

void note_acquired(pthread_mutex_t* mutex, int error, const void* pc) {
  const bool held = error == 0 || error == EOWNERDEAD;
  const OpOutcome outcome = held                 ? OpOutcome::kOk
                            : error == ETIMEDOUT ? OpOutcome::kTimedOut
                                                 : OpOutcome::kFailed;
  rec_lock(EventKind::kAcquire, mutex, LockMode::kExclusive, pc, outcome);
}

int lock_with_limit(pthread_mutex_t* mutex, clockid_t clock, const timespec* limit,
                    const void* pc) {
  sched_point(PointKind::kLock, mutex, pc);
  if (!clock_valid(limit)) {
    const int error = REAL(pthread_mutex_trylock)(mutex);
    if (error == EBUSY) return EINVAL;
    note_acquired(mutex, error, pc);
    return error;
  }
  const int error = take_mutex(mutex, clock_deadline(clock, limit), pc);
  note_acquired(mutex, error, pc);
  return error;
}

}  // namespace

int take_mutex(pthread_mutex_t* mutex, uint64_t deadline, const void* pc) {
  for (;;) {
    const int error = REAL(pthread_mutex_trylock)(mutex);
    if (error != EBUSY) return error;
    if ((kind_of(mutex) & kTypeMask) == kErrorCheck &&
        static_cast<uint32_t>(mutex->__data.__owner) == t_self->tid) {
      return EDEADLK;
    }
    if (owner_has_departed(mutex)) continue;
    if (unlocked_elsewhere(mutex)) return take_mutex_outside(mutex, deadline);
    if (sched_block(PointKind::kLock, mutex, kWaitMutex, deadline, kInterruptNever, pc) ==
        WakeReason::kTimedOut) {
      const int last = REAL(pthread_mutex_trylock)(mutex);
      return last == EBUSY ? ETIMEDOUT : last;
    }
  }
}

void robust_owner_ends(Thread* owner) {
  const Busy busy(owner);
  lock_as_holder();
  for (unsigned i = 0; i < g_sched.blocked.count;) {
    Wait* wait = g_sched.blocked.items[i];
    if (wait->what == kWaitMutex) {
      const auto* mutex = static_cast<const volatile pthread_mutex_t*>(wait->object);
      if ((mutex->__data.__kind & kRobust) != 0 &&
          static_cast<uint32_t>(mutex->__data.__owner) == owner->tid) {
        end_wait(wait, WakeReason::kWoken);
        continue;
      }
    }
    ++i;
  }
  sched_unlock();
}

}  // namespace heddle::rt

using namespace heddle;
using namespace heddle::rt;

RT_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (!sched_active()) return REAL(pthread_mutex_lock)(mutex);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kLock, mutex, pc);
  const int error = take_mutex(mutex, kNoDeadline, pc);
  note_acquired(mutex, error, pc);
  return error;
}

RT_EXPORT int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  if (!sched_active()) return REAL(pthread_mutex_trylock)(mutex);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kTryLock, mutex, pc);
  const int error = REAL(pthread_mutex_trylock)(mutex);
  note_acquired(mutex, error, pc);
  return error;
}

RT_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* limit) noexcept {
  if (!sched_active()) return REAL(pthread_mutex_timedlock)(mutex, limit);
  return lock_with_limit(mutex, CLOCK_REALTIME, limit, RT_CALLER);
}

RT_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* limit) noexcept {
  if (!sched_active()) return REAL(pthread_mutex_clocklock)(mutex, clock, limit);
  return lock_with_limit(mutex, clock, limit, RT_CALLER);
}

RT_EXPORT int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  if (!sched_active()) {
    const int status = REAL(pthread_mutex_unlock)(mutex);
    if (!passive()) sched_wake(mutex, 1);  // a thread of its own may hold what ours wait for
    return status;
  }
  const void* pc = RT_CALLER;
  sched_point(PointKind::kUnlock, mutex, pc);
  const int error = REAL(pthread_mutex_unlock)(mutex);
  if (error != 0) return error;
  rec_lock(EventKind::kRelease, mutex, LockMode::kExclusive, pc);
  sched_wake(mutex, 1);
  return 0;
}

// ---- spin locks -----------------------------------------------------------------------------

RT_EXPORT int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  if (!sched_active()) return REAL(pthread_spin_lock)(lock);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kLock, lock, pc);
  while (REAL(pthread_spin_trylock)(lock) != 0) {
    sched_block(PointKind::kLock, lock, kWaitSpin, kNoDeadline, kInterruptNever, pc);
  }
  rec_lock(EventKind::kAcquire, lock, LockMode::kExclusive, pc);
  return 0;
}

RT_EXPORT int pthread_spin_trylock(pthread_spinlock_t* lock) noexcept {
  if (!sched_active()) return REAL(pthread_spin_trylock)(lock);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kTryLock, lock, pc);
  const int error = REAL(pthread_spin_trylock)(lock);
  rec_lock(EventKind::kAcquire, lock, LockMode::kExclusive, pc,
           error == 0 ? OpOutcome::kOk : OpOutcome::kFailed);
  return error;
}

RT_EXPORT int pthread_spin_unlock(pthread_spinlock_t* lock) noexcept {
  if (!sched_active()) {
    const int status = REAL(pthread_spin_unlock)(lock);
    if (!passive()) sched_wake(lock, 1);
    return status;
  }
  const void* pc = RT_CALLER;
  sched_point(PointKind::kUnlock, lock, pc);
  rec_lock(EventKind::kRelease, lock, LockMode::kExclusive, pc);
  const int error = REAL(pthread_spin_unlock)(lock);
  sched_wake(lock, 1);
  return error;
}
