// One-time initialisation: pthread_once (and std::call_once and call_once on top of it), and the
// guards of function-local statics.
//
// The real functions keep the state, and reset it when the initialiser is left by an exception or a
// cancellation; we only see to it that nobody sleeps in them. Each thread has a list of the
// initialisers it is in; one whose flag was reset behind our back is found by once_check, at the
// thread's next point.
#include "runtime/intercept.h"

#include <pthread.h>

extern "C" {
int __cxa_guard_acquire(int64_t* guard);
void __cxa_guard_release(int64_t* guard) noexcept;
void __cxa_guard_abort(int64_t* guard) noexcept;
}

namespace heddle::rt {
namespace {

thread_local void (*t_initialiser)() __attribute__((tls_model("initial-exec")));
thread_local const void* t_initialiser_pc __attribute__((tls_model("initial-exec")));

const Thread* owner_of(const int* flag) {
  for (uint32_t i = 0; i < g_sched.thread_count; ++i) {
    const Thread* thread = &g_sched.threads[i];
    for (unsigned k = 0; k < thread->once_depth; ++k) {
      if (thread->once[k] == flag) return thread;
    }
  }
  return nullptr;
}

void begin(int* flag) {
  Thread* self = t_self;
  if (self->once_depth < Thread::kMaxOnce) self->once[self->once_depth++] = flag;
  g_sched.quick = nobody();
}

void end(int* flag) {
  Thread* self = t_self;
  for (unsigned k = self->once_depth; k > 0; --k) {
    if (self->once[k - 1] != flag) continue;
    for (unsigned i = k; i < self->once_depth; ++i) self->once[i - 1] = self->once[i];
    --self->once_depth;
    break;
  }
  sched_wake(flag, ~0u);
}

// Called by the real pthread_once.
void run_initialiser() {
  void (*initialiser)() = t_initialiser;
  const void* pc = t_initialiser_pc;
  int* flag = t_self->once[t_self->once_depth - 1];
  rec_sync(EventKind::kOnceBegin, flag, 0, pc);
  initialiser();
  rec_sync(EventKind::kOnceEnd, flag, 0, pc);
}

}  // namespace

void once_check(Thread* self) {
  while (self->once_depth != 0) {
    int* flag = self->once[self->once_depth - 1];
    if (__atomic_load_n(flag, __ATOMIC_RELAXED) != 0) return;
    --self->once_depth;
    sched_wake(flag, ~0u);
  }
}

}  // namespace heddle::rt

using namespace heddle;
using namespace heddle::rt;

RT_EXPORT int pthread_once(pthread_once_t* flag, void (*initialiser)()) {
  if (!sched_active()) return REAL(pthread_once)(flag, initialiser);
  constexpr int kDone = 2;
  constexpr int kUnderWay = 1;
  const void* pc = RT_CALLER;
  sched_point(PointKind::kOnce, flag, pc);
  for (;;) {
    const int state = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
    if ((state & kDone) != 0) {
      rec_sync(EventKind::kOncePass, flag, 0, pc);
      return 0;
    }
    if (owner_of(flag) == nullptr) {
      // A thread that is not in the game may be at it.
      if ((state & kUnderWay) != 0)
        return outside([&] { return REAL(pthread_once)(flag, initialiser); });
      break;
    }
    sched_block(PointKind::kOnce, flag, kWaitOnce, kNoDeadline, kInterruptNever, pc);
  }
  begin(flag);
  t_initialiser = initialiser;
  t_initialiser_pc = pc;
  const int status = REAL(pthread_once)(flag, run_initialiser);
  end(flag);
  return status;
}

RT_EXPORT int __cxa_guard_acquire(int64_t* guard) {
  if (!sched_active()) return REAL(__cxa_guard_acquire)(guard);
  const void* pc = RT_CALLER;
  auto* flag = reinterpret_cast<int*>(guard);
  sched_point(PointKind::kOnce, guard, pc);
  for (;;) {
    if (__atomic_load_n(reinterpret_cast<const char*>(guard), __ATOMIC_ACQUIRE) != 0) {
      rec_sync(EventKind::kOncePass, guard, 0, pc);
      return 0;
    }
    const Thread* owner = owner_of(flag);
    if (owner == nullptr || owner == t_self) break;  // recursion: the real one complains
    sched_block(PointKind::kOnce, guard, kWaitOnce, kNoDeadline, kInterruptNever, pc);
  }
  const int mine = REAL(__cxa_guard_acquire)(guard);
  if (mine != 0) {
    begin(flag);
    rec_sync(EventKind::kOnceBegin, guard, 0, pc);
  }
  return mine;
}

RT_EXPORT void __cxa_guard_release(int64_t* guard) noexcept {
  REAL(__cxa_guard_release)(guard);
  if (!sched_active()) return;
  rec_sync(EventKind::kOnceEnd, guard, 0, RT_CALLER);
  end(reinterpret_cast<int*>(guard));
}

RT_EXPORT void __cxa_guard_abort(int64_t* guard) noexcept {
  REAL(__cxa_guard_abort)(guard);
  if (!sched_active()) return;
  end(reinterpret_cast<int*>(guard));
}
