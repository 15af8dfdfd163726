// POSIX semaphores. The count is the C library's; waiting is ours, unless other processes may post.
#include "runtime/intercept.h"

#include <semaphore.h>
#include <string.h>

namespace heddle::rt {
namespace {

// glibc's struct new_sem: a 64-bit word of value and waiters, then whether it is shared.
bool is_shared(const sem_t* semaphore) {
  int shared;
  memcpy(&shared, reinterpret_cast<const char*>(semaphore) + 8, sizeof shared);
  return shared != 0;
}

bool try_take(sem_t* semaphore) {
  const int before = errno;
  if (REAL(sem_trywait)(semaphore) == 0) return true;
  errno = before;
  return false;
}

int fail(int error) {
  errno = error;
  return -1;
}

void note(sem_t* semaphore, OpOutcome outcome, const void* pc) {
  rec_sync(EventKind::kSemWait, semaphore, 0, pc, outcome);
}

// limit == nullptr: no limit.
int wait(sem_t* semaphore, clockid_t clock, const timespec* limit, const void* pc) {
  sched_point(PointKind::kSemWait, semaphore, pc);
  cancellation_point();
  if (try_take(semaphore)) {
    note(semaphore, OpOutcome::kOk, pc);
    return 0;
  }
  if (limit != nullptr && !clock_valid(limit)) return fail(EINVAL);
  if (is_shared(semaphore)) {
    const int status = outside([&] {
      return limit == nullptr ? REAL(sem_wait)(semaphore)
                              : REAL(sem_clockwait)(semaphore, clock, limit);
    });
    note(semaphore, status == 0 ? OpOutcome::kOk : OpOutcome::kTimedOut, pc);
    return status;
  }
  const uint64_t deadline = limit == nullptr ? kNoDeadline : clock_deadline(clock, limit);
  for (;;) {
    const WakeReason reason = sched_block(PointKind::kSemWait, semaphore, kWaitSemaphore, deadline,
                                          kInterruptCancel | kInterruptSignal, pc);
    if (reason == WakeReason::kCancelled) cancellation_point();
    if (try_take(semaphore)) break;
    if (reason == WakeReason::kTimedOut || reason == WakeReason::kSignal) {
      note(semaphore, OpOutcome::kTimedOut, pc);
      return fail(reason == WakeReason::kTimedOut ? ETIMEDOUT : EINTR);
    }
  }
  note(semaphore, OpOutcome::kOk, pc);
  return 0;
}

}  // namespace
}  // namespace heddle::rt

using namespace heddle;
using namespace heddle::rt;

RT_EXPORT int sem_wait(sem_t* semaphore) {
  if (!sched_active()) return REAL(sem_wait)(semaphore);
  return wait(semaphore, CLOCK_REALTIME, nullptr, RT_CALLER);
}

RT_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* limit) {
  if (!sched_active()) return REAL(sem_timedwait)(semaphore, limit);
  return wait(semaphore, CLOCK_REALTIME, limit, RT_CALLER);
}

RT_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* limit) {
  if (!sched_active()) return REAL(sem_clockwait)(semaphore, clock, limit);
  return wait(semaphore, clock, limit, RT_CALLER);
}

RT_EXPORT int sem_trywait(sem_t* semaphore) noexcept {
  if (!sched_active()) return REAL(sem_trywait)(semaphore);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kTryLock, semaphore, pc);
  const int status = REAL(sem_trywait)(semaphore);
  note(semaphore, status == 0 ? OpOutcome::kOk : OpOutcome::kFailed, pc);
  return status;
}

RT_EXPORT int sem_post(sem_t* semaphore) noexcept {
  if (!sched_active()) {
    const int status = REAL(sem_post)(semaphore);
    if (!passive()) sched_wake(semaphore, 1);
    return status;
  }
  const void* pc = RT_CALLER;
  sched_point(PointKind::kSemPost, semaphore, pc);
  const int status = REAL(sem_post)(semaphore);
  if (status != 0) return status;
  rec_sync(EventKind::kSemPost, semaphore, 0, pc);
  sched_wake(semaphore, 1);
  return 0;
}
