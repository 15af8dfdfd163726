// Threads: creation, join, detach, cancellation, yielding, processor masks.
//
// A thread gets its number and its place in the queue from its creator, holding the baton: the
// order in which the kernel starts threads does not matter.
#include "runtime/intercept.h"
#include "runtime/watchdog.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>

namespace heddle::rt {
namespace {

void* run_thread(void* argument) {
  auto* self = static_cast<Thread*>(argument);
  first_turn(self);
  return self->entry(self->argument);
}

bool created_detached(const pthread_attr_t* attributes) {
  int state = PTHREAD_CREATE_JOINABLE;
  if (attributes != nullptr) pthread_attr_getdetachstate(attributes, &state);
  return state == PTHREAD_CREATE_DETACHED;
}

// The end of a thread's last destructor and the end of the thread in the kernel are some
// microseconds apart; the real join waits for the rest.
int collect(Thread* target, pthread_t handle, void** result, const void* pc) {
  sched_brief_begin(true);
  const int error = REAL(pthread_join)(handle, result);
  sched_brief_end();
  if (error != 0) return error;
  target->joined = true;
  note_gone(target);
  rec_event(EventKind::kJoin, LockMode::kExclusive, OpOutcome::kOk, 0, 0, target->id, pc);
  return 0;
}

}  // namespace

int start_new_thread(pthread_t* out, const pthread_attr_t* attributes, void* (*entry)(void*),
                     void* argument, const void* pc) {
  sched_point(PointKind::kCreate, nullptr, pc);
  sched_lock();
  Thread* thread = new_thread();
  sched_unlock();
  if (thread == nullptr) return EAGAIN;
  thread->parent = t_self->id;
  thread->entry = entry;
  thread->argument = argument;
  thread->detached = created_detached(attributes);
  watchdog_start();
  wait_for_departing();
  pthread_t handle;
  int error;
  {
    const Inside guard;
    error = REAL(pthread_create)(&handle, attributes, run_thread, thread);
  }
  if (error != 0) {
    thread->state = State::kDead;
    thread->joined = true;
    thread->gone = true;
    --g_sched.live;
    return error;
  }
  thread->handle = handle;
  note_handle(handle);
  *out = handle;
  rec_event(EventKind::kFork, LockMode::kExclusive, OpOutcome::kOk, 0, 0, thread->id, pc);
  start_thread(thread);
  return 0;
}

int join_thread(pthread_t handle, void** result, uint64_t deadline, bool only_try, const void* pc) {
  Thread* target = find_thread(handle);
  sched_point(PointKind::kJoin, target, pc);
  cancellation_point();
  if (target == nullptr) return outside([&] { return REAL(pthread_join)(handle, result); });
  if (target == t_self) return EDEADLK;
  if (target->detached) return EINVAL;
  while (target->state != State::kDead) {
    if (only_try) return EBUSY;
    const WakeReason reason =
        sched_block(PointKind::kJoin, target, kWaitThread, deadline, kInterruptCancel, pc);
    if (reason == WakeReason::kCancelled) cancellation_point();
    if (reason == WakeReason::kTimedOut && target->state != State::kDead) return ETIMEDOUT;
  }
  return collect(target, handle, result, pc);
}

}  // namespace heddle::rt

using namespace heddle;
using namespace heddle::rt;

RT_EXPORT int pthread_create(pthread_t* out, const pthread_attr_t* attributes,
                             void* (*entry)(void*), void* argument) noexcept {
  if (!sched_active()) return REAL(pthread_create)(out, attributes, entry, argument);
  return start_new_thread(out, attributes, entry, argument, RT_CALLER);
}

RT_EXPORT int pthread_join(pthread_t handle, void** result) {
  if (!sched_active()) return REAL(pthread_join)(handle, result);
  return join_thread(handle, result, kNoDeadline, false, RT_CALLER);
}

RT_EXPORT int pthread_tryjoin_np(pthread_t handle, void** result) noexcept {
  if (!sched_active()) return REAL(pthread_tryjoin_np)(handle, result);
  return join_thread(handle, result, kNoDeadline, true, RT_CALLER);
}

RT_EXPORT int pthread_timedjoin_np(pthread_t handle, void** result, const timespec* limit) {
  if (!sched_active()) return REAL(pthread_timedjoin_np)(handle, result, limit);
  const uint64_t deadline = limit == nullptr ? kNoDeadline : clock_deadline(CLOCK_REALTIME, limit);
  return join_thread(handle, result, deadline, false, RT_CALLER);
}

