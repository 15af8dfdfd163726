// Barriers. The C library's pthread_barrier_wait is never called, so its counter of arrivals is
// ours to use; the rest of the object, and its destruction, stay with the C library.
#include "runtime/intercept.h"

#include <pthread.h>

namespace heddle::rt {
namespace {

// glibc's struct pthread_barrier.
struct Barrier {
  unsigned arrived;
  unsigned round;
  unsigned count;
  int shared;
  unsigned left;
};

}  // namespace
}  // namespace heddle::rt

using namespace heddle;
using namespace heddle::rt;

RT_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  if (!sched_active()) return REAL(pthread_barrier_wait)(barrier);
  const void* pc = RT_CALLER;
  auto* state = reinterpret_cast<Barrier*>(barrier);
  sched_point(PointKind::kBarrier, barrier, pc);
  rec_sync(EventKind::kBarrierArrive, barrier, 0, pc);
  int result = 0;
  if (state->shared != 0) {
    result = outside([&] { return REAL(pthread_barrier_wait)(barrier); });
  } else if (++state->arrived == state->count) {
    state->arrived = 0;
    sched_wake(barrier, ~0u);
    result = PTHREAD_BARRIER_SERIAL_THREAD;
  } else {
    sched_block(PointKind::kBarrier, barrier, kWaitBarrier, kNoDeadline, kInterruptNever, pc);
  }
  rec_sync(EventKind::kBarrierLeave, barrier, 0, pc);
  return result;
}
