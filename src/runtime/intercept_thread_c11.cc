// C11 threads. In glibc they call the POSIX ones by internal names, past any interposition; the
// objects are the same, so here they are the POSIX ones with other results.
#include "runtime/intercept.h"

#include <pthread.h>
#include <sched.h>
#include <threads.h>

namespace heddle::rt {
namespace {

int result_of(int error) {
  switch (error) {
    case 0:
      return thrd_success;
    case ENOMEM:
      return thrd_nomem;
    case ETIMEDOUT:
      return thrd_timedout;
    case EBUSY:
      return thrd_busy;
    default:
      return thrd_error;
  }
}

pthread_mutex_t* as_mutex(mtx_t* mutex) {
  return reinterpret_cast<pthread_mutex_t*>(mutex);
}
pthread_cond_t* as_cond(cnd_t* cond) {
  return reinterpret_cast<pthread_cond_t*>(cond);
}

// The entry of a C11 thread returns int; the frame between is why this needs no allocation: the
// entry's address travels in the thread's own record.
void* run_c11_thread(void*) {
  const Thread* self = t_self;
  const auto entry = reinterpret_cast<thrd_start_t>(self->c11_entry);
  return reinterpret_cast<void*>(static_cast<intptr_t>(entry(self->c11_argument)));
}

int lock(pthread_mutex_t* mutex, const void* pc) {
  sched_point(PointKind::kLock, mutex, pc);
  const int error = take_mutex(mutex, kNoDeadline, pc);
  rec_lock(EventKind::kAcquire, mutex, LockMode::kExclusive, pc,
           error == 0 ? OpOutcome::kOk : OpOutcome::kFailed);
  return result_of(error);
}

}  // namespace
}  // namespace heddle::rt

using namespace heddle;
using namespace heddle::rt;

RT_EXPORT int thrd_create(thrd_t* out, thrd_start_t entry, void* argument) {
  if (!sched_active()) return REAL(thrd_create)(out, entry, argument);
  g_sched.threads[g_sched.thread_count].c11_entry = reinterpret_cast<void*>(entry);
  g_sched.threads[g_sched.thread_count].c11_argument = argument;
  return result_of(start_new_thread(out, nullptr, run_c11_thread, nullptr, RT_CALLER));
}

RT_EXPORT int thrd_join(thrd_t handle, int* result) {
  if (!sched_active()) return REAL(thrd_join)(handle, result);
  void* value = nullptr;
  const int error = join_thread(handle, &value, kNoDeadline, false, RT_CALLER);
  if (error == 0 && result != nullptr)
    *result = static_cast<int>(reinterpret_cast<intptr_t>(value));
  return result_of(error);
}

RT_EXPORT int thrd_detach(thrd_t handle) {
  if (!sched_active()) return REAL(thrd_detach)(handle);
  return result_of(pthread_detach(handle));
}

RT_EXPORT void thrd_yield() {
  if (!sched_active()) return REAL(thrd_yield)();
  sched_point(PointKind::kYield, nullptr, RT_CALLER);
}

RT_EXPORT int thrd_sleep(const timespec* duration, timespec* remaining) {
  if (!sched_active()) return REAL(thrd_sleep)(duration, remaining);
  const int before = errno;
  const int status = nanosleep(duration, remaining);
  const int error = errno;
  errno = before;
  return status == 0 ? 0 : error == EINTR ? -1 : -2;
}

RT_EXPORT int mtx_lock(mtx_t* mutex) {
  if (!sched_active()) return REAL(mtx_lock)(mutex);
  return lock(as_mutex(mutex), RT_CALLER);
}

RT_EXPORT int mtx_trylock(mtx_t* mutex) {
  if (!sched_active()) return REAL(mtx_trylock)(mutex);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kTryLock, mutex, pc);
  const int error = REAL(pthread_mutex_trylock)(as_mutex(mutex));
  rec_lock(EventKind::kAcquire, mutex, LockMode::kExclusive, pc,
           error == 0 ? OpOutcome::kOk : OpOutcome::kFailed);
  return result_of(error);
}

RT_EXPORT int mtx_timedlock(mtx_t* mutex, const timespec* limit) {
  if (!sched_active()) return REAL(mtx_timedlock)(mutex, limit);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kLock, mutex, pc);
  const int error = take_mutex(as_mutex(mutex), clock_deadline(CLOCK_REALTIME, limit), pc);
  rec_lock(EventKind::kAcquire, mutex, LockMode::kExclusive, pc,
           error == 0           ? OpOutcome::kOk
           : error == ETIMEDOUT ? OpOutcome::kTimedOut
                                : OpOutcome::kFailed);
  return result_of(error);
}

RT_EXPORT int mtx_unlock(mtx_t* mutex) {
  if (!sched_active()) return REAL(mtx_unlock)(mutex);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kUnlock, mutex, pc);
  const int error = REAL(pthread_mutex_unlock)(as_mutex(mutex));
  if (error == 0) {
    rec_lock(EventKind::kRelease, mutex, LockMode::kExclusive, pc);
    sched_wake(mutex, 1);
  }
  return result_of(error);
}

RT_EXPORT int cnd_wait(cnd_t* cond, mtx_t* mutex) {
  if (!sched_active()) return REAL(cnd_wait)(cond, mutex);
  return result_of(
      wait_on_condition(as_cond(cond), as_mutex(mutex), CLOCK_REALTIME, nullptr, RT_CALLER));
}

RT_EXPORT int cnd_timedwait(cnd_t* cond, mtx_t* mutex, const timespec* limit) {
  if (!sched_active()) return REAL(cnd_timedwait)(cond, mutex, limit);
  return result_of(
      wait_on_condition(as_cond(cond), as_mutex(mutex), CLOCK_REALTIME, limit, RT_CALLER));
}

RT_EXPORT int cnd_signal(cnd_t* cond) {
  if (!sched_active()) return REAL(cnd_signal)(cond);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kCondSignal, cond, pc);
  rec_sync(EventKind::kSignal, cond, 0, pc);
  sched_wake(cond, 1);
  return thrd_success;
}

RT_EXPORT int cnd_broadcast(cnd_t* cond) {
  if (!sched_active()) return REAL(cnd_broadcast)(cond);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kCondSignal, cond, pc);
  rec_sync(EventKind::kBroadcast, cond, 0, pc);
  sched_wake(cond, ~0u);
  return thrd_success;
}

RT_EXPORT void call_once(once_flag* flag, void (*initialiser)()) {
  if (!sched_active()) return REAL(call_once)(flag, initialiser);
  pthread_once(reinterpret_cast<pthread_once_t*>(flag), initialiser);
}
