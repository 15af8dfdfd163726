// The annotations that programs carry for ThreadSanitizer and its ancestors: order and locks that
// no interceptor sees (home-made locks, lock-free queues, libraries that are not instrumented).
// They become events of the trace like any other synchronisation; detectors need not know where
// they come from.
//
// Order:  __tsan_release / __tsan_acquire, AnnotateHappensBefore / AnnotateHappensAfter.
// Locks:  __tsan_mutex_post_lock / __tsan_mutex_pre_unlock, AnnotateRWLockAcquired / Released. The
//         event stands where the lock is held: after locking, before unlocking.
//
// The rest of both interfaces exists so that annotated programs link and run, and does nothing:
// creation and destruction of locks, fibres' names, benign races (a suppression says that better:
// docs/races.md), regions in which accesses are ignored.
#include "runtime/intercept.h"

namespace heddle::rt {
namespace {

// As in sanitizer/tsan_interface.h.
enum MutexFlag : unsigned {
  kReadLock = 1 << 3,
  kTryLockFailed = 1 << 5,
};

void announce(EventKind kind, const volatile void* object, const void* pc) {
  if (!sched_active()) return;
  sched_need_baton();
  rec_sync(kind, object, 0, pc);
}

void note_lock(EventKind kind, const volatile void* lock, bool shared, OpOutcome outcome,
               const void* pc) {
  if (!sched_active()) return;
  sched_need_baton();
  rec_lock(kind, lock, shared ? LockMode::kShared : LockMode::kExclusive, pc, outcome);
}

}  // namespace
}  // namespace heddle::rt

using namespace heddle;
using namespace heddle::rt;

// ---- order --------------------------------------------------------------------------------------

RT_EXPORT void __tsan_release(void* object) {
  announce(EventKind::kOrderRelease, object, RT_CALLER);
}

RT_EXPORT void __tsan_acquire(void* object) {
  announce(EventKind::kOrderAcquire, object, RT_CALLER);
}

RT_EXPORT void AnnotateHappensBefore(const char*, int, const volatile void* object) {
  announce(EventKind::kOrderRelease, object, RT_CALLER);
}

RT_EXPORT void AnnotateHappensAfter(const char*, int, const volatile void* object) {
  announce(EventKind::kOrderAcquire, object, RT_CALLER);
}

// ---- locks --------------------------------------------------------------------------------------

RT_EXPORT void __tsan_mutex_create(void*, unsigned) {}
RT_EXPORT void __tsan_mutex_destroy(void*, unsigned) {}
RT_EXPORT void __tsan_mutex_pre_lock(void*, unsigned) {}

RT_EXPORT void __tsan_mutex_post_lock(void* lock, unsigned flags, int) {
  const OpOutcome outcome = flags & kTryLockFailed ? OpOutcome::kFailed : OpOutcome::kOk;
  note_lock(EventKind::kAcquire, lock, flags & kReadLock, outcome, RT_CALLER);
}

// The result is how often a recursive lock was held: it is let go of at once.
RT_EXPORT int __tsan_mutex_pre_unlock(void* lock, unsigned flags) {
  note_lock(EventKind::kRelease, lock, flags & kReadLock, OpOutcome::kOk, RT_CALLER);
  return 1;
}

RT_EXPORT void __tsan_mutex_post_unlock(void*, unsigned) {}
RT_EXPORT void __tsan_mutex_pre_signal(void*, unsigned) {}
RT_EXPORT void __tsan_mutex_post_signal(void*, unsigned) {}
RT_EXPORT void __tsan_mutex_pre_divert(void*, unsigned) {}
RT_EXPORT void __tsan_mutex_post_divert(void*, unsigned) {}

RT_EXPORT void AnnotateRWLockCreate(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotateRWLockCreateStatic(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotateRWLockDestroy(const char*, int, const volatile void*) {}

RT_EXPORT void AnnotateRWLockAcquired(const char*, int, const volatile void* lock, long writes) {
  note_lock(EventKind::kAcquire, lock, writes == 0, OpOutcome::kOk, RT_CALLER);
}

RT_EXPORT void AnnotateRWLockReleased(const char*, int, const volatile void* lock, long writes) {
  note_lock(EventKind::kRelease, lock, writes == 0, OpOutcome::kOk, RT_CALLER);
}

// ---- accepted -----------------------------------------------------------------------------------

RT_EXPORT void AnnotateBenignRace(const char*, int, const volatile void*, const char*) {}
RT_EXPORT void AnnotateBenignRaceSized(const char*, int, const volatile void*, size_t,
                                       const char*) {}
RT_EXPORT void AnnotateIgnoreReadsBegin(const char*, int) {}
RT_EXPORT void AnnotateIgnoreReadsEnd(const char*, int) {}
RT_EXPORT void AnnotateIgnoreWritesBegin(const char*, int) {}
RT_EXPORT void AnnotateIgnoreWritesEnd(const char*, int) {}
RT_EXPORT void AnnotateIgnoreSyncBegin(const char*, int) {}
RT_EXPORT void AnnotateIgnoreSyncEnd(const char*, int) {}
RT_EXPORT void AnnotateThreadName(const char*, int, const char*) {}
RT_EXPORT void AnnotateNewMemory(const char*, int, const volatile void*, size_t) {}
RT_EXPORT void AnnotateEnableRaceDetection(const char*, int, int) {}
