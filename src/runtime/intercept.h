// What interceptors of synchronisation have in common.
#pragma once

#include "runtime/clock.h"
#include "runtime/real.h"
#include "runtime/sched_state.h"
#include "runtime/stream.h"

#include <errno.h>

namespace heddle::rt {

// The place in the program that called the intercepted function.
#define RT_CALLER __builtin_return_address(0)

inline void rec_lock(EventKind kind, const volatile void* lock, LockMode mode, const void* pc,
                     OpOutcome outcome = OpOutcome::kOk) {
  if (!g_stream.recording) return;
  rec_event(kind, mode, outcome, 0, reinterpret_cast<uint64_t>(lock), 0, pc);
}

// A call that may sleep in the kernel, with the others running meanwhile.
template <typename Call>
auto outside(Call call) {
  sched_leave_game();
  const auto result = call();
  const int error = errno;
  sched_join_game();
  errno = error;
  return result;
}

// Where POSIX has a cancellation point. The thread holds the baton and nothing of the scheduler's.
inline void cancellation_point() {
  pthread_testcancel();
}

// ---- between the files of intercept_sync_* --------------------------------------------------

// 0, or the error that pthread_mutex_lock and kin return. Without a scheduling point.
int take_mutex(pthread_mutex_t* mutex, uint64_t deadline, const void* pc);
int wait_on_condition(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                      const timespec* limit, const void* pc);
int start_new_thread(pthread_t* out, const pthread_attr_t* attributes, void* (*entry)(void*),
                     void* argument, const void* pc);
int join_thread(pthread_t handle, void** result, uint64_t deadline, bool only_try, const void* pc);
// Input is about to be read from `fd`: waits until there is some, where it can be waited for.
void await_input(int fd, const char* what, const void* pc);
int sleep_until(uint64_t deadline, const void* pc);  // 0 or EINTR

}  // namespace heddle::rt