RT_EXPORT int pthread_clockjoin_np(pthread_t handle, void** result, clockid_t clock,
                                   const timespec* limit) {
  if (!sched_active()) return REAL(pthread_clockjoin_np)(handle, result, clock, limit);
  const uint64_t deadline = limit == nullptr ? kNoDeadline : clock_deadline(clock, limit);
  return join_thread(handle, result, deadline, false, RT_CALLER);
}

RT_EXPORT int pthread_detach(pthread_t handle) noexcept {
  if (!sched_active()) return REAL(pthread_detach)(handle);
  Thread* target = find_thread(handle);
  const int error = REAL(pthread_detach)(handle);
  if (error == 0 && target != nullptr) target->detached = true;
  return error;
}

// ---- cancellation -----------------------------------------------------------------------------
//
// Deferred, always, as far as the C library knows: an asynchronous cancellation could hit a thread
// in the middle of the scheduler. Threads that ask for the asynchronous kind test for it at every
// scheduling point.

RT_EXPORT int pthread_cancel(pthread_t handle) {
  if (!sched_active()) return REAL(pthread_cancel)(handle);
  Thread* target = find_thread(handle);
  sched_point(PointKind::kSyscall, target, RT_CALLER);
  const int error = REAL(pthread_cancel)(handle);
  if (error != 0 || target == nullptr) return error;
  {
    const Busy busy(t_self);
    lock_as_holder();
    Wait* wait = target->wait;
    if (wait != nullptr && !wait->done && (wait->interrupts & kInterruptCancel) != 0) {
      end_wait(wait, WakeReason::kCancelled);
    }
    arm();
    sched_unlock();
  }
  if (target == t_self && target->async_cancel) cancellation_point();
  return 0;
}

RT_EXPORT int pthread_setcanceltype(int type, int* before) {
  if (!sched_active()) return REAL(pthread_setcanceltype)(type, before);
  if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS) return EINVAL;
  Thread* self = t_self;
  if (before != nullptr) {
    *before = self->async_cancel ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED;
  }
  self->async_cancel = type == PTHREAD_CANCEL_ASYNCHRONOUS;
  g_sched.quick = nobody();
  if (self->async_cancel) cancellation_point();
  return 0;
}

// ---- names ------------------------------------------------------------------------------------

RT_EXPORT int pthread_setname_np(pthread_t handle, const char* name) noexcept {
  const int error = REAL(pthread_setname_np)(handle, name);
  if (error != 0 || !sched_active()) return error;
  if (const Thread* target = find_thread(handle)) rec_thread_name(target->id, name);
  return error;
}

RT_EXPORT int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  unsigned long arguments[4];
  for (unsigned long& argument : arguments) argument = va_arg(list, unsigned long);
  va_end(list);
  if (option == PR_SET_NAME && sched_active()) {
    char name[16] = {};  // as long as the kernel keeps
    strncpy(name, reinterpret_cast<const char*>(arguments[0]), sizeof name - 1);
    rec_thread_name(t_self->id, name);
  }
  return REAL(prctl)(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

// ---- yielding -----------------------------------------------------------------------------------

RT_EXPORT int sched_yield() noexcept {
  if (!sched_active()) return REAL(sched_yield)();
  sched_point(PointKind::kYield, nullptr, RT_CALLER);
  return 0;
}

// ---- processors -------------------------------------------------------------------------------
//
// The process is pinned to one processor, which is not the program's business: it sees the mask it
// would have had, and may change it as it likes, without effect.

RT_EXPORT int sched_getaffinity(pid_t pid, size_t size, cpu_set_t* mask) noexcept {
  cpu_set_t cpus;
  if (!sched_active() || !sched_pinned_from(&cpus)) return REAL(sched_getaffinity)(pid, size, mask);
  memset(mask, 0, size);
  memcpy(mask, &cpus, size < sizeof cpus ? size : sizeof cpus);
  return 0;
}

RT_EXPORT int pthread_getaffinity_np(pthread_t handle, size_t size, cpu_set_t* mask) noexcept {
  cpu_set_t cpus;
  if (!sched_active() || !sched_pinned_from(&cpus)) {
    return REAL(pthread_getaffinity_np)(handle, size, mask);
  }
  memset(mask, 0, size);
  memcpy(mask, &cpus, size < sizeof cpus ? size : sizeof cpus);
  return 0;
}

RT_EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t* mask) noexcept {
  cpu_set_t cpus;
  if (!sched_active() || !sched_pinned_from(&cpus)) return REAL(sched_setaffinity)(pid, size, mask);
  return 0;
}

RT_EXPORT int pthread_setaffinity_np(pthread_t handle, size_t size,
                                     const cpu_set_t* mask) noexcept {
  cpu_set_t cpus;
  if (!sched_active() || !sched_pinned_from(&cpus)) {
    return REAL(pthread_setaffinity_np)(handle, size, mask);
  }
  return 0;
}
