// Read-write locks, tried with the C library's own try functions like mutexes.
#include "runtime/intercept.h"

#include <pthread.h>

namespace heddle::rt {
namespace {

int try_lock(pthread_rwlock_t* lock, LockMode mode) {
  return mode == LockMode::kShared ? REAL(pthread_rwlock_tryrdlock)(lock)
                                   : REAL(pthread_rwlock_trywrlock)(lock);
}

int real_lock(pthread_rwlock_t* lock, LockMode mode) {
  return mode == LockMode::kShared ? REAL(pthread_rwlock_rdlock)(lock)
                                   : REAL(pthread_rwlock_wrlock)(lock);
}

int take(pthread_rwlock_t* lock, LockMode mode, uint64_t deadline, const void* pc) {
  for (;;) {
    const int error = try_lock(lock, mode);
    if (error != EBUSY) return error;
    if (static_cast<uint32_t>(lock->__data.__cur_writer) == t_self->tid) return EDEADLK;
    if (lock->__data.__shared != 0) return outside([&] { return real_lock(lock, mode); });
    if (sched_block(PointKind::kLock, lock, kWaitRwlock, deadline, kInterruptNever, pc) ==
        WakeReason::kTimedOut) {
      const int last = try_lock(lock, mode);
      return last == EBUSY ? ETIMEDOUT : last;
    }
  }
}

OpOutcome outcome_of(int error) {
  return error == 0           ? OpOutcome::kOk
         : error == ETIMEDOUT ? OpOutcome::kTimedOut
                              : OpOutcome::kFailed;
}

int lock_rwlock(pthread_rwlock_t* lock, LockMode mode, const void* pc) {
  sched_point(PointKind::kLock, lock, pc);
  const int error = take(lock, mode, kNoDeadline, pc);
  rec_lock(EventKind::kAcquire, lock, mode, pc, outcome_of(error));
  return error;
}

int lock_rwlock_until(pthread_rwlock_t* lock, LockMode mode, clockid_t clock, const timespec* limit,
                      const void* pc) {
  sched_point(PointKind::kLock, lock, pc);
  int error = try_lock(lock, mode);
  if (error == EBUSY) {
    error = clock_valid(limit) ? take(lock, mode, clock_deadline(clock, limit), pc) : EINVAL;
  }
  rec_lock(EventKind::kAcquire, lock, mode, pc, outcome_of(error));
  return error;
}

int try_rwlock(pthread_rwlock_t* lock, LockMode mode, const void* pc) {
  sched_point(PointKind::kTryLock, lock, pc);
  const int error = try_lock(lock, mode);
  rec_lock(EventKind::kAcquire, lock, mode, pc, outcome_of(error));
  return error;
}

}  // namespace
}  // namespace heddle::rt

using namespace heddle;
using namespace heddle::rt;

RT_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  if (!sched_active()) return REAL(pthread_rwlock_rdlock)(lock);
  return lock_rwlock(lock, LockMode::kShared, RT_CALLER);
}

RT_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  if (!sched_active()) return REAL(pthread_rwlock_wrlock)(lock);
  return lock_rwlock(lock, LockMode::kExclusive, RT_CALLER);
}

RT_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  if (!sched_active()) return REAL(pthread_rwlock_tryrdlock)(lock);
  return try_rwlock(lock, LockMode::kShared, RT_CALLER);
}

RT_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  if (!sched_active()) return REAL(pthread_rwlock_trywrlock)(lock);
  return try_rwlock(lock, LockMode::kExclusive, RT_CALLER);
}

RT_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* limit) noexcept {
  if (!sched_active()) return REAL(pthread_rwlock_timedrdlock)(lock, limit);
  return lock_rwlock_until(lock, LockMode::kShared, CLOCK_REALTIME, limit, RT_CALLER);
}

RT_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* limit) noexcept {
  if (!sched_active()) return REAL(pthread_rwlock_timedwrlock)(lock, limit);
  return lock_rwlock_until(lock, LockMode::kExclusive, CLOCK_REALTIME, limit, RT_CALLER);
}

RT_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                                         const timespec* limit) noexcept {
  if (!sched_active()) return REAL(pthread_rwlock_clockrdlock)(lock, clock, limit);
  return lock_rwlock_until(lock, LockMode::kShared, clock, limit, RT_CALLER);
}

RT_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                                         const timespec* limit) noexcept {
  if (!sched_active()) return REAL(pthread_rwlock_clockwrlock)(lock, clock, limit);
  return lock_rwlock_until(lock, LockMode::kExclusive, clock, limit, RT_CALLER);
}

RT_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  if (!sched_active()) {
    const int status = REAL(pthread_rwlock_unlock)(lock);
    if (!passive()) sched_wake(lock, ~0u);
    return status;
  }
  const void* pc = RT_CALLER;
  sched_point(PointKind::kUnlock, lock, pc);
  const LockMode mode = static_cast<uint32_t>(lock->__data.__cur_writer) == t_self->tid
                            ? LockMode::kExclusive
                            : LockMode::kShared;
  const int error = REAL(pthread_rwlock_unlock)(lock);
  if (error != 0) return error;
  rec_lock(EventKind::kRelease, lock, mode, pc);
  sched_wake(lock, ~0u);  // readers may all come in; whoever is too late waits again
  return 0;
}
