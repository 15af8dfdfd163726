// Condition variables, ours from end to end: waiters block on the condition's address, in the order
// of arrival; a signal without waiters does nothing. The memory of the pthread_cond_t is not
// touched, so statically initialised ones work, and destroying one is the C library's business.
#include "runtime/intercept.h"

#include <pthread.h>

namespace heddle::rt {
namespace {

// Bit 0 of __wrefs says that the condition is shared between processes, bit 1 which clock it has.
bool is_shared(const pthread_cond_t* cond) {
  return (cond->__data.__wrefs & 1) != 0;
}
clockid_t clock_of(const pthread_cond_t* cond) {
  return (cond->__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

int wait_outside(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                 const timespec* limit) {
  return outside([&] {
    return limit == nullptr ? REAL_VERSION(pthread_cond_wait, "GLIBC_2.3.2")(cond, mutex)
                            : REAL(pthread_cond_clockwait)(cond, mutex, clock, limit);
  });
}

}  // namespace

int wait_on_condition(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                      const timespec* limit, const void* pc) {
  if (limit != nullptr && !clock_valid(limit)) return EINVAL;
  sched_point(PointKind::kCondWait, cond, pc);
  cancellation_point();
  if (is_shared(cond)) {
    rec_lock(EventKind::kRelease, mutex, LockMode::kExclusive, pc);
    const int error = wait_outside(cond, mutex, clock, limit);
    rec_event(EventKind::kWait, LockMode::kExclusive,
              error == 0 ? OpOutcome::kOk : OpOutcome::kTimedOut, 0,
              reinterpret_cast<uint64_t>(cond), reinterpret_cast<uint64_t>(mutex), pc);
    rec_lock(EventKind::kAcquire, mutex, LockMode::kExclusive, pc);
    return error;
  }
  // From here to sched_block nobody else runs: that is what makes unlocking and waiting one step.
  const uint64_t deadline = limit == nullptr ? kNoDeadline : clock_deadline(clock, limit);
  const int not_ours = REAL(pthread_mutex_unlock)(mutex);
  if (not_ours != 0) return not_ours;
  rec_lock(EventKind::kRelease, mutex, LockMode::kExclusive, pc);
  sched_wake(mutex, 1);
  const WakeReason reason =
      sched_block(PointKind::kCondWait, cond, kWaitCond, deadline, kInterruptCancel, pc);
  const bool timed_out = reason == WakeReason::kTimedOut;
  rec_event(EventKind::kWait, LockMode::kExclusive,
            timed_out ? OpOutcome::kTimedOut : OpOutcome::kOk, 0, reinterpret_cast<uint64_t>(cond),
            reinterpret_cast<uint64_t>(mutex), pc);
  const int error = take_mutex(mutex, kNoDeadline, pc);
  rec_lock(EventKind::kAcquire, mutex, LockMode::kExclusive, pc);
  // When cancellation is disabled this returns, and the wait ends as a spurious wake-up.
  if (reason == WakeReason::kCancelled) cancellation_point();
  if (error != 0) return error;
  return timed_out ? ETIMEDOUT : 0;
}

}  // namespace heddle::rt

using namespace heddle;
using namespace heddle::rt;

RT_EXPORT int pthread_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  if (!sched_active()) return REAL_VERSION(pthread_cond_wait, "GLIBC_2.3.2")(cond, mutex);
  return wait_on_condition(cond, mutex, CLOCK_REALTIME, nullptr, RT_CALLER);
}

RT_EXPORT int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex,
                                     const timespec* limit) {
  if (!sched_active()) {
    return REAL_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2")(cond, mutex, limit);
  }
  return wait_on_condition(cond, mutex, clock_of(cond), limit, RT_CALLER);
}

RT_EXPORT int pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                                     const timespec* limit) {
  if (!sched_active()) return REAL(pthread_cond_clockwait)(cond, mutex, clock, limit);
  return wait_on_condition(cond, mutex, clock, limit, RT_CALLER);
}

RT_EXPORT int pthread_cond_signal(pthread_cond_t* cond) noexcept {
  if (!sched_active()) {
    if (!passive()) sched_wake(cond, 1);
    return REAL_VERSION(pthread_cond_signal, "GLIBC_2.3.2")(cond);
  }
  const void* pc = RT_CALLER;
  sched_point(PointKind::kCondSignal, cond, pc);
  rec_sync(EventKind::kSignal, cond, 0, pc);
  if (is_shared(cond)) return REAL_VERSION(pthread_cond_signal, "GLIBC_2.3.2")(cond);
  sched_wake(cond, 1);
  return 0;
}

RT_EXPORT int pthread_cond_broadcast(pthread_cond_t* cond) noexcept {
  if (!sched_active()) {
    if (!passive()) sched_wake(cond, ~0u);
    return REAL_VERSION(pthread_cond_broadcast, "GLIBC_2.3.2")(cond);
  }
  const void* pc = RT_CALLER;
  sched_point(PointKind::kCondSignal, cond, pc);
  rec_sync(EventKind::kBroadcast, cond, 0, pc);
  if (is_shared(cond)) return REAL_VERSION(pthread_cond_broadcast, "GLIBC_2.3.2")(cond);
  sched_wake(cond, ~0u);
  return 0;
}
